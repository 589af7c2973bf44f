"""A few threads that share one big matrix product: NumPy releases the interpreter lock inside matmul."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise


def available_cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def even_slices(length: int, parts: int) -> list[slice]:
    """Cut range(length) into `parts` contiguous slices whose sizes differ by at most one."""
    bounds = [length * part // parts for part in range(parts + 1)]
    return [slice(low, high) for low, high in pairwise(bounds)]


class Workers:
    """Runs a task on slices of a range, the first one on the calling thread."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = available_cores() if threads is None else max(1, threads)
        self._pool = ThreadPoolExecutor(self.threads - 1, "specdec-worker") if self.threads > 1 else None

    def run(self, task: Callable[[slice], object], length: int) -> None:
        """Call `task` on contiguous slices that cover range(length); returns when all are done."""
        if self._pool is None or length < 2:
            task(slice(0, length))
            return
        parts = even_slices(length, min(length, self.threads))
        pending = [self._pool.submit(task, part) for part in parts[1:]]
        task(parts[0])
        for future in pending:
            future.result()
