"""safetensors files: 8 bytes of header length, a JSON header, then the tensors without gaps.

Format: https://huggingface.co/docs/safetensors (the same rules as the reference implementation's, which the tests
compare with). The header is read here and not by that library because its NumPy side has no bfloat16, and so that
errors name file and tensor. Nothing is allocated before the header's claims have been held against the file's size.
"""

import math
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from specdec.checkpoints.files import ModelFolder, parse_object
from specdec.checkpoints.weights import F32, LazyTensor, Weights, read_span, widen_bfloat16
from specdec.errors import LoadError, NotFoundError, UnsupportedError

MAX_HEADER_BYTES = 16 << 20
MAX_DIMENSIONS = 8
MAX_DIMENSION = 1 << 40
MAX_SHARDS = 1_000
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"

_ITEM_BYTES = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2}
_ITEM_BYTES |= {"I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1}
_READABLE = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}


@dataclass(frozen=True, slots=True)
class Span:
    """Where a tensor lies: `begin` and `end` count from the first byte behind the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def open_weights(folder: ModelFolder) -> Weights:
    """The weights of a Hugging Face folder: one file, or shards with an index."""
    if folder.find(SINGLE) is not None:
        return Weights(open_safetensors(folder.require(SINGLE)))
    where = _weight_map(folder)
    shards = {name: open_safetensors(folder.require(name)) for name in set(where.values())}
    for tensor, shard in where.items():
        if tensor not in shards[shard]:
            raise LoadError(f"{folder.path / shard} has no tensor {tensor[:100]!r}, though the index says so")
    return Weights({tensor: shards[shard][tensor] for tensor, shard in where.items()})


def shard_names(folder: ModelFolder) -> list[str]:
    """The files that hold the weights of a Hugging Face folder, by its index, whether or not they are there."""
    return [SINGLE] if folder.find(SINGLE) is not None else sorted(set(_weight_map(folder).values()))


def _weight_map(folder: ModelFolder) -> dict[str, str]:
    """The index of a folder with several files of weights: from tensors to files."""
    index = folder.json(INDEX, limit=MAX_HEADER_BYTES)
    if index is None:
        raise _no_weights(folder)
    where = index.get("weight_map")
    if not isinstance(where, dict) or not all(isinstance(shard, str) for shard in where.values()):
        raise LoadError(f"{folder.path / INDEX} has no weight_map from tensors to files")
    names = set(where.values())
    if len(names) > MAX_SHARDS:
        raise LoadError(f"{folder.path / INDEX} names {len(names):,} files, more than {MAX_SHARDS:,}")
    wrong = [name for name in names if not name.endswith(".safetensors")]
    if wrong:
        raise UnsupportedError(f"{folder.path / INDEX} refers to {wrong[0][:100]!r}, which is not a safetensors file")
    return where


def _no_weights(folder: ModelFolder) -> LoadError:
    if any(folder.path.glob("pytorch_model*.bin")):
        return UnsupportedError(f"{folder.path} holds its weights as a pickle, which is never opened: use safetensors")
    return NotFoundError(f"{folder.path} has neither {SINGLE} nor {INDEX}")


def open_safetensors(path: Path) -> dict[str, LazyTensor]:
    """The tensors of one file; LoadError where header and file do not agree in every byte."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            raw = _read_header(path, file, size)
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror or error}") from error
    start = 8 + len(raw)
    spans = [_span(path, name, entry) for name, entry in _parse(path, raw).items() if name != "__metadata__"]
    _check_layout(path, spans, size - start)
    return {span.name: LazyTensor(span.shape, partial(_read, path, start, span)) for span in spans}


def _read_header(path: Path, file: BinaryIO, size: int) -> bytes:
    """The header's bytes, once its length has been found possible."""
    prefix = file.read(8)
    if len(prefix) < 8:
        raise LoadError(f"{path} is too short to be a safetensors file")
    length = int.from_bytes(prefix, "little")
    if length > MAX_HEADER_BYTES:
        raise LoadError(f"{path} has a header of {length:,} bytes; at most {MAX_HEADER_BYTES:,} are read")
    if length > size - 8:
        raise LoadError(f"{path} ends within its header: {length:,} bytes announced, {size - 8:,} there")
    return file.read(length)


def _parse(path: Path, raw: bytes) -> dict[str, Any]:
    if not raw.startswith(b"{"):
        raise LoadError(f"{path} has a header that does not begin with {{")
    try:
        return parse_object(raw.decode("utf-8"), f"the header of {path}")
    except UnicodeDecodeError as error:
        raise LoadError(f"{path} has a header that is not UTF-8 text") from error


def _span(path: Path, name: str, entry: Any) -> Span:
    """One header entry, each value checked for type and range."""
    where = f"{path}: tensor {name[:100]!r}"
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise LoadError(f"{where} must have a dtype, a shape and data_offsets, and nothing else")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _ITEM_BYTES:
        raise UnsupportedError(f"{where} has the unknown data type {str(dtype)[:40]!r}")
    if not _are_counts(shape, MAX_DIMENSION) or len(shape) > MAX_DIMENSIONS:
        raise LoadError(f"{where} has an impossible shape")
    if not _are_counts(offsets, 1 << 62) or len(offsets) != 2:
        raise LoadError(f"{where} has impossible data_offsets")
    begin, end = offsets
    if end - begin != math.prod(shape) * _ITEM_BYTES[dtype]:
        raise LoadError(f"{where} takes {end - begin:,} bytes, which is not what {dtype} {shape} needs")
    return Span(name, dtype, tuple(shape), begin, end)


def _are_counts(value: Any, limit: int) -> bool:
    return isinstance(value, list) and all(type(item) is int and 0 <= item <= limit for item in value)


def _check_layout(path: Path, spans: list[Span], available: int) -> None:
    """Tensors must fill the file from the header to the last byte, without a gap and without an overlap."""
    position = 0
    for span in sorted(spans, key=lambda span: (span.begin, span.end)):
        if span.begin != position:
            problem = "overlaps another one" if span.begin < position else "leaves a hole before it"
            raise LoadError(f"{path}: tensor {span.name[:100]!r} {problem}")
        position = span.end
    if position != available:
        raise LoadError(f"{path} holds {available:,} bytes of tensors, its header speaks of {position:,}")


def _read(path: Path, start: int, span: Span) -> F32:
    """One tensor as float32."""
    if span.dtype not in _READABLE:
        raise UnsupportedError(f"{path}: tensor {span.name!r} is {span.dtype}; weights may be F32, F16 or BF16")
    data = read_span(path, start + span.begin, math.prod(span.shape), _READABLE[span.dtype])
    values: F32 = widen_bfloat16(data) if span.dtype == "BF16" else data.astype(np.float32, copy=False)
    return values.reshape(span.shape)
