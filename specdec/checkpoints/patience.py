"""A download is begun again where what failed may pass: three times at most, after longer and longer waits by chance.

Only downloads: what arrived is kept, so that a repeat changes nothing. Back-off with full jitter, by `tenacity`. A
budget keeps repeats from multiplying the calls to a server that is down for everybody (Google, Site Reliability
Engineering, chapter 21).
"""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from specdec.checkpoints.extras import optional

T = TypeVar("T")
ATTEMPTS = 3
ENOUGH_S = 20.0  # no further attempt is waited for beyond that: `huggingface_hub` has then tried often enough itself
FIRST_S, LONGEST_S = 0.5, 8.0  # upper bounds of the waits
LOOK_S = 0.1
PASSING = {408, 429, 500, 502, 503, 504}
SHARE = 0.1  # repeats for each call
SAVED = 10.0  # repeats allowed before any call was made, and most that calls can save up


class RetryBudget:
    """How many repeats this process may still make. Each call earns a tenth of one; safe in threads."""

    def __init__(self) -> None:
        self._left = SAVED
        self._lock = threading.Lock()

    def earn(self) -> None:
        """A call is about to be made for the first time."""
        with self._lock:
            self._left = min(self._left + SHARE, SAVED)

    def spend(self) -> bool:
        """Whether a repeat may be made; it is then one less."""
        with self._lock:
            allowed = self._left >= 1.0
            self._left -= allowed
        return allowed


BUDGET = RetryBudget()


def patience(look: Callable[[], object]) -> Callable[[Callable[[], T]], T]:
    """What calls a download once and returns, or raises at last, what that does; MissingExtraError without `tenacity`.

    `look` is called while it waits; what that raises ends it.
    """
    budget = BUDGET
    budget.earn()
    tenacity: Any = optional("tenacity")
    tries: Callable[[Callable[[], T]], T] = tenacity.Retrying(
        retry=tenacity.retry_if_exception(may_pass),
        wait=tenacity.wait_random_exponential(multiplier=FIRST_S, max=LONGEST_S),
        stop=tenacity.stop_after_attempt(ATTEMPTS)
        | tenacity.stop_before_delay(ENOUGH_S)
        | (lambda _: not budget.spend()),
        sleep=lambda seconds: _wait(seconds, look),
        reraise=True,
    )
    return tries


def may_pass(error: BaseException) -> bool:
    """Whether the network or the server was at fault, in a way that need not last."""
    return any(_is_passing(each) for each in _causes(error))


def _is_passing(error: BaseException) -> bool:
    """By shape, because the HTTP library below `huggingface_hub` is its own affair: any that is like httpx."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status in PASSING or any(kind.__name__ == "TransportError" for kind in type(error).__mro__)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _wait(seconds: float, look: Callable[[], object]) -> None:
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        look()
        time.sleep(min(left, LOOK_S))
