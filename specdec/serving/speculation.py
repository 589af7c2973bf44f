"""Whether a pair of models drafts, request by request: what the pair remembers, and the watch over one run.

The breaker for faults learns from rounds that tell of one, and from calls that come too late. The one for losses learns
what `auto` learns, and holds only for requests that leave the lookahead to us: whoever names a number gets it, and
`auto` stops by itself.
"""

import logging
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TypeVar

from specdec.config import Lookahead, SpeculativeConfig
from specdec.decoding.lookahead import Timings, Worth
from specdec.records import Breaking, Record, Round, Started
from specdec.serving.breaker import Breaker, Clock, Condition, Pass
from specdec.serving.helper import Helper, TooLate
from specdec.settings import Settings

T = TypeVar("T")
EVIDENCE = 32  # rounds before drafting may be said to lose
STUCK = "an earlier call of the drafter has not come back"
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Drafting:
    """A pair's circuit breakers at one moment."""

    target: str
    draft: str
    faults: Condition
    losses: Condition


class Guard:
    """What is remembered of a pair between its requests. `clock` in seconds."""

    def __init__(self, settings: Settings, clock: Clock = time.monotonic) -> None:
        self.timings = Timings()
        self.wait_s = settings.breaker_wait_seconds
        self.call_s = settings.breaker_call_seconds
        self.losing = settings.breaker_losing
        self.helper = Helper()
        self.faults = Breaker(settings.breaker_failures, self.wait_s, clock)
        self.losses = Breaker(1, self.wait_s, clock)
        self.start_anew()

    def watch(self, asked: Lookahead | None) -> "Watch":
        """Over one request, which asked for this lookahead; close it when its run is over."""
        return Watch(self, asked)

    def learn(self, step: Round, asked: int) -> None:
        """Take in a round that asked for so many drafts, 0 included."""
        self._worth.observe(step, asked)
        self._rounds += asked > 0

    def gain(self, k: int) -> float | None:
        """How many times as fast as plain decoding k drafts a round are; None but once in a while, as this is slow."""
        if not self._rounds or self._rounds % EVIDENCE or 1 not in self.timings.passes:
            return None
        rates = self._worth.rates()
        return float(rates[k] / rates[0])

    def start_anew(self) -> None:
        """Forget what was accepted, so that the next trial is judged by itself."""
        self._worth = Worth(self.timings)
        self._rounds = 0


class Watch:
    """One request's drafting, from whether there is any to its last round. The watcher of its `GuardedDrafter`."""

    def __init__(self, guard: Guard, asked: Lookahead | None) -> None:
        self._guard = guard
        self._wanted = asked != 0
        self._breakers = [guard.faults, guard.losses] if asked is None else [guard.faults]
        self._passes = self._admitted() if self._wanted else []
        self._lookahead: object = 0
        self._asked = False
        self._paused = self._wanted and not self._passes

    @property
    def state(self) -> Breaking:
        """The breakers' state as this request met it."""
        if self._wanted and not self._passes:
            return "open"
        return "half-open" if any(one.on_trial for one in self._passes) else "closed"

    @property
    def note(self) -> str:
        """What is to be said of it; empty where there is nothing."""
        reason = self.reason
        said = {
            "open": f"plain decoding: drafting is paused for a while, because {reason}",
            "half-open": f"drafting is tried again after a pause, because {reason}",
        }
        return said.get(self.state, "")

    @property
    def reason(self) -> str:
        """Why the breaker that stands in the way opened last."""
        conditions = [breaker.condition for breaker in self._breakers]
        return next((each.reason for each in conditions if each.state != "closed"), STUCK)

    @property
    def closed(self) -> bool:
        """Whether the drafter may not be asked any more."""
        return not self._passes or any(one.revoked for one in self._passes)

    def allowed(self, speculation: SpeculativeConfig) -> SpeculativeConfig:
        """What the engine is asked for."""
        return replace(speculation, num_speculative_tokens=0) if self._paused else speculation

    def asked(self) -> None:
        """The drafter is asked for drafts."""
        self._asked = True

    def failed(self, error: Exception) -> None:
        """The drafter could not start, or was too late, which is enough to leave it alone."""
        self._fail(f"the drafter failed: {type(error).__name__}: {str(error)[:200]}", isinstance(error, TooLate))

    def call(self, task: Callable[[], T], units: int) -> T:
        """What `task` returns or raises; TooLate where that takes longer than so many times a call's seconds."""
        return self._guard.helper.call(task, units * self._guard.call_s)

    def follow(self, run: Generator[Record, None, None]) -> Generator[Record, None, None]:
        """The run's records, with what the breakers have to say; they learn from them."""
        with closing(run), closing(self):
            for record in run:
                if isinstance(record, Started):
                    self._lookahead = record.settings["lookahead"]
                    yield self._announced(record)
                else:
                    yield self._judged(record) if isinstance(record, Round) else record

    def close(self) -> None:
        """The run is over."""
        for one in self._passes:
            one.close()

    def _admitted(self) -> list[Pass]:
        """Passes of all breakers that matter, or none."""
        passes: list[Pass] = []
        for breaker in () if self._guard.helper.stuck else self._breakers:
            one = breaker.admit()
            if one is None:
                break
            passes.append(one)
        if len(passes) == len(self._breakers):
            return passes
        for one in passes:
            one.close()
        return []

    def _announced(self, started: Started) -> Started:
        notes = (self.note,) if self._paused else (started.note, self.note)
        return replace(started, breaker=self.state, note="; ".join(filter(None, notes)))

    def _judged(self, step: Round) -> Round:
        """Learn from a round, and say so in it where drafting ends with it."""
        asked, self._asked = self._asked, False
        if step.fault:
            self._fail(step.fault)
        else:
            self._weigh(step, asked)
        if not self._wanted or self._paused or not self.closed:
            return step
        self._paused = True
        log.warning("drafting is paused: %s", self.reason)
        return replace(step, paused=f"drafting is paused for {self._guard.wait_s:g} s, because {self.reason}")

    def _weigh(self, step: Round, asked: bool) -> None:
        if asked:
            self._passes[0].succeed()
        if not isinstance(self._lookahead, int):
            return
        self._guard.learn(step, (len(step.proposals) or self._lookahead) if asked else 0)
        times = self._guard.gain(self._lookahead) if asked and len(self._passes) > 1 else None
        if times is not None and times < self._guard.losing:
            self._passes[1].fail(f"it was {times:.2f} times as fast as plain decoding")
            self._guard.start_anew()
        elif times is not None:
            self._passes[1].succeed()

    def _fail(self, reason: str, at_once: bool = False) -> None:
        if self._passes:
            self._passes[0].fail(reason, at_once=at_once)
