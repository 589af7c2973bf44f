"""A linear layer that costs hardly more for a window of rows than for one, and gives each row the same bits.

The matrix lies as panels of a few of its rows; a window is multiplied with one after the other (see `kernels`).

M rows, K inputs, N outputs, P panels, W panel width.
"""

from collections.abc import Sequence
from copy import copy

import numpy as np

from specdec.model import kernels
from specdec.model.kernels import MAX_WINDOW, SMALL_PRODUCT
from specdec.model.operations import F32
from specdec.model.window import chunks_of
from specdec.model.workers import Workers, even_slices

SHARED_BYTES = 1_000_000  # a window through a matrix smaller than this is not worth waking a second thread for
LEAD_BYTES = 400_000  # what a thread has read of a matrix by the time another, which it woke, begins
SHARED_PRODUCT = 8_000_000  # nor is a prefill of fewer multiplications than this
BLOCK_BYTES = 600_000  # of a matrix that prefill reads for all its chunks of rows while a cache holds them
PANEL_WIDTHS = (64, 32, 16, 8, 4)


def panel_width(inputs: int) -> int:
    """Widest panel that still lets a whole window through the small kernels."""
    return next((width for width in PANEL_WIDTHS if width * inputs * MAX_WINDOW <= SMALL_PRODUCT), PANEL_WIDTHS[-1])


class Linear:
    """y = x Wᵀ + b with W of shape (N, K), held once, row by row."""

    def __init__(self, weight: F32, bias: F32 | None, workers: Workers) -> None:
        self.outputs, self.inputs = weight.shape
        self.width = panel_width(self.inputs)
        self.panels = _to_panels(weight, self.width)  # (P, W, K)
        self.bias = bias
        self.max_rows = max(3, SMALL_PRODUCT // (self.width * self.inputs))
        self._workers = workers

    def __call__(self, x: F32) -> F32:
        """[M, K] -> [M, N], rows of stride P·W."""
        out = np.empty((len(x), self.panels.shape[0] * self.width), np.float32)
        if len(x) > MAX_WINDOW:
            self._prefill(x, out)
        else:  # in parts of two rows or more, where the whole window is too tall for the small kernels
            for part in even_slices(len(x), -(-len(x) // self.max_rows)):
                self._window(x[part], out[part])
        result = out[:, : self.outputs]
        if self.bias is not None:
            result += self.bias
        return result

    def first_panel(self) -> "Linear":
        """The layer's first panel as a layer of its own, sharing the weights."""
        part = copy(self)
        part.panels, part.outputs, part.bias = self.panels[:1], self.width, None
        return part

    def rows(self, index: int | list[int]) -> F32:
        """Rows `index` of W, [n] -> [n, K]: the embedding of those tokens where the table is also the output."""
        embeddings: F32 = self._matrix()[np.asarray(index)]
        return embeddings

    def _matrix(self) -> F32:
        """(P·W, K), a view."""
        return self.panels.reshape(-1, self.inputs)

    def _window(self, x: F32, out: F32) -> None:
        """A few rows, panel by panel."""
        panels = self.panels.transpose(0, 2, 1)  # (P, K, W)
        stacked = out.reshape(len(x), len(panels), self.width).transpose(1, 0, 2)  # (P, M, W), a view
        if self.panels.nbytes < SHARED_BYTES:
            kernels.product(x, panels, stacked)
        else:
            lead = LEAD_BYTES // self.panels[0].nbytes
            self._workers.run(lambda part: kernels.product(x, panels[part], stacked[part]), len(panels), lead)

    def _prefill(self, x: F32, out: F32) -> None:
        """Many rows, as ordinary products of a chunk of rows and a block of panels, cut alike however many rows."""
        threads = self._workers.threads
        blocks = even_slices(len(self.panels), threads * -(-self.panels.nbytes // (threads * BLOCK_BYTES)))

        def multiply(part: slice) -> None:
            for block in blocks[part]:
                columns = slice(block.start * self.width, block.stop * self.width)
                for rows in chunks_of(len(x)):
                    np.matmul(x[rows], self._matrix()[columns].T, out=out[rows, columns])

        if len(x) * self.panels.size < SHARED_PRODUCT:
            multiply(slice(0, len(blocks)))
        else:
            self._workers.run(multiply, len(blocks))


def _to_panels(weight: F32, width: int) -> F32:
    """(N, K) -> (P, W, K): the array itself where it is nobody else's and whole, else a copy filled up with zeros."""
    outputs, inputs = weight.shape
    count = -(-outputs // width)
    if weight.flags.owndata and weight.flags.c_contiguous and outputs == count * width:
        return weight.reshape(count, width, inputs)
    panels = np.empty((count, width, inputs), np.float32)
    rows = panels.reshape(-1, inputs)
    rows[:outputs], rows[outputs:] = weight, 0
    return panels


def lay_together(layers: Sequence[Linear]) -> None:
    """Move the weights of some layers into one array.

    NumPy asks the system to back an array of 4 MiB and more by large pages; reading smaller ones costs up to 8 % more.
    """
    arena, end = np.empty(sum(layer.panels.size for layer in layers), np.float32), 0
    for layer in layers:
        start, end = end, end + layer.panels.size
        arena[start:end] = layer.panels.reshape(-1)
        layer.panels = arena[start:end].reshape(layer.panels.shape)
