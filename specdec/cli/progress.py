"""A line that says how far a download or a load is."""

import time
from types import TracebackType
from typing import Self, TextIO

from specdec.cli.terminal import printable

CLEAR = "\r\x1b[K"
INTERVAL_S = 0.1
WIDTH = 20


class ProgressLine:
    """Rewrites one line of a terminal, and leaves it empty; silent where the stream is none."""

    def __init__(self, stream: TextIO, unit: str = "") -> None:
        self._stream = stream
        self._unit = unit
        self._due = 0.0

    def show(self, what: str, done: int, total: int) -> None:
        """Say how far it is, at most ten times a second; the last step is always shown."""
        now = time.monotonic()
        if self._stream.isatty() and (now >= self._due or done >= total):
            self._due = now + INTERVAL_S
            self._stream.write(CLEAR + printable(_line(what, done, total, self._unit)))
            self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._due:
            self._stream.write(CLEAR)
            self._stream.flush()


def _line(what: str, done: int, total: int, unit: str) -> str:
    share = min(1.0, done / total) if total > 0 else 1.0
    bar = "█" * int(WIDTH * share)
    return f"{what} {bar:░<{WIDTH}} {share:4.0%} of {total / 1e6:,.1f} M{unit}"
