"""Rotary position embedding (Su et al. 2021) as one complex product per pass and layer.

A head's dimensions i and i + D/2 (the order of Hugging Face checkpoints) rotate together by the angle
position · frequency_i. Reordered so that the two lie side by side they are one complex number, and the rotation is a
multiplication. The reordering is done once, to the rows of the query and key matrices; their dot products, all that
attention sees, do not change.
"""

import math

import numpy as np
from numpy.typing import NDArray

from specdec.config import RopeConfig
from specdec.model.operations import F32

C64 = NDArray[np.complex64]


def frequencies(rope: RopeConfig, head_dim: int) -> NDArray[np.float64]:
    """Radians per position for each of the D/2 pairs, scaling included."""
    base = rope.theta ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    if rope.scaling == "linear":
        return base / rope.factor
    return _stretch_llama3(base, rope) if rope.scaling == "llama3" else base


def _stretch_llama3(base: NDArray[np.float64], rope: RopeConfig) -> NDArray[np.float64]:
    """Llama 3.1: divide slow frequencies by `factor`, keep fast ones, blend linearly in between."""
    turns = rope.original_context * base / (2 * math.pi)  # rotations within the original context
    blend = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    keep = np.clip(blend, 0.0, 1.0)
    return base * (keep + (1 - keep) / rope.factor)


class Rotary:
    """Rotation factors by position, grown on demand."""

    def __init__(self, rope: RopeConfig, head_dim: int) -> None:
        self._frequencies = frequencies(rope, head_dim)
        self._table: C64 = np.empty((0, head_dim // 2), np.complex64)

    def reserve(self, positions: int) -> None:
        """Make factors for the first `positions` positions; existing ones stay as they are."""
        if positions > len(self._table):
            angles = np.outer(np.arange(positions), self._frequencies)
            self._table = np.exp(1j * angles).astype(np.complex64)

    def factors(self, positions: slice) -> C64:
        """(T, 1, D/2), to be broadcast over heads."""
        return self._table[positions, None]


def rotate(heads: F32, factors: C64) -> None:
    """Rotate queries or keys, (M, heads, D) with pairs side by side, in place."""
    pairs = heads.view(np.complex64)
    np.multiply(pairs, factors, out=pairs)


def pair_up(weight: F32, head_dim: int) -> F32:
    """Reorder the rows of a query or key matrix, (heads·D, C) or (heads·D,), so that rotated pairs lie side by side."""
    halves = weight.reshape(-1, 2, head_dim // 2, *weight.shape[1:])
    return np.ascontiguousarray(np.swapaxes(halves, 1, 2)).reshape(weight.shape)
