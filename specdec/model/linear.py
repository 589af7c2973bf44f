"""A linear layer that costs hardly more for a window of rows than for one, and gives each row the same bits.

The matrix lies as panels of a few of its rows; a window is multiplied with one after the other (see `kernels`).

M rows, K inputs, N outputs, P panels, W panel width.
"""

from collections.abc import Sequence
from copy import copy

import numpy as np

from specdec.model import kernels, partners
from specdec.model.kernels import MAX_WINDOW, SMALL_PRODUCT
from specdec.model.operations import F32
from specdec.model.partner import Arena, Place
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
        self._place: Place | None = None

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

    @property
    def threads(self) -> int:
        """Threads and partners that a large product is shared by, the calling one included."""
        return self._workers.threads

    def first_panel(self) -> "Linear":
        """The layer's first panel as a layer of its own, sharing the weights."""
        part = copy(self)
        part.panels, part.outputs, part.bias, part._place = self.panels[:1], self.width, None, None
        return part

    def move(self, array: F32, start: int, arena: Arena | None) -> int:
        """Move the weights into an array from there on, that of an arena where it is one; returns where they end."""
        end = start + self.panels.size
        array[start:end] = self.panels.reshape(-1)
        self.panels = array[start:end].reshape(self.panels.shape)
        if arena is not None and self.panels.nbytes >= partners.LEAST_BYTES:
            self._place = Place(arena, start, self.width, self.inputs)
        return end

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
        if self.panels.nbytes < partners.LEAST_BYTES:
            kernels.product(x, panels, stacked)
            return

        def multiply(part: slice) -> None:
            kernels.product(x, panels[part], stacked[part])

        if self._place is not None and partners.team.multiply(multiply, self._place, x, stacked, self.threads):
            return
        if self.panels.nbytes < SHARED_BYTES:
            multiply(slice(0, len(panels)))
        else:
            self._workers.run(multiply, len(panels), LEAD_BYTES // self.panels[0].nbytes)

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
    """Move the weights of some layers into one array, which partners share where there are any.

    NumPy asks the system to back an array of its own of 4 MiB and more by large pages; reading smaller ones costs up to
    8 % more.
    """
    size = sum(layer.panels.size for layer in layers)
    large = any(layer.panels.nbytes >= partners.LEAST_BYTES for layer in layers)
    arena = partners.team.arena(size, layers[0].threads) if large else None
    array, end = np.empty(size, np.float32) if arena is None else arena.array, 0
    for layer in layers:
        end = layer.move(array, end, arena)
