"""5,000 seeded flips and truncations of a small sound file of each kind: an error of ours, or a model; nothing else."""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from specdec.checkpoints.checkpoint import open_checkpoint
from specdec.checkpoints.files import ModelFolder
from specdec.checkpoints.gguf_file import read_gguf
from specdec.checkpoints.safetensors_file import INDEX, open_safetensors, open_weights
from specdec.errors import ConfigError, LoadError
from specdec.tokenizer import Tokenizer
from tests.attacks.files import tiny_model
from tests.checkpoints.files import bpe, safetensors_of, tokenizer_metadata, write_gguf

ROUNDS = 5_000


def mutations(raw: bytes, seed: int, rounds: int = ROUNDS) -> Iterator[bytes]:
    """Byte flips (one to four, anywhere or in the first 300 bytes), insertions, deletions, truncations."""
    rng = random.Random(seed)
    for _ in range(rounds):
        data = bytearray(raw)
        reach = rng.choice([len(raw), min(300, len(raw))])
        kind = rng.randrange(8)
        position = rng.randrange(reach)
        if kind == 0:
            del data[position:]
        elif kind == 1:
            del data[position : position + rng.randrange(1, 9)]
        elif kind == 2:
            data[position:position] = rng.randbytes(rng.randrange(1, 9))
        else:
            for _ in range(rng.randrange(1, 5)):
                data[rng.randrange(reach)] = rng.choice([0, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        yield bytes(data)


def survive(path: Path, seed: int, read: Callable[[Path], object], rounds: int = ROUNDS) -> tuple[int, int]:
    """How many mutations were refused and how many read; any other exception fails the test."""
    refused = good = 0
    for data in mutations(path.read_bytes(), seed, rounds):
        path.write_bytes(data)
        try:
            read(path)
            good += 1
        except (LoadError, ConfigError):
            refused += 1
    return refused, good


def test_safetensors(tmp_path: Path) -> None:
    """Header and tensors are read; most mutations of the header are refused, of the numbers are not."""
    path = tmp_path / "model.safetensors"
    values = np.arange(24, dtype=np.float16)
    path.write_bytes(safetensors_of({name: ("F16", [2, 4], values[:8].tobytes()) for name in ("a", "b", "c")}))
    refused, good = survive(path, 1, lambda path: [tensor.read() for tensor in open_safetensors(path).values()])
    assert refused > 1000
    assert good > 100


def test_gguf(tmp_path: Path) -> None:
    """Metadata, a quantised tensor, a plain one."""
    metadata = {
        "general.name": "toy",
        "llama.block_count": 3,
        "tokenizer.ggml.tokens": ["a", "b"],
        "x.scores": [0.5, 1.5],
    }
    tensors = {"a": np.ones((2, 32), np.float32), "b": np.ones(4, np.float32)}
    path = write_gguf(tmp_path / "model.gguf", metadata, tensors)
    refused, good = survive(path, 2, lambda path: [tensor.read() for tensor in read_gguf(path).tensors.values()])
    assert refused > 1000
    assert good > 100


def test_gguf_as_a_model(tmp_path: Path) -> None:
    """The whole way to configuration and tokenizer (fewer rounds: each builds a tokenizer)."""
    metadata = tokenizer_metadata(bpe(vocab_size=270), "smollm", chat_template="{{ messages }}")
    metadata |= {
        "llama.block_count": 1, "llama.context_length": 64, "llama.embedding_length": 16,
        "llama.feed_forward_length": 32, "llama.attention.head_count": 2,
        "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.rope.freq_base": 1e4,
    }  # fmt: skip
    path = write_gguf(tmp_path / "model.gguf", metadata, {"token_embd.weight": np.ones((270, 16), np.float32)})
    assert open_checkpoint(path).config.num_layers == 1
    refused, good = survive(path, 3, open_checkpoint, 1_000)
    assert refused > 100
    assert good > 100


def test_config_json(tmp_path: Path) -> None:
    """config.json and generation_config.json of an otherwise sound folder."""
    folder = tiny_model(tmp_path / "model")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    (folder / "generation_config.json").write_text('{"eos_token_id": [1, 2], "bos_token_id": 0}')
    originals = {name: (folder / name).read_bytes() for name in ("config.json", "generation_config.json")}
    for seed, name in enumerate(originals):
        refused, good = survive(folder / name, 4 + seed, lambda path: open_checkpoint(path.parent), ROUNDS // 2)
        assert refused > 500
        assert good > 50
        (folder / name).write_bytes(originals[name])


def test_index_json(tmp_path: Path) -> None:
    """The index of shards."""
    shard = "model-00001-of-00001.safetensors"
    (tmp_path / shard).write_bytes(safetensors_of({"a": ("F32", [1], bytes(4)), "b": ("F32", [1], bytes(4))}))
    (tmp_path / INDEX).write_text(
        f'{{"metadata": {{"total_size": 8}}, "weight_map": {{"a": "{shard}", "b": "{shard}"}}}}'
    )
    refused, good = survive(tmp_path / INDEX, 6, lambda path: open_weights(ModelFolder(path.parent)))
    assert refused > 1000
    assert good > 20


def test_tokenizer_json(tmp_path: Path) -> None:
    """Whatever the Rust library says, panics included, arrives as a LoadError; what loads, encodes."""
    path = tmp_path / "tokenizer.json"
    path.write_text(bpe(vocab_size=262).to_str())

    def read(path: Path) -> None:
        try:
            text = path.read_bytes().decode()
        except UnicodeDecodeError as error:
            raise LoadError("not UTF-8") from error
        Tokenizer(text).encode("Once upon a time 🙂")

    refused, good = survive(path, 7, read)
    assert refused > 1000
    assert good > 20


@pytest.fixture(autouse=True)
def _tidy(tmp_path: Path) -> Iterator[None]:
    yield
    shutil.rmtree(tmp_path, ignore_errors=True)
