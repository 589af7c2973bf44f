"""A thread that works for another one, which need not wait for it for ever.

No executor: that joins its threads when the process ends, so that a call which never returns would keep it alive, and
a future costs twice what a queue does.
"""

import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
Answer = SimpleQueue[tuple[object, BaseException | None]]
Jobs = SimpleQueue[tuple[Callable[[], object], Answer] | None]


class TooLate(TimeoutError):  # noqa: N818
    """A call took longer than it may."""


class Helper:
    """One thread, started when first needed; it ends with this object, or with its process."""

    def __init__(self) -> None:
        self._jobs: Jobs | None = None
        self._late: Answer | None = None

    @property
    def stuck(self) -> bool:
        """Whether a call that is not waited for any more goes on."""
        return self._late is not None and self._late.empty()

    def call(self, task: Callable[[], T], seconds: float) -> T:
        """What `task` returns or raises; TooLate where it takes longer, or an earlier one is still at it."""
        if self.stuck:
            raise TooLate("an earlier call has not come back")
        self._late = None
        answer: Answer = SimpleQueue()
        self._queue().put((task, answer))
        try:
            value, error = answer.get(timeout=seconds)
        except Empty:
            self._late = answer
            raise TooLate(f"no answer within {seconds:g} s") from None
        if error is not None:
            raise error
        return value  # type: ignore[return-value]

    def _queue(self) -> Jobs:
        if self._jobs is None:
            self._jobs = SimpleQueue()
            Thread(target=_serve, args=(self._jobs,), name="drafter", daemon=True).start()
            weakref.finalize(self, self._jobs.put, None)
        return self._jobs


def _serve(jobs: Jobs) -> None:
    """The thread's life; it keeps nothing of a job that is done."""
    while (job := jobs.get()) is not None:
        task, answer = job
        answer.put(_outcome(task))
        del job, task, answer


def _outcome(task: Callable[[], object]) -> tuple[object, BaseException | None]:
    try:
        return task(), None
    except BaseException as error:
        return None, error
