"""Products of a few rows that give each row the bits it has alone: which form the BLAS at hand does that best in.

A BLAS repacks the whole matrix for an ordinary product of a few rows, which costs several times the product itself.
OpenBLAS has small-matrix kernels, used while M·W·K ≤ 10⁶ and M·W < 1,200, that do not, but only where the processor
has AVX-512. They sum each row's products in an order that does not depend on the number of rows M, from M = 2 on; a
lone row takes another kernel, so it is run twice. Everywhere else each row is multiplied by itself, a matrix-vector
product, which reads a matrix of a few hundred kilobytes from the cache again for the next row.

M rows, K inputs, W outputs.
"""

from functools import cache
from typing import Any

import numpy as np

from specdec.model.operations import F32
from specdec.model.workers import Workers

MAX_WINDOW = 16  # most rows of a pass that keeps the bitwise promise; more rows are prefill
SMALL_PRODUCT = 1_000_000  # M·W·K up to which OpenBLAS takes its small-matrix kernels
READ_AHEAD = 512  # rows and columns of a product that packs more than any chunk of a prefill


def _has_small_kernels() -> bool:
    built: Any = np.show_config(mode="dicts")
    blas, extensions = built["Build Dependencies"]["blas"]["name"], built["SIMD Extensions"]
    return "openblas" in blas and "X86_V4" in extensions.get("found", [])  # no entry stands for none


row_by_row: bool = not _has_small_kernels()  # of this process; one for all models in it


def lone_row_runs() -> int:
    """Times that a row alone is run to have the bits it would have in a window."""
    return 1 if row_by_row else 2


@cache
def touch_buffers(threads: int) -> None:
    """Have BLAS write once to the memory that so many threads pack matrices into.

    Its kernels read ahead in that memory. Where nobody has written to a page yet, each such read walks the page tables
    in vain: on a virtual machine, products of a few hundred rows then take up to three times as long, for ever.
    """
    x = np.ones((READ_AHEAD, READ_AHEAD), np.float32)
    Workers(threads).run(lambda _: np.matmul(x, x), threads)


def product(x: F32, matrix: F32, out: F32) -> None:
    """out = x · matrix for a window of rows: [..., M, K] · [..., K, W] -> [..., M, W], broadcasting."""
    if row_by_row:
        np.matmul(x[..., None, :], matrix[..., None, :, :], out=out[..., None, :])
    else:
        np.matmul(x, matrix, out=out)
