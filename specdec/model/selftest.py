"""Does this machine's BLAS keep the promise? Multiply windows and single rows, and compare bits.

Runs on the model's own first matrices (a panel of each) and on an attention of the model's shape, in milliseconds.
Where it fails, decoding is still lossless up to near-ties, and the run's record says so.
"""

from collections.abc import Callable, Sequence

import numpy as np

from specdec.model import kernels
from specdec.model.attention import key_chunks
from specdec.model.cache import KEY_BUCKET, VALUE_BUCKET
from specdec.model.kernels import MAX_WINDOW, lone_row_runs
from specdec.model.linear import Linear
from specdec.model.operations import F32

Product = Callable[[F32], F32]
LONGEST = 3 * KEY_BUCKET  # keys


def windows_equal_rows(layers: Sequence[Linear], head_dim: int) -> bool:
    """Whether windows of 2 … 16 rows have, in every row, the bits of that row run alone."""
    rng = np.random.default_rng(0)
    keys = rng.standard_normal((head_dim, LONGEST), dtype=np.float32)
    wide = -(-head_dim // VALUE_BUCKET) * VALUE_BUCKET
    values = rng.standard_normal((LONGEST, wide), dtype=np.float32)
    counts = [chunk.stop for chunk in key_chunks(LONGEST, head_dim)[:1]] + [KEY_BUCKET]
    products: list[tuple[Product, int]] = [(layer.first_panel(), layer.inputs) for layer in layers]
    products += [(_product(keys[:, :count]), head_dim) for count in counts]
    products += [(_product(values[:count]), count) for count in counts]
    return all(_rows_equal(product, inputs, rng) for product, inputs in products)


def _product(matrix: F32) -> Product:
    def multiply(x: F32) -> F32:
        out = np.empty((len(x), matrix.shape[1]), np.float32)
        kernels.product(x, matrix, out)
        return out

    return multiply


def _rows_equal(product: Product, inputs: int, rng: np.random.Generator) -> bool:
    x = rng.standard_normal((MAX_WINDOW, inputs), dtype=np.float32)
    alone = np.concatenate([product(np.repeat(row[None], lone_row_runs(), axis=0))[:1] for row in x])
    return all(np.array_equal(product(x[:rows]), alone[:rows]) for rows in range(2, MAX_WINDOW + 1))
