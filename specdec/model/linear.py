"""A linear layer that costs hardly more for a window of rows than for one, and gives each row the same bits.

A BLAS repacks the whole matrix for every ordinary product of a few rows, which costs several times the product
itself. OpenBLAS has small-matrix kernels, used while M·N·K ≤ 10⁶, that do not repack. So a weight is held as panels
of a few output columns, (panels, inputs, width), and multiplied as a stack of small products. Those kernels also sum
each row's products in an order that does not depend on the number of rows M, from M = 2 on: that is what makes a
verification pass equal to single steps bit for bit (a lone row takes another kernel, hence `Window` pads it to two).

M rows, K inputs, N outputs, P panels, W panel width.
"""

from copy import copy

import numpy as np

from specdec.model.operations import F32
from specdec.model.workers import Workers, even_slices

MAX_WINDOW = 16  # most rows of a pass that keeps the bitwise promise; more rows are prefill
SMALL_PRODUCT = 1_000_000  # M·N·K up to which OpenBLAS takes its small-matrix kernels
SHARED_BYTES = 1_000_000  # a window through a matrix smaller than this is not worth waking a second thread for
SHARED_PRODUCT = 8_000_000  # nor is a prefill of fewer multiplications than this
PANEL_WIDTHS = (64, 32, 16, 8, 4)
FEWEST_ROWS = 7  # a panel is made narrower rather than let fewer rows than this fit the small kernels


def panel_width(inputs: int) -> int:
    """Widest panel that still lets a useful window of rows through the small kernels."""
    return next((width for width in PANEL_WIDTHS if width * inputs * FEWEST_ROWS <= SMALL_PRODUCT), PANEL_WIDTHS[-1])


class Linear:
    """y = x Wᵀ + b with W of shape (N, K), held once, as panels."""

    def __init__(self, weight: F32, bias: F32 | None, workers: Workers) -> None:
        self.outputs, self.inputs = weight.shape
        self.width = panel_width(self.inputs)
        self.panels = _to_panels(weight, self.width)  # (P, K, W)
        self.bias = bias
        self.max_rows = max(3, SMALL_PRODUCT // (self.width * self.inputs))
        self._workers = workers

    def __call__(self, x: F32) -> F32:
        """[M, K] -> [M, N], rows of stride P·W."""
        rows, count = x.shape[0], self.panels.shape[0]
        out = np.empty((rows, count * self.width), np.float32)
        stacked = out.reshape(rows, count, self.width).transpose(1, 0, 2)  # (P, M, W), a view
        if self.max_rows < rows <= MAX_WINDOW:  # too tall for the small kernels: even parts of two rows or more
            for part in even_slices(rows, -(-rows // self.max_rows)):
                self._multiply(x[part], stacked[:, part])
        else:
            self._multiply(x, stacked)
        result = out[:, : self.outputs]
        if self.bias is not None:
            result += self.bias
        return result

    def first_panel(self) -> "Linear":
        """The layer's first panel as a layer of its own, sharing the weights."""
        part = copy(self)
        part.panels, part.outputs, part.bias = self.panels[:1], self.width, None
        return part

    def column(self, index: int | list[int]) -> F32:
        """Rows `index` of W, [n] -> [n, K]: the embedding of those tokens where the table is also the output."""
        ids = np.asarray(index)
        return self.panels[ids // self.width, :, ids % self.width]

    def _multiply(self, x: F32, out: F32) -> None:
        panels, rows = self.panels, len(x)
        if panels.nbytes >= SHARED_BYTES or (rows > MAX_WINDOW and rows * panels.size >= SHARED_PRODUCT):
            self._workers.run(lambda part: np.matmul(x, panels[part], out=out[part]), len(panels))
        else:
            np.matmul(x, panels, out=out)


def _to_panels(weight: F32, width: int) -> F32:
    """(N, K) -> (P, K, W), the last panel filled up with zeros."""
    outputs, inputs = weight.shape
    count = -(-outputs // width)
    panels = np.zeros((count, inputs, width), np.float32)
    whole = outputs // width
    panels[:whole] = weight[: whole * width].reshape(whole, width, inputs).transpose(0, 2, 1)
    if whole < count:
        panels[whole, :, : outputs - whole * width] = weight[whole * width :].T
    return panels
