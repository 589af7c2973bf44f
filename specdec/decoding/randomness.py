"""Uniforms keyed by (seed, position, purpose): the same key gives the same number, whichever way a run got there.

So a run repeats itself (under `rejection` as far as its k do, and those of `auto` depend on timings), `match` emits the
very tokens of plain decoding, and requests share no generator. The numbers are NumPy's counter-based Philox 4x64
(Salmon et al. 2011): the key is (seed, purpose), the counter the position.
Blocks of positions are made at once, since building a generator costs as much as a thousand of its numbers.
"""

from enum import IntEnum

import numpy as np

BLOCK = 256  # positions made at once
_TO_UNIT = 2.0**-53


class Purpose(IntEnum):
    """What a uniform is for; numbers for different purposes are independent."""

    DRAFT = 1  # the drafter draws its token of that position
    JUDGE = 2  # the draft token of that position is accepted or refused
    CHOOSE = 3  # the target draws the token of that position


def block(seed: int, purpose: Purpose, index: int) -> list[float]:
    """Uniforms in [0, 1), 53 bits each, for the `BLOCK` positions from `index * BLOCK`."""
    key, counter = np.array([seed, purpose], np.uint64), np.array([0, index, 0, 0], np.uint64)
    raw = np.random.Philox(key=key, counter=counter).random_raw(BLOCK)
    uniforms: list[float] = ((raw >> np.uint64(11)) * _TO_UNIT).tolist()
    return uniforms


class Uniforms:
    """The uniforms of one request; keeps the last block of each purpose."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._blocks: dict[Purpose, tuple[int, list[float]]] = {}

    def at(self, purpose: Purpose, position: int) -> float:
        """The uniform of one position."""
        index, offset = divmod(position, BLOCK)
        kept = self._blocks.get(purpose)
        if kept is None or kept[0] != index:
            kept = self._blocks[purpose] = (index, block(self._seed, purpose, index))
        return kept[1][offset]

    def window(self, purpose: Purpose, start: int, count: int) -> list[float]:
        """The uniforms of `count` positions from `start`."""
        return [self.at(purpose, start + i) for i in range(count)]
