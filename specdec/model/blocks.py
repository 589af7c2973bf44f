"""What the two families share: a stack of pre-norm blocks between an embedding and an output layer.

Learned norm scales (and shifts) are folded into the matrix behind the norm, the attention scale into the queries, so
that a pass does not spend calls on them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specdec.model.kernels import MAX_WINDOW
from specdec.model.linear import Linear, lay_together
from specdec.model.operations import F32
from specdec.model.rotary import Rotary
from specdec.model.workers import Workers


@dataclass(frozen=True, slots=True)
class Block:
    """One layer's four matrices."""

    qkv: Linear  # C -> (H + 2·G)·D
    output: Linear  # H·D -> C
    up: Linear  # C -> 2·I (gate and up) or I
    down: Linear  # I -> C

    def __post_init__(self) -> None:
        lay_together([self.qkv, self.output, self.up, self.down])


@dataclass(frozen=True, slots=True)
class Stack:
    """All that a forward pass multiplies with. `embedding` None means that the output layer is also the table."""

    blocks: tuple[Block, ...]
    head: Linear  # C -> V
    embedding: F32 | None  # (V, C)
    positions: F32 | None  # (context, C)
    rotary: Rotary | None
    norm: Callable[[F32, np.float32], F32]
    activation: Callable[[F32, F32], None]
    final_scale: F32 | None  # where the output layer is shared and cannot take them in
    final_shift: F32 | None
    workers: Workers

    def __post_init__(self) -> None:
        lay_together([self.head])

    def embed(self, tokens: list[int], positions: slice) -> F32:
        """[T] -> [T, C]"""
        x = self.head.rows(tokens) if self.embedding is None else self.embedding[tokens]
        if self.positions is not None:
            x += self.positions[positions]
        return x

    def activate(self, x: F32, inner: int) -> F32:
        """[M, 2·I or I] -> [M, I]; the rows of a prefill are shared out between threads."""
        out = np.empty((len(x), inner), np.float32)
        if len(x) > MAX_WINDOW:
            self.workers.run(lambda rows: self.activation(x[rows], out[rows]), len(x))
        else:
            self.activation(x, out)
        return out

    def logits(self, x: F32, eps: np.float32) -> F32:
        """[M, C] -> [M, V]"""
        x = self.norm(x, eps)
        if self.final_scale is not None:
            x *= self.final_scale
        if self.final_shift is not None:
            x += self.final_shift
        return self.head(x)
