"""What a pass over T tokens has to know about positions, worked out once for all layers.

Sums over masked keys depend on how many keys there are, masked ones included. So every row attends over its own
position rounded up to a bucket of 64 keys, whichever way it is run: a window that crosses a border between buckets
is attended in segments. A lone row may be run twice (see `kernels`).

Prefill makes another promise: its products take chunks of 128 rows, counted from where it begins, whatever the number
of chunks that a pass takes along. So a prompt that begins behind whole chunks has the bits of one read from the start.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from specdec.model.cache import KEY_BUCKET
from specdec.model.kernels import MAX_WINDOW, lone_row_runs
from specdec.model.operations import F32

PREFILL_CHUNK = 128  # rows of a prefill's products
PREFILL_PASS = 4 * PREFILL_CHUNK  # most rows of a pass: each reads all weights from memory once

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
        chunks = chunks_of(tokens)
        return Window(start, tokens, tokens, tuple(_segment(c, start + c.start, c.stop - c.start) for c in chunks))
    return Window(start, tokens, tokens, tuple(_split(start, tokens)))


def passes(tokens: int) -> list[slice]:
    """The passes that a feed of so many tokens takes. What remains of whole chunks is a window of its own if small."""
    rest = tokens % PREFILL_CHUNK if tokens > MAX_WINDOW else 0
    end = tokens - rest if rest <= MAX_WINDOW else tokens
    bounds = [*range(0, end, PREFILL_PASS), end] + [tokens] * (end < tokens)
    return [slice(low, high) for low, high in pairwise(bounds)]


def chunks_of(rows: int) -> list[slice]:
    """The chunks of a pass over so many rows."""
    return [slice(start, min(start + PREFILL_CHUNK, rows)) for start in range(0, rows, PREFILL_CHUNK)]


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
