"""Row-wise operations: each row's result depends on that row alone, bit for bit. M rows, C width.

All take and return float32 and write into fresh arrays, into their first argument or into `out`, as said.
"""

import math

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]

GELU_SLOPE = np.float32(math.sqrt(2 / math.pi))
GELU_CUBIC = np.float32(0.044715)
ONE = np.float32(1)


def rms_norm(x: F32, eps: np.float32) -> F32:
    """x / rms(x), without the learned scale (Zhang & Sennrich 2019). [M, C] -> [M, C]"""
    scale = np.vecdot(x, x)[:, None]
    scale *= np.float32(1 / x.shape[-1])
    scale += eps
    np.sqrt(scale, out=scale)
    normed: F32 = x / scale
    return normed


def layer_norm(x: F32, eps: np.float32) -> F32:
    """(x − mean) / standard deviation, without the learned scale and shift (Ba et al. 2016). [M, C] -> [M, C]"""
    mean = np.add.reduce(x, axis=-1, keepdims=True)
    mean *= np.float32(1 / x.shape[-1])
    centred = x - mean
    return rms_norm(centred, eps)


def swiglu(gate_up: F32, out: F32) -> None:
    """silu(gate) · up (Shazeer 2020), where the first half of each row holds gate / 2. [M, 2·I] -> [M, I]

    silu(g) = g · sigmoid(g) = h · (1 + tanh h) with h = g / 2: one transcendental, and no overflow for any g.
    """
    inner = gate_up.shape[-1] // 2
    half, up = gate_up[:, :inner], gate_up[:, inner:]
    np.tanh(half, out=out)
    out += ONE
    out *= half
    out *= up


def gelu_doubled(x: F32, out: F32) -> None:
    """2 · gelu(x) in the tanh form (Hendrycks & Gimpel 2016); the factor ½ sits in the next matrix. [M, I] -> [M, I]"""
    np.multiply(x, x, out=out)
    out *= GELU_CUBIC
    out += ONE
    out *= x
    out *= GELU_SLOPE
    np.tanh(out, out=out)
    out += ONE
    out *= x


def softmax_unnormalised(scores: F32) -> F32:
    """exp(scores − row maximum), in place; returns the row sums, [..., S] -> [..., 1]."""
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    return np.add.reduce(scores, axis=-1, keepdims=True)
