"""Ctrl-C while a command runs: raised at once, and remembered.

Python raises KeyboardInterrupt wherever the main thread happens to be. Where that is a finaliser or a callback of some
library, the exception is printed or dropped, and the command would go on as if nobody had asked. So whoever pulls
records asks again with each of them. A second Ctrl-C waits for nothing: it ends the process as if nobody caught it.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

Item = TypeVar("Item")


class Interrupts:
    """Whether Ctrl-C was pressed; a handler for SIGINT."""

    def __init__(self) -> None:
        self.seen = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt the first time; end the process by the signal itself the second time."""
        if self.seen:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.raise_signal(signal.SIGINT)
        self.seen = True
        raise KeyboardInterrupt

    def check(self) -> None:
        """Raise KeyboardInterrupt where an earlier one got lost."""
        if self.seen:
            raise KeyboardInterrupt

    def between(self, items: Iterator[Item]) -> Iterator[Item]:
        """The same items, checked before each is handed on."""
        for item in items:
            self.check()
            yield item


@contextmanager
def remembered() -> Iterator[Interrupts]:
    """Handle SIGINT inside the block, and leave it with KeyboardInterrupt where one was lost in there.

    Left alone where it is not Python's to handle: ignored (`nohup`, a script's background job), taken by an embedding
    program, or in a thread that cannot set handlers.
    """
    interrupts = Interrupts()
    usual = signal.getsignal(signal.SIGINT)
    ours = usual is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGINT, interrupts.handle)
    try:
        yield interrupts
    finally:
        if ours:
            signal.signal(signal.SIGINT, usual)
    interrupts.check()
