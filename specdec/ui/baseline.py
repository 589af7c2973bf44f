"""The plain lane: a few tokens decoded without drafts right after a run, which its speed-up is told against.

Same prompt, target, sampling parameters and seed, in the same place of the line; its first step is a warm-up and not
counted. The last one of each kind is remembered, so that the next run can tell a speed-up before its own is there.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from threading import Lock

from specdec.records import Finished, Record, Round, Started
from specdec.serving import GenerationRequest, Service, Ticket
from specdec.stats import Stats
from specdec.ui import measure
from specdec.ui.meter import Meter, short, versus
from specdec.ui.verdict import outcome_of, reason, speed_up
from specdec.ui.view import drafts, line

MOST_TOKENS = 32
MOST_S = 1.5  # of engine time
LONGEST_PREFILL_S = 3.0  # a prompt that takes longer to read is not read again
PREFIX, SAVED = "plain_", ("tokens", "rounds", "verify_s", "sample_s")  # what a trace keeps of the plain lane
LEAST_S, MOST_SAVED = 1e-12, 1e6

Cancelled = Callable[[], bool]


class Baselines:
    """The last plain lane of each target, greedy and sampled apart. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last: dict[tuple[str, bool], Stats] = {}

    def last(self, asked: GenerationRequest) -> Stats | None:
        """What was remembered of requests like this one, if anything was."""
        with self._lock:
            return self._last.get(_kind(asked))

    def after(
        self,
        run: Sequence[Record],
        asked: GenerationRequest,
        service: Service,
        ticket: Ticket,
        cancelled: Cancelled,
    ) -> Generator[str, None, dict[str, float]]:
        """A run's plain lane, as events; returned as its trace keeps it, empty where there is nothing to compare."""
        started = run[0]
        if not isinstance(started, Started) or not _comparable(started, run):
            return {}
        yield line("comparing")
        lane = yield from _measured(_plainly(asked, started.seed), service, ticket, cancelled)
        if lane is None or cancelled():
            return {}
        with self._lock:
            self._last[_kind(asked)] = lane
        return {f"{PREFIX}{name}": getattr(lane, name) for name in SAVED}


def _kind(asked: GenerationRequest) -> tuple[str, bool]:
    return asked.target, asked.params.temperature > 0


def _comparable(started: Started, run: Sequence[Record]) -> bool:
    """Whether a run came to its end, with drafts, on a prompt that does not take long to read once more."""
    ended = isinstance(run[-1], Finished) and run[-1].reason != "cancelled"
    return drafts(started) and ended and Stats.of(run).prefill_s <= LONGEST_PREFILL_S


def _plainly(asked: GenerationRequest, seed: int) -> GenerationRequest:
    """The same, short, without drafts, with the seed that the run drew."""
    params = replace(asked.params, seed=seed, max_tokens=min(MOST_TOKENS, asked.params.max_tokens))
    return measure.plain(replace(asked, params=params))


def _measured(
    request: GenerationRequest, service: Service, ticket: Ticket, cancelled: Cancelled
) -> Generator[str, None, Stats | None]:
    """Events of the lane; its statistics are returned, None where it is too short to tell."""
    meter = Meter()
    with closing(service.stream(request, cancelled=cancelled, ticket=ticket.lend())) as records:
        for record in records:
            if not isinstance(record, Round):
                continue
            meter.add(record)
            if meter.warm:
                yield line("plain", tokens=meter.stats.tokens, speed=short(meter.timed.tokens_per_second))
            if meter.stats.decode_s >= MOST_S:
                break
    return meter.timed if meter.warm else None


def compared(plain: Stats, speculative: Stats) -> str:
    """The event that tells the speed-up against a run's own plain lane; where it is none, with the reason."""
    outcome = outcome_of(speed_up(plain, speculative))
    lane = f"plain decoding, {plain.tokens_per_second:.0f} tokens/s over {plain.tokens} tokens right after this run"
    why = f"Slower than {lane}. {reason(plain, speculative)}" if outcome == "slower" else f"Against {lane}."
    return line(
        "compared",
        figures=versus(plain, speculative),
        outcome=outcome,
        speed=short(plain.tokens_per_second),
        text=why,
    )


def from_measurements(measurements: Mapping[str, float]) -> Stats | None:
    """The plain lane that a trace kept; None where it has none, or one with numbers that no run has."""
    tokens, rounds, verify_s, sample_s = (measurements.get(f"{PREFIX}{name}", -1.0) for name in SAVED)
    possible = all(1 <= count <= MOST_SAVED for count in (tokens, rounds))
    if not (possible and LEAST_S <= verify_s <= MOST_SAVED and 0 <= sample_s <= MOST_SAVED):
        return None
    return Stats(tokens=int(tokens), rounds=int(rounds), verify_s=verify_s, sample_s=sample_s)
