"""A few threads that share one big matrix product: NumPy releases the interpreter lock inside matmul.

Queues instead of an executor's futures: handing out half a product and waiting for it costs 35 µs less, and a pass
over a large model does so a hundred times.
"""

import os
import weakref
from collections.abc import Callable
from itertools import pairwise
from queue import SimpleQueue
from threading import Thread

Task = Callable[[slice], object]
Done = SimpleQueue[BaseException | None]
Jobs = SimpleQueue[tuple[Task, slice, Done] | None]


def available_cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def even_slices(length: int, parts: int) -> list[slice]:
    """Cut range(length) into `parts` contiguous slices whose sizes differ by at most one."""
    bounds = [length * part // parts for part in range(parts + 1)]
    return [slice(low, high) for low, high in pairwise(bounds)]


class Workers:
    """Runs a task on slices of a range, the first one on the calling thread. May be used by many threads at once."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = available_cores() if threads is None else max(1, threads)
        self._start()
        _everyone.add(self)

    def _start(self) -> None:
        self._jobs: Jobs = SimpleQueue()
        helpers = self.threads - 1
        for number in range(helpers):
            Thread(target=_serve, args=(self._jobs,), name=f"specdec-worker-{number}", daemon=True).start()
        weakref.finalize(self, _dismiss, self._jobs, helpers)

    def run(self, task: Task, length: int, lead: int = 0) -> None:
        """Call `task` on contiguous slices that cover range(length); returns, or raises, when all are done.

        The calling thread does `lead` items more than the others, which take a while to wake.
        """
        if self.threads == 1 or length < 2:
            task(slice(0, length))
            return
        done: Done = SimpleQueue()
        lead = min(lead, length - 2)
        first, *rest = even_slices(length - lead, min(length - lead, self.threads))
        for part in rest:
            self._jobs.put((task, slice(part.start + lead, part.stop + lead), done))
        try:
            task(slice(0, first.stop + lead))
        finally:
            errors = [error for error in [done.get() for _ in rest] if error is not None]
        if errors:
            raise errors[0]


def _serve(jobs: Jobs) -> None:
    """A helper's life; it keeps nothing of a job that is done, so that arrays can be freed."""
    while (job := jobs.get()) is not None:
        _do(*job)
        del job


def _do(task: Task, part: slice, done: Done) -> None:
    try:
        task(part)
    except BaseException as error:
        done.put(error)
    else:
        done.put(None)


def _dismiss(jobs: Jobs, helpers: int) -> None:
    for _ in range(helpers):
        jobs.put(None)


_everyone: "weakref.WeakSet[Workers]" = weakref.WeakSet()


def _start_anew() -> None:
    for workers in list(_everyone):
        workers._start()


if hasattr(os, "register_at_fork"):  # threads do not live on in a forked process
    os.register_at_fork(after_in_child=_start_anew)
