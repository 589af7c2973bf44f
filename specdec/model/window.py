"""What a pass over T tokens has to know about positions, worked out once for all layers.

Sums over masked keys depend on how many keys there are, masked ones included. So every row attends over its own
position rounded up to a bucket of 64 keys, whichever way it is run: a window that crosses a border between buckets
is attended in segments. A lone row may be run twice (see `kernels`). Prefill makes no promise and runs as one segment.
"""

from dataclasses import dataclass

import numpy as np

from specdec.model.cache import KEY_BUCKET
from specdec.model.kernels import MAX_WINDOW, lone_row_runs
from specdec.model.operations import F32

PREFILL_CHUNK = 128  # rows of a prefill pass

_SPAN = PREFILL_CHUNK + KEY_BUCKET
_CAUSAL: F32 = np.triu(np.full((_SPAN, _SPAN), -np.inf, np.float32), 1)  # row i sees columns 0 … i


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows that attend over the same number of keys. `mask` is added to the scores of keys `mask_from` … `keys`."""

    rows: slice
    keys: int
    mask_from: int
    mask: F32  # (rows, keys − mask_from)


@dataclass(frozen=True, slots=True)
class Window:
    """T tokens at positions `start` … `start` + T − 1, run as `rows` ≥ T rows."""

    start: int
    tokens: int
    rows: int
    segments: tuple[Segment, ...]

    @property
    def positions(self) -> slice:
        """Positions of the T tokens."""
        return slice(self.start, self.start + self.tokens)


def plan(start: int, tokens: int, *, exact: bool) -> Window:
    """Plan a pass over `tokens` tokens behind `start` cached ones."""
    if tokens == 1:
        rows = lone_row_runs() if exact else 1
        return Window(start, 1, rows, (_segment(slice(0, rows), start, 1),))
    if tokens > MAX_WINDOW or not exact:
        return Window(start, tokens, tokens, (_segment(slice(0, tokens), start, tokens),))
    return Window(start, tokens, tokens, tuple(_split(start, tokens)))


def _split(start: int, tokens: int) -> list[Segment]:
    """One segment for each bucket of keys that the window's positions fall into."""
    segments, row = [], 0
    while row < tokens:
        position = start + row
        count = min(tokens - row, KEY_BUCKET - position % KEY_BUCKET)
        segments.append(_segment(slice(row, row + count), position, count))
        row += count
    return segments


def _segment(rows: slice, position: int, count: int) -> Segment:
    base = position - position % KEY_BUCKET
    keys = -(-(position + count) // KEY_BUCKET) * KEY_BUCKET
    first = position - base
    return Segment(rows, keys, base, _CAUSAL[first : first + count, : keys - base])
