"""A circuit breaker (Nygard, "Release It!"): after failures in a row nobody passes for a while, then one, on trial.

Why not pybreaker: see `docs/decisions/0008-a-breaker-of-our-own.md`. It knows nothing of drafters; `guard.py` does.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from specdec.records import Breaking

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Condition:
    """A breaker at one moment: its state, why it opened last, failures in a row, how often it has opened.

    `retry_s`: seconds until somebody may pass on trial.
    """

    state: Breaking = "closed"
    reason: str = ""
    failures: int = 0
    opened: int = 0
    retry_s: float = 0.0


class Breaker:
    """Opens after `failures` in a row; `wait_s` later lets one through whose success closes it again.

    Safe to share between threads. `clock` in seconds. A trial of which nothing is heard for `wait_s` is given up.
    """

    def __init__(self, failures: int, wait_s: float, clock: Clock = time.monotonic) -> None:
        self._limit = failures
        self._wait_s = wait_s
        self._clock = clock
        self._lock = Lock()
        self._failures = 0
        self._opened = 0
        self._reason = ""
        self._until: float | None = None  # closed where None, open before this time, half-open from then on
        self._trial: Pass | None = None

    @property
    def condition(self) -> Condition:
        """How it stands."""
        with self._lock:
            left = 0.0 if self._until is None else max(0.0, self._until - self._clock())
            return Condition(self._state(), self._reason, self._failures, self._opened, left)

    def admit(self) -> "Pass | None":
        """A pass to whoever may go on: everybody while it is closed, one on trial while it is half-open."""
        with self._lock:
            state = self._state()
            if state == "open" or (self._trial and not self._is_lost(self._trial)):
                return None
            one = Pass(self, self._opened, self._clock(), on_trial=state == "half-open")
            self._trial = one if one.on_trial else None
            return one

    def _state(self) -> Breaking:
        if self._until is None:
            return "closed"
        return "open" if self._clock() < self._until else "half-open"

    def _is_lost(self, trial: "Pass") -> bool:
        return self._clock() - trial.since >= self._wait_s

    def _succeed(self, one: "Pass") -> None:
        with self._lock:
            if one.serial == self._opened:
                self._failures, self._until, self._trial = 0, None, None

    def _fail(self, one: "Pass", reason: str, *, at_once: bool) -> None:
        with self._lock:
            if one.serial != self._opened:
                return
            self._failures += 1
            if at_once or self._until is not None or self._failures >= self._limit:
                self._opened += 1
                self._reason, self._until, self._trial = reason, self._clock() + self._wait_s, None

    def _leave(self, one: "Pass") -> None:
        with self._lock:
            if self._trial is one:
                self._trial = None


class Pass:
    """Leave to go on, until the breaker opens the next time: after that it counts for nothing."""

    def __init__(self, breaker: Breaker, serial: int, since: float, *, on_trial: bool) -> None:
        self._breaker = breaker
        self.serial = serial
        self.since = since
        self.on_trial = on_trial

    @property
    def revoked(self) -> bool:
        """Whether the breaker opened since."""
        return self.serial != self._breaker._opened

    def succeed(self) -> None:
        """All went well: failures before do not count any more, and a trial is over."""
        self._breaker._succeed(self)

    def fail(self, reason: str, *, at_once: bool = False) -> None:
        """Something failed; on trial, or `at_once`, that opens the breaker by itself."""
        self._breaker._fail(self, reason, at_once=at_once)

    def close(self) -> None:
        """Done; a trial that told nothing is left to the next one. Harmless when repeated."""
        self._breaker._leave(self)
