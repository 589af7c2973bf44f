"""Drawing a token from a row of weights, and reading log-probabilities off rows of logits.

n rows, V vocabulary.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from specdec.decoding.protocols import Floats
from specdec.errors import NumericalError

_LONG = 2_048  # rows longer than this are searched in two steps, blocks first
_BLOCK = 64


def draw(weights: Floats, u: float) -> int:
    """The token whose share of the cumulative sum of `weights`, (V,), holds `u` in [0, 1].

    Weights need not sum to 1. A token of weight 0 is never drawn, not even at the ends. NumericalError where no token
    has any weight, or one is NaN.
    """
    if len(weights) > _LONG:
        return _draw_in_two_steps(weights, u)
    cumulative = _cumulative(weights)
    return _find(cumulative, u * cumulative.item(-1))


def _draw_in_two_steps(weights: Floats, u: float) -> int:
    """Find the block first, then the token inside it: a running sum over a big vocabulary is slow."""
    blocks = _cumulative(np.add.reduceat(weights, _starts(len(weights))))
    goal = u * blocks.item(-1)
    index = _find(blocks, goal)
    inside = _cumulative(weights[index * _BLOCK : (index + 1) * _BLOCK])
    return index * _BLOCK + _find(inside, goal - (blocks.item(index - 1) if index else 0.0))


@cache
def _starts(size: int) -> NDArray[np.intp]:
    return np.arange(0, size, _BLOCK)


def _cumulative(weights: Floats) -> NDArray[np.float64]:
    cumulative: NDArray[np.float64] = np.add.accumulate(weights, dtype=np.float64)  # cumsum, at half the overhead
    total = cumulative.item(-1)
    if not 0.0 < total < math.inf:
        raise NumericalError(f"no token can be drawn: the probabilities sum to {total:g}")
    return cumulative


def _find(cumulative: NDArray[np.float64], goal: float) -> int:
    """First index whose cumulative weight exceeds `goal`; by rounding `goal` may reach the total: the last of any."""
    if goal >= cumulative.item(-1):
        return int(cumulative.searchsorted(cumulative.item(-1), side="left"))
    return int(cumulative.searchsorted(goal, side="right"))


def log_probabilities(logits: Floats, tokens: Sequence[int]) -> list[float]:
    """log p of token i under row i of `logits`, (n, V) for n tokens: log-softmax, read at one place a row."""
    rows = logits[: len(tokens)]
    with np.errstate(under="ignore"):
        shifted = rows - rows.max(axis=-1, keepdims=True)
        totals: NDArray[np.float64] = np.log(np.exp(shifted).sum(axis=-1).astype(np.float64))
    chosen = shifted[np.arange(len(tokens)), list(tokens)].astype(np.float64)
    values: list[float] = (chosen - totals).tolist()
    return values
