"""Does this machine's BLAS keep the promise? Multiply windows and single rows, and compare bits.

Runs on the model's own first matrices (a panel of each) and on an attention of the model's shape, in milliseconds.
Where it fails, decoding is still lossless up to near-ties, and the run's record says so.
"""

from collections.abc import Sequence

import numpy as np

from specdec.model.linear import MAX_WINDOW, Linear
from specdec.model.operations import F32


def windows_equal_rows(layers: Sequence[Linear], head_dim: int) -> bool:
    """Whether windows of 2 … 16 rows have, in every row, the bits of that row run alone."""
    rng = np.random.default_rng(0)
    panels = [(layer.panels[0], min(layer.max_rows, MAX_WINDOW)) for layer in layers]
    attention = [
        (rng.standard_normal(shape, dtype=np.float32), MAX_WINDOW)
        for keys in (64, 192)
        for shape in ((head_dim, keys), (keys, head_dim))
    ]
    return all(_rows_equal(matrix, rows, rng) for matrix, rows in panels + attention)


def _rows_equal(matrix: F32, rows: int, rng: np.random.Generator) -> bool:
    x = rng.standard_normal((rows, matrix.shape[0]), dtype=np.float32)
    alone = np.concatenate([np.matmul(np.repeat(row[None], 2, axis=0), matrix)[:1] for row in x])
    return all(np.array_equal(np.matmul(x[:count], matrix), alone[:count]) for count in range(2, rows + 1))
