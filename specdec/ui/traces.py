"""Runs as files: a live run's events carry its trace, and a trace's records become the very events of the live run.

A file is a stranger's: `Trace.from_json` checks every field, what is beyond any run's reach is refused here, and
nothing of it is kept.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from specdec.config import LIMITS, SamplingParams, SpeculativeConfig
from specdec.errors import RequestError
from specdec.records import Finished, Record, Round, Started
from specdec.serving import GenerationRequest
from specdec.trace import Trace
from specdec.ui.baseline import compared, from_measurements
from specdec.ui.meter import Meter
from specdec.ui.view import fold, line, reason_of

MAX_BYTES = 2_000_000
MAX_SECONDS = 1e6
SHORTEST_S = 1e-12
PAUSED = " Drafting is paused for a while: the line below the answer says why."
SAMPLING = ("temperature", "top_k", "max_tokens")  # what the page says of a run depends on these


def ending(
    records: Sequence[Record], request: GenerationRequest, meter: Meter, measurements: Mapping[str, float]
) -> Iterator[str]:
    """The last lines of a run: its speed-up where a plain lane was measured, its trace as the text of a file, its end.

    `measurements` are the trace's own, the plain lane among them.
    """
    plain = from_measurements(measurements)
    if plain:
        yield compared(plain, meter.timed)
    if isinstance(records[0], Started):
        yield line("trace", text=Trace.collect(records, measurements).to_json())
    if isinstance(records[-1], Finished):
        why = reason_of(records[-1], request, meter.stats)
        yield line("end", reason=records[-1].reason, text=f"{why}{PAUSED if _is_paused(records) else ''}")


def _is_paused(records: Iterable[Record]) -> bool:
    """Whether the circuit breaker had a run go on, or all of it be, without drafts."""
    return any(
        record.paused if isinstance(record, Round) else isinstance(record, Started) and record.breaker == "open"
        for record in records
    )


def retold(
    records: Iterable[Record], request: GenerationRequest, measurements: Mapping[str, float] | None = None
) -> Iterator[str]:
    """The lines of a run whose plain lane, if it had one, is among the measurements already."""
    meter = Meter()
    kept = yield from fold(records, request, meter)
    yield from ending(kept, request, meter, measurements or {})


def events_of(text: str) -> str:
    """A trace file's text as all events of its run; RequestError or ConfigError saying what is wrong with it."""
    if len(text) > MAX_BYTES:
        raise RequestError(f"the file is larger than {MAX_BYTES // 1_000_000} MB")
    trace = Trace.from_json(text)
    if not trace.rounds:
        raise RequestError("the run in this file ended before its first round: there is nothing to show")
    for index, step in enumerate(trace.rounds):
        if not _possible(step):
            raise RequestError(f"this is not a trace: rounds[{index}] has numbers that no run has")
    return whole(trace, _request(trace.started))


def whole(trace: Trace, request: GenerationRequest) -> str:
    """All events of a finished run, as the page would have followed it."""
    return line("begin") + "".join(retold(trace.records, request, trace.measurements))


def _possible(step: Round) -> bool:
    """Whether a round's numbers are such as the engine could have written."""
    seconds = (step.prefill_s, step.draft_s, step.verify_s, step.sample_s)
    drafts = step.proposals
    chances = [number for draft in drafts for number in (draft.p, draft.q, draft.acceptance, draft.u)]
    return (
        len(drafts) <= LIMITS.max_speculative_tokens
        and len(step.tokens) <= LIMITS.max_speculative_tokens + 1
        and all(number == 0 or SHORTEST_S <= number <= MAX_SECONDS for number in seconds)
        and all(number is None or 0 <= number <= 1.001 for number in chances)
    )


def _request(started: Started) -> GenerationRequest:
    """As much of the request as a run's events tell of; the prompt is empty where a trace does not have it."""
    settings = started.settings
    params, prompt = settings.get("params", {}), settings.get("prompt", "")
    if not isinstance(params, dict) or not isinstance(prompt, str):
        raise RequestError("this is not a trace: settings has an unexpected value")
    sampling = SamplingParams(**{name: params[name] for name in SAMPLING if name in params})
    speculation = SpeculativeConfig(acceptance=settings.get("acceptance", "rejection"))
    return GenerationRequest(prompt, started.target, params=sampling, speculation=speculation)
