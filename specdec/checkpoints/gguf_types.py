"""Data types of GGUF tensors, and their numbers as float32 by the `gguf` library's dequantisation."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from specdec.checkpoints.extras import optional
from specdec.checkpoints.weights import F32, read_span
from specdec.errors import UnsupportedError

SUPPORTED = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")
CHUNK_ITEMS = 1 << 18  # dequantised at a time: the library's temporaries are several times as large


@dataclass(frozen=True, slots=True)
class TensorType:
    """A data type: `block_items` numbers are stored in `block_bytes` bytes."""

    name: str
    code: int
    block_items: int
    block_bytes: int


def tensor_type(code: int, where: str) -> TensorType:
    """The type with GGML's number `code`; UnsupportedError naming it where it is not among `SUPPORTED`."""
    constants: Any = optional("gguf.constants")
    try:
        kind = constants.GGMLQuantizationType(code)
    except ValueError:
        raise UnsupportedError(f"{where} has the unknown data type {code}") from None
    if kind.name not in SUPPORTED:
        raise UnsupportedError(f"{where} is {kind.name}, which is not supported; {', '.join(SUPPORTED)} are")
    items, size = constants.GGML_QUANT_SIZES[kind]
    return TensorType(kind.name, code, items, size)


def dequantise(path: Path, offset: int, shape: tuple[int, ...], kind: TensorType) -> F32:
    """A tensor as float32, a chunk of blocks at a time, so that little is held beside the result."""
    total = math.prod(shape)
    if kind.name == "F32":
        return read_span(path, offset, total, "<f4").astype(np.float32, copy=False).reshape(shape)
    blocks_at_once = CHUNK_ITEMS // kind.block_items
    values = np.empty(total, np.float32)
    for first in range(0, total // kind.block_items, blocks_at_once):
        count = min(blocks_at_once, total // kind.block_items - first)
        raw = read_span(path, offset + first * kind.block_bytes, count * kind.block_bytes, "u1")
        start = first * kind.block_items
        values[start : start + count * kind.block_items] = _numbers(raw, kind)
    return values.reshape(shape)


def _numbers(raw: Any, kind: TensorType) -> Any:
    quants: Any = optional("gguf.quants")
    with np.errstate(all="ignore"):  # a damaged scale is NaN or infinity, for the model's own check to report
        return quants.dequantize(raw, optional("gguf.constants").GGMLQuantizationType(kind.code))
