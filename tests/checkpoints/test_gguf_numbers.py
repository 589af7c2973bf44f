"""GGUF tensors: every data type gives the numbers its specification says, in any chunking."""

import math
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind
from numpy.typing import NDArray

from specdec.checkpoints import gguf_types
from specdec.checkpoints.gguf_file import read_gguf
from specdec.checkpoints.gguf_types import SUPPORTED, TensorType, dequantise
from tests.checkpoints.files import write_gguf

WRITABLE = [Kind.F32, Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1]


@pytest.mark.parametrize("kind", WRITABLE, ids=lambda kind: kind.name)
def test_what_the_library_quantises_is_read_back_exactly(tmp_path: Path, kind: Kind) -> None:
    """Reading equals the library's own quantise-dequantise, number by number, and is close to the original."""
    values = np.random.default_rng(0).standard_normal((6, 64), np.float32)
    path = write_gguf(tmp_path / "t.gguf", {}, {"x": values}, kinds={"x": kind})
    read = read_gguf(path).tensors["x"]
    expected = gguf.quants.dequantize(gguf.quants.quantize(values, kind), kind)
    assert read.shape == (6, 64)
    assert np.array_equal(read.read(), expected)
    assert np.abs(read.read() - values).max() < 0.5


@pytest.mark.parametrize("kind", [Kind.F16, Kind.Q4_1], ids=lambda kind: kind.name)
def test_chunks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind) -> None:
    """A tensor read 64 numbers at a time, with a remainder, is the same tensor."""
    values = np.random.default_rng(1).standard_normal((5, 96), np.float32)
    path = write_gguf(tmp_path / "t.gguf", {}, {"x": values}, kinds={"x": kind})
    whole = read_gguf(path).tensors["x"].read()
    monkeypatch.setattr(gguf_types, "CHUNK_ITEMS", 64)
    assert np.array_equal(read_gguf(path).tensors["x"].read(), whole)


def q4_k(block: bytes) -> list[float]:
    """144 bytes: d, dmin (f16), 12 bytes of 6-bit scales and minima, 128 bytes of nibbles (ggml's block_q4_K)."""
    d, dmin = np.frombuffer(block[:4], np.float16).astype(np.float32)
    return [
        float(
            np.float32(d * np.float32(scale)) * np.float32(nibble(block[16:], group, i))
            - np.float32(dmin * np.float32(low))
        )
        for group in range(8)
        for scale, low in [scale_and_minimum(block[4:16], group)]
        for i in range(32)
    ]


def q5_k(block: bytes) -> list[float]:
    """176 bytes: as q4_K, with 32 bytes of fifth bits between scales and nibbles."""
    d, dmin = np.frombuffer(block[:4], np.float16).astype(np.float32)
    high, low_bits = block[16:48], block[48:]
    out = []
    for group in range(8):
        scale, low = scale_and_minimum(block[4:16], group)
        for i in range(32):
            value = nibble(low_bits, group, i) | (high[i] >> group & 1) << 4
            out.append(
                float(np.float32(d * np.float32(scale)) * np.float32(value) - np.float32(dmin * np.float32(low)))
            )
    return out


def q6_k(block: bytes) -> list[float]:
    """210 bytes: 128 of low nibbles, 64 of high pairs, 16 signed scales, d (f16)."""
    low, high, scales = block[:128], block[128:192], np.frombuffer(block[192:208], np.int8)
    d = np.float32(np.frombuffer(block[208:], np.float16)[0])
    out = []
    for index in range(256):
        half, rest = divmod(index, 128)
        quarter, i = divmod(rest, 32)
        bits = low[64 * half + 32 * (quarter & 1) + i] >> 4 * (quarter >> 1) & 15
        bits |= (high[32 * half + i] >> 2 * quarter & 3) << 4
        out.append(float(np.float32(d * np.float32(scales[index // 16])) * np.float32(bits - 32)))
    return out


def nibble(data: bytes, group: int, i: int) -> int:
    """Groups of 32 share bytes in pairs: the even one in the low nibbles, the odd one in the high."""
    return data[32 * (group // 2) + i] >> 4 * (group & 1) & 15


def scale_and_minimum(data: bytes, group: int) -> tuple[int, int]:
    """ggml's get_scale_min_k4."""
    if group < 4:
        return data[group] & 63, data[group + 4] & 63
    return data[group + 4] & 15 | (data[group - 4] >> 6) << 4, data[group + 4] >> 4 | (data[group] >> 6) << 4


@pytest.mark.parametrize(
    ("name", "reference"), [("Q4_K", q4_k), ("Q5_K", q5_k), ("Q6_K", q6_k)], ids=["Q4_K", "Q5_K", "Q6_K"]
)
def test_k_quants_equal_their_definition(tmp_path: Path, name: str, reference: Callable[[bytes], list[float]]) -> None:
    """The library cannot write these: random blocks against the definition in ggml, spelled out number by number."""
    kind = Kind[name]
    items, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = np.random.default_rng(2).integers(0, 256, (4, size), np.uint8)
    half = slice(208, 210) if name == "Q6_K" else slice(0, 4)
    blocks[:, half] = (
        np.random.default_rng(3).uniform(-2, 2, (4, (half.stop - half.start) // 2)).astype(np.float16).view(np.uint8)
    )
    (tmp_path / "raw").write_bytes(b"12345678" + blocks.tobytes())
    read = dequantise(tmp_path / "raw", 8, (4, items), TensorType(name, int(kind), items, size))
    expected: NDArray[np.float32] = np.array([reference(block.tobytes()) for block in blocks], np.float32)
    assert np.array_equal(read, expected)


def test_the_supported_types_are_the_tested_ones() -> None:
    """Nothing is offered that no test has looked at."""
    assert set(SUPPORTED) == {kind.name for kind in WRITABLE} | {"Q4_K", "Q5_K", "Q6_K"}
    assert all(math.prod(gguf.GGML_QUANT_SIZES[Kind[name]]) for name in SUPPORTED)
