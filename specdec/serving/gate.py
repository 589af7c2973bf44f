"""Who is next: one generation at a time, the others in the order in which they came, each knowing its place."""

import threading
from collections import deque
from types import TracebackType
from typing import Self

from specdec.errors import BusyError


class Gate:
    """A first-come-first-served door with one place inside and `limit` places in front of it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._line: deque[object] = deque()

    def join(self) -> "Ticket":
        """Take the last place in the line; BusyError where it is full."""
        with self._changed:
            if len(self._line) > self._limit:
                raise BusyError(f"{self._limit} requests are waiting already: try again in a moment")
            key = object()
            self._line.append(key)
        return Ticket(self, key)

    @property
    def standing(self) -> int:
        """How many are here, inside and in front."""
        with self._changed:
            return len(self._line)

    def place(self, key: object) -> int | None:
        """How many are before this one; 0 is inside, None has left."""
        with self._changed:
            return self._line.index(key) if key in self._line else None

    def wait(self, key: object, timeout: float | None) -> bool:
        """Block until this one is inside, or for `timeout` seconds; whether it is inside."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._line) and self._line[0] is key, timeout)

    def leave(self, key: object) -> None:
        """Leave the line or the place inside; harmless where that happened before."""
        with self._changed:
            if key in self._line:
                self._line.remove(key)
                self._changed.notify_all()


class Ticket:
    """One request's place in the line. Close it (or leave the `with` block) to let the next one in."""

    def __init__(self, gate: Gate, key: object) -> None:
        self._gate = gate
        self._key = key

    @property
    def place(self) -> int | None:
        """How many requests are before this one: 0 means its turn, None that it was closed."""
        return self._gate.place(self._key)

    def wait(self, timeout: float | None = None) -> bool:
        """Block until it is this one's turn, at most `timeout` seconds; whether it is."""
        return self._gate.wait(self._key, timeout)

    def close(self) -> None:
        """Give the place up; harmless when repeated."""
        self._gate.leave(self._key)

    def lend(self) -> "Ticket":
        """The same place, for one of several runs that are made in it: its end does not give the place up."""
        return _Lent(self._gate, self._key)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Lent(Ticket):
    """A place that belongs to somebody else."""

    def close(self) -> None:
        """Nothing: its owner keeps it."""
