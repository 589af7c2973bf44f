"""GGUF files: metadata, tensor infos, then the tensors, aligned.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian. The header is read
here, strictly: the `gguf` library's own reader trusts the file's counts and lengths. That library's dequantisation is
what turns blocks into numbers. Not read: version 1, big-endian files, nested arrays, files split in parts.
"""

import math
import struct
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from specdec.checkpoints.files import require_regular
from specdec.checkpoints.gguf_types import TensorType, dequantise, tensor_type
from specdec.checkpoints.weights import LazyTensor
from specdec.errors import ConfigError, LoadError, NotFoundError, UnsupportedError

MAGIC = b"GGUF"
MAX_KEYS = 4_096
MAX_TENSORS = 65_536
MAX_KEY_BYTES = 65_535
MAX_STRING_BYTES = 16 << 20
MAX_ARRAY_ITEMS = 4 << 20
MAX_DIMENSIONS = 4
MAX_DIMENSION = 1 << 40
DEFAULT_ALIGNMENT = 32
MAX_ALIGNMENT = 1 << 16

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


@dataclass(frozen=True, slots=True)
class GGUFFile:
    """What the file says about itself, and its tensors by GGUF name, shapes as NumPy's (rows first)."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, LazyTensor]

    def value(self, key: str, default: Any = None) -> Any:
        """A number, truth value or text; ConfigError where the file has a list."""
        value = self.metadata.get(key, default)
        if isinstance(value, list | np.ndarray):
            raise ConfigError(f"{self.path}: {key} must be one value, not a list")
        return value


@dataclass(frozen=True, slots=True)
class _Info:
    name: str
    shape: tuple[int, ...]
    kind: TensorType
    offset: int

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) // self.kind.block_items * self.kind.block_bytes


def read_gguf(path: Path) -> GGUFFile:
    """Read all but the tensors; LoadError, before any large allocation, where the file contradicts itself."""
    if not path.exists():
        raise NotFoundError(f"there is no file {path}")
    require_regular(path, path)
    try:
        with path.open("rb") as file:
            return _Header(path, file).read()
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror or error}") from error


class _Header:
    """A walk through the header that never reads past the file's end, nor more than a limit at once."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._size = path.stat().st_size

    def read(self) -> GGUFFile:
        self._check_version()
        tensor_count = self._limited(self._number("Q"), MAX_TENSORS, "tensors")
        metadata = self._metadata(self._limited(self._number("Q"), MAX_KEYS, "metadata keys"))
        infos = [self._info() for _ in range(tensor_count)]
        start = self._data_start(metadata)
        self._check_layout(infos, start)
        tensors = {
            info.name: LazyTensor(
                info.shape, partial(dequantise, self._path, start + info.offset, info.shape, info.kind)
            )
            for info in infos
        }
        return GGUFFile(self._path, metadata, tensors)

    def fail(self, problem: str) -> LoadError:
        return LoadError(f"{self._path}: {problem}")

    def _check_version(self) -> None:
        if self._take(4) != MAGIC:
            raise self.fail("not a GGUF file")
        version = self._number("I")
        if version and not version & 0xFFFF:
            raise UnsupportedError(f"{self._path}: big-endian GGUF files are not supported")
        if version not in (2, 3):
            raise UnsupportedError(f"{self._path}: GGUF version {version} is not supported; 2 and 3 are")

    def _metadata(self, count: int) -> dict[str, Any]:
        metadata: dict[str, Any] = {}
        for _ in range(count):
            key = self._string(MAX_KEY_BYTES)
            if key in metadata:
                raise self.fail(f"metadata key {key[:100]!r} appears twice")
            metadata[key] = self._value(key, self._number("I"))
        return metadata

    def _value(self, key: str, kind: int) -> Any:
        if kind == _STRING:
            return self._string(MAX_STRING_BYTES)
        if kind == _ARRAY:
            return self._array(key)
        if kind not in _SCALARS:
            raise self.fail(f"metadata key {key[:100]!r} has the unknown type {kind}")
        return self._number(_SCALARS[kind])

    def _array(self, key: str) -> list[str] | NDArray[Any]:
        kind = self._number("I")
        count = self._limited(self._number("Q"), MAX_ARRAY_ITEMS, f"items of {key[:100]!r}")
        if kind == _STRING:
            return [self._string(MAX_STRING_BYTES) for _ in range(count)]
        if kind not in _SCALARS:
            raise self.fail(f"metadata key {key[:100]!r} is an array of the unsupported type {kind}")
        dtype = np.dtype(f"<{_SCALARS[kind]}" if _SCALARS[kind] != "?" else "?")
        return np.frombuffer(self._take(count * dtype.itemsize), dtype)

    def _info(self) -> _Info:
        name = self._string(MAX_KEY_BYTES)
        where = f"tensor {name[:100]!r}"
        dimensions = self._limited(self._number("I"), MAX_DIMENSIONS, f"dimensions of {where}")
        shape = tuple(self._limited(self._number("Q"), MAX_DIMENSION, f"rows of {where}") for _ in range(dimensions))
        kind, offset = tensor_type(self._number("I"), f"{self._path}: {where}"), self._number("Q")
        if not shape or 0 in shape or shape[0] % kind.block_items:
            raise self.fail(f"{where} has a shape that {kind.name} cannot have: {list(reversed(shape))}")
        return _Info(name, shape[::-1], kind, offset)

    def _data_start(self, metadata: dict[str, Any]) -> int:
        alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        if type(alignment) is not int or not 8 <= alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
            raise self.fail(
                f"general.alignment must be a power of two from 8 to {MAX_ALIGNMENT}, not {alignment!r:.40}"
            )
        return -(-self._file.tell() // alignment) * alignment

    def _check_layout(self, infos: list[_Info], start: int) -> None:
        """Every tensor inside the file, none over another, no name twice."""
        names: set[str] = set()
        position = 0
        for info in sorted(infos, key=lambda info: info.offset):
            where = f"tensor {info.name[:100]!r}"
            if info.name in names:
                raise self.fail(f"{where} appears twice")
            if info.offset < position:
                raise self.fail(f"{where} overlaps another one")
            position = info.offset + info.bytes
            if start + position > self._size:
                raise self.fail(f"{where} ends at byte {start + position:,}, the file at {self._size:,}")
            names.add(info.name)

    def _string(self, limit: int) -> str:
        length = self._number("Q")
        if length > limit:
            raise self.fail(f"a string of {length:,} bytes, more than {limit:,}")
        try:
            return self._take(length).decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.fail("a string that is not UTF-8") from error

    def _number(self, form: str) -> Any:
        form = "<" + form
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _take(self, count: int) -> bytes:
        data = self._file.read(count) if count <= self._size else b""
        if len(data) != count:
            raise self.fail("the file ends within its header")
        return data

    def _limited(self, count: int, limit: int, what: str) -> int:
        if count > limit:
            raise self.fail(f"{count:,} {what}, more than {limit:,}")
        return count
