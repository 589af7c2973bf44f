"""safetensors: the numbers are exact, shards are one model, and the reference implementation's files are read."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

from specdec.checkpoints.files import ModelFolder
from specdec.checkpoints.safetensors_file import open_safetensors, open_weights
from specdec.errors import LoadError, NotFoundError, UnsupportedError
from tests.checkpoints.files import safetensors_bytes, safetensors_of

BFLOAT16 = {
    0x0000: 0.0, 0x8000: -0.0, 0x3F80: 1.0, 0xBF80: -1.0, 0x4000: 2.0, 0x3F81: 1.0078125, 0x3DCC: 0.099609375,
    0x7F7F: 3.3895313892515355e38, 0x0080: 1.1754943508222875e-38, 0x0001: 9.183549615799121e-41,
    0x7F80: np.inf, 0xFF80: -np.inf, 0x7FC0: np.nan,
}  # fmt: skip
FLOAT16 = {
    0x0000: 0.0, 0x8000: -0.0, 0x3C00: 1.0, 0xC000: -2.0, 0x3555: 0.333251953125, 0x7BFF: 65504.0,
    0x0400: 6.103515625e-05, 0x0001: 5.960464477539063e-08, 0x7C00: np.inf, 0xFC00: -np.inf, 0x7E00: np.nan,
}  # fmt: skip


@pytest.mark.parametrize(("dtype", "table"), [("BF16", BFLOAT16), ("F16", FLOAT16)])
def test_half_precision_values_are_exact(tmp_path: Path, dtype: str, table: dict[int, float]) -> None:
    """Every value of the table, subnormals, signed zero, infinities and NaN included, arrives as that float32."""
    bits = struct.pack(f"<{len(table)}H", *table)
    (tmp_path / "t.safetensors").write_bytes(safetensors_of({"x": (dtype, [len(table)], bits)}))
    values = open_safetensors(tmp_path / "t.safetensors")["x"].read()
    expected = np.array(list(table.values()), np.float32)
    assert values.dtype == np.float32
    assert np.array_equal(values, expected, equal_nan=True)
    assert np.array_equal(np.signbit(values), np.signbit(expected))


def test_all_65536_bfloat16_values_equal_torchs(tmp_path: Path) -> None:
    """No bit pattern is read otherwise than PyTorch reads it."""
    tensor = torch.arange(65536, dtype=torch.int32).to(torch.uint16).view(torch.bfloat16)
    safetensors.torch.save_file({"x": tensor}, tmp_path / "t.safetensors")
    values = open_safetensors(tmp_path / "t.safetensors")["x"].read()
    assert np.array_equal(values.view(np.uint32), tensor.float().numpy().view(np.uint32))


def test_float32_is_read_bit_for_bit_and_in_shape(tmp_path: Path) -> None:
    """Matrices, vectors, scalars and empty tensors of the library's own writer come back unchanged."""
    rng = np.random.default_rng(0)
    written = {
        "matrix": rng.standard_normal((3, 5), np.float32),
        "vector": rng.standard_normal(7, np.float32),
        "cube": rng.standard_normal((2, 3, 4), np.float32),
        "scalar": np.array(2.5, np.float32),
        "empty": np.zeros((0, 4), np.float32),
    }
    safetensors.numpy.save_file(written, tmp_path / "t.safetensors", metadata={"format": "pt"})
    read = open_safetensors(tmp_path / "t.safetensors")
    assert read.keys() == written.keys()
    for name, values in written.items():
        assert read[name].shape == values.shape
        assert read[name].read().tobytes() == values.tobytes()


def test_shards_are_one_model(tmp_path: Path) -> None:
    """Tensors of several files are found through the index."""
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    for value, name in enumerate(shards):
        safetensors.numpy.save_file({f"t{value}": np.full((2,), value, np.float32)}, tmp_path / name)
    index = {"metadata": {"total_size": 16}, "weight_map": {"t0": shards[0], "t1": shards[1]}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    weights = open_weights(ModelFolder(tmp_path))
    assert sorted(weights) == ["t0", "t1"]
    assert "t1" in weights
    assert weights["t1"].tolist() == [1.0, 1.0]
    assert weights.shape("t0") == (2,)


@pytest.mark.parametrize(
    ("weight_map", "error"),
    [
        ({"t0": "model-00009-of-00009.safetensors"}, NotFoundError),
        ({"other": "model.safetensors-1.safetensors"}, LoadError),
        ({"t0": "pytorch_model.bin"}, UnsupportedError),
        ({"t0": "../model-00001-of-00002.safetensors"}, LoadError),
        ({"t0": "/etc/passwd.safetensors"}, LoadError),
        ({"t0": 3}, LoadError),
        (["t0"], LoadError),
    ],
)
def test_an_index_that_does_not_fit_its_files_is_refused(
    tmp_path: Path, weight_map: object, error: type[Exception]
) -> None:
    """A missing shard, a tensor that is not in its shard, a pickle, a path: one error naming what is wrong."""
    safetensors.numpy.save_file({"t0": np.zeros(1, np.float32)}, tmp_path / "model.safetensors-1.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(error):
        open_weights(ModelFolder(tmp_path))


def test_a_pickle_is_refused_by_name(tmp_path: Path) -> None:
    """pytorch_model.bin is a pickle: never opened, and the message says so."""
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(UnsupportedError, match="pickle, which is never opened"):
        open_weights(ModelFolder(tmp_path))


def test_integer_tensors_are_no_weights_but_do_no_harm(tmp_path: Path) -> None:
    """GPT-2's checkpoints carry mask buffers: unread they do not matter, read they are refused by name."""
    raw = {"mask": ("U8", [4], b"\1\0\1\0"), "w": ("F32", [1], struct.pack("<f", 1.5))}
    (tmp_path / "t.safetensors").write_bytes(safetensors_of(raw))
    tensors = open_safetensors(tmp_path / "t.safetensors")
    assert tensors["w"].read().tolist() == [1.5]
    with pytest.raises(UnsupportedError, match="'mask' is U8"):
        tensors["mask"].read()


def test_a_file_cut_short_after_opening_is_an_error(tmp_path: Path) -> None:
    """Tensors are read, not mapped: losing the file's end costs an exception, not the process."""
    path = tmp_path / "t.safetensors"
    path.write_bytes(safetensors_of({"x": ("F32", [1000], bytes(4000))}))
    tensor = open_safetensors(path)["x"]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(LoadError, match="cut short"):
        tensor.read()


def test_what_is_read_the_library_reads_too(tmp_path: Path) -> None:
    """The reader is no laxer than the reference implementation on files with one wrong number."""
    good = {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    wrong = [
        good | {"y": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}},
        {"x": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}},
        {"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}},
        {"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}},
    ]
    for header in [good, *wrong]:
        raw = safetensors_bytes(header, bytes(8))
        (tmp_path / "t.safetensors").write_bytes(raw)
        if header is good:
            assert open_safetensors(tmp_path / "t.safetensors").keys() == safetensors.numpy.load(raw).keys()
            continue
        with pytest.raises(safetensors.SafetensorError):
            safetensors.numpy.load(raw)
        with pytest.raises(LoadError):
            open_safetensors(tmp_path / "t.safetensors")
