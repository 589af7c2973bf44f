"""Weights by Hugging Face name: their shapes are known at once, their numbers are read when asked for, and not kept.

Tensors are read, not memory-mapped: a file cut short in the meantime is an error then, not a bus error, and its pages
do not stay in resident memory beside the model.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specdec.errors import LoadError

F32 = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class LazyTensor:
    """A tensor in a file."""

    shape: tuple[int, ...]
    read: Callable[[], F32]


class Weights(Mapping[str, F32]):
    """Every access reads the tensor afresh as float32; LoadError where the file no longer holds it."""

    def __init__(self, tensors: Mapping[str, LazyTensor]) -> None:
        self._tensors = dict(tensors)

    def __getitem__(self, name: str) -> F32:
        return self._tensors[name].read()

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor, without reading it."""
        return self._tensors[name].shape

    def renamed(self, rename: Callable[[str], str]) -> "Weights":
        """The same tensors under other names."""
        return Weights({rename(name): tensor for name, tensor in self._tensors.items()})

    def size(self, name: str) -> int:
        """Numbers in a tensor."""
        return math.prod(self.shape(name))

    def watched(self, report: Callable[[int, int], None]) -> "Weights":
        """The same tensors; each reading is reported as (numbers read so far, numbers in all)."""
        return _WatchedWeights(self._tensors, report)


class _WatchedWeights(Weights):
    def __init__(self, tensors: Mapping[str, LazyTensor], report: Callable[[int, int], None]) -> None:
        super().__init__(tensors)
        self._unread = set(tensors)
        self._report = report
        self._total = sum(map(self.size, tensors))

    def __getitem__(self, name: str) -> F32:
        values = super().__getitem__(name)
        self._unread.discard(name)
        self._report(self._total - sum(map(self.size, self._unread)), self._total)
        return values


def read_span(path: Path, offset: int, count: int, dtype: str) -> NDArray[Any]:
    """`count` numbers from byte `offset` on."""
    try:
        data = np.fromfile(path, dtype=dtype, count=count, offset=offset)
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror or error}") from error
    if data.size != count:
        raise LoadError(f"{path} ends in the middle of a tensor: it was cut short after it was opened")
    return data


def widen_bfloat16(bits: NDArray[np.uint16]) -> F32:
    """bfloat16 is the upper half of a float32; NumPy has no such type, so it arrives as bits."""
    wide = bits.astype(np.uint32)
    wide <<= np.uint32(16)
    return wide.view(np.float32)
