"""Hostile files, generated: each is named by what is wrong with it."""

import json
import struct
from pathlib import Path
from typing import Any

from tests.checkpoints.files import bpe, safetensors_bytes, write_tokenizer

HUGE = 2**64 - 1


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    """A header entry, right unless told otherwise."""
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def one(**changes: Any) -> bytes:
    """A file of one tensor of eight bytes."""
    return safetensors_bytes({"x": entry(**changes)}, bytes(8))


def two(first: tuple[int, int], second: tuple[int, int], data: int = 16) -> bytes:
    """A file of two tensors at given offsets."""
    header = {
        name: entry(shape=[max(0, end - begin) // 4], offsets=[begin, end])
        for name, (begin, end) in {"x": first, "y": second}.items()
    }
    return safetensors_bytes(header, bytes(data))


SAFETENSORS: dict[str, bytes] = {
    "empty": b"",
    "seven bytes": bytes(7),
    "header length 0": safetensors_bytes({}, length=0),
    "header length 2^63": safetensors_bytes({}, length=2**63),
    "header length 2^64 - 1": safetensors_bytes({}, length=HUGE),
    "header over 100 MB": safetensors_bytes({}, length=100_000_001),
    "header longer than file": safetensors_bytes({}, length=1_000),
    "header one byte longer than file": safetensors_bytes({}, length=3),
    "header not UTF-8": safetensors_bytes(b'{"\xff": 1}'),
    "header not JSON": safetensors_bytes(b"{x}"),
    "header a list": safetensors_bytes([1]),
    "header begins with a space": safetensors_bytes(b' {"x": 1}'),
    "header nested 100,000 deep": safetensors_bytes(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "header with a number of 10,000 digits": safetensors_bytes(b'{"x":' + b"9" * 10_000 + b"}"),
    "key twice": safetensors_bytes(
        b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
        bytes(8),
    ),
    "entry a number": safetensors_bytes({"x": 1}),
    "entry without dtype": safetensors_bytes({"x": {"shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
    "entry with more": safetensors_bytes({"x": entry() | {"more": 1}}, bytes(8)),
    "overlapping": two((0, 8), (4, 12), 12),
    "same place": two((0, 8), (0, 8), 8),
    "hole before": safetensors_bytes({"x": entry(offsets=[4, 12])}, bytes(12)),
    "hole between": two((0, 8), (12, 16)),
    "reversed": one(offsets=[8, 0]),
    "past the end": safetensors_bytes({"x": entry(shape=[4], offsets=[0, 16])}, bytes(8)),
    "trailing bytes": safetensors_bytes({"x": entry()}, bytes(9)),
    "size mismatch": one(shape=[3]),
    "shape [2, 2^64 - 2]": one(shape=[2, 2**64 - 2]),
    "shape [2^63, 2]": one(shape=[2**63, 2]),
    "shape of an empty tensor with a huge side": safetensors_bytes({"x": entry(shape=[0, 2**63], offsets=[0, 0])}),
    "nine dimensions": one(shape=[1] * 8 + [2]),
    "negative dimension": one(shape=[-1, -2]),
    "float dimension": one(shape=[2.0]),
    "true as a dimension": one(shape=[True, 2]),
    "shape a number": one(shape=2),
    "shape null": one(shape=None),
    "offsets negative": one(offsets=[-8, 0]),
    "offsets floats": one(offsets=[0.0, 8.0]),
    "offsets three": one(offsets=[0, 4, 8]),
    "offsets 2^64": one(offsets=[2**64 - 8, 2**64]),
    "unknown dtype": one(dtype="F31"),
    "dtype a list": one(dtype=["F32"]),
    "dtype a pickle": one(dtype="cos\nsystem\n"),
}


def text(value: str | bytes) -> bytes:
    """A GGUF string."""
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def pair(key: str | bytes, kind: int, value: bytes) -> bytes:
    """A metadata key with its value."""
    return text(key) + struct.pack("<I", kind) + value


def info(name: str = "x", shape: tuple[int, ...] = (2,), kind: int = 0, offset: int = 0) -> bytes:
    """A tensor info."""
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def gguf(
    pairs: list[bytes] | None = None,
    infos: list[bytes] | None = None,
    data: bytes = bytes(32),
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
    counts: tuple[int, int] | None = None,
) -> bytes:
    """A GGUF file of any parts, right or wrong."""
    pairs = [pair("general.architecture", 8, text("llama"))] if pairs is None else pairs
    infos = [info()] if infos is None else infos
    tensors, keys = counts or (len(infos), len(pairs))
    head = magic + struct.pack("<IQQ", version, tensors, keys) + b"".join(pairs) + b"".join(infos)
    return head + bytes(-len(head) % 32) + data


def alignment(value: int, kind: int = 4, form: str = "<I") -> bytes:
    """A file that asks for an alignment."""
    return gguf([pair("general.alignment", kind, struct.pack(form, value))])


GGUF: dict[str, bytes] = {
    "empty": b"",
    "magic only": b"GGUF",
    "wrong magic": gguf(magic=b"GGML"),
    "version 0": gguf(version=0),
    "version 1": gguf(version=1),
    "version 4": gguf(version=4),
    "version of the future": gguf(version=2**31),
    "big-endian": gguf(version=3 << 24),
    "2^64 - 1 tensors": gguf(counts=(HUGE, 1)),
    "2^64 - 1 keys": gguf(counts=(1, HUGE)),
    "a million tensors": gguf(counts=(1_000_000, 1)),
    "more keys than the file holds": gguf(counts=(1, 2_000)),
    "key of 2^64 - 1 bytes": gguf([struct.pack("<Q", HUGE) + b"x"]),
    "key beyond the file": gguf([struct.pack("<Q", 60_000) + b"x"]),
    "key not UTF-8": gguf([pair(b"\xff\xfe", 4, bytes(4))]),
    "key twice": gguf([pair("a", 4, bytes(4)), pair("a", 4, bytes(4))]),
    "string beyond the file": gguf([text("a") + struct.pack("<IQ", 8, 2**40)]),
    "string of 15 MB that is not there": gguf([text("a") + struct.pack("<IQ", 8, 15 << 20)]),
    "unknown type": gguf([pair("a", 13, bytes(8))]),
    "type 2^32 - 1": gguf([pair("a", 2**32 - 1, bytes(8))]),
    "array of 2^64 - 1": gguf([text("a") + struct.pack("<IIQ", 9, 4, HUGE)]),
    "array of four million that are not there": gguf([text("a") + struct.pack("<IIQ", 9, 10, 4 << 20)]),
    "array of four million strings that are not there": gguf([text("a") + struct.pack("<IIQ", 9, 8, 4 << 20)]),
    "array of arrays": gguf([text("a") + struct.pack("<IIQ", 9, 9, 1)]),
    "array of an unknown type": gguf([text("a") + struct.pack("<IIQ", 9, 77, 1)]),
    "tensor twice": gguf(infos=[info("x"), info("x", offset=32)], data=bytes(64)),
    "tensor without dimensions": gguf(infos=[info(shape=())]),
    "five dimensions": gguf(infos=[info(shape=(1, 1, 1, 1, 2))]),
    "2^32 - 1 dimensions": gguf(infos=[text("x") + struct.pack("<I", 2**32 - 1)]),
    "dimension 0": gguf(infos=[info(shape=(2, 0))]),
    "dimension 2^64 - 1": gguf(infos=[info(shape=(HUGE,))]),
    "shape whose product overflows": gguf(infos=[info(shape=(2**32, 2**32, 2))]),
    "shape of 2^40 by 2^40": gguf(infos=[info(shape=(2**40, 2**40))]),
    "row that is no multiple of its block": gguf(infos=[info(shape=(33,), kind=8)]),
    "unknown data type": gguf(infos=[info(kind=999)]),
    "unsupported data type": gguf(infos=[info(shape=(256,), kind=10)]),
    "offset beyond the file": gguf(infos=[info(offset=1 << 20)]),
    "offset 2^64 - 32": gguf(infos=[info(offset=2**64 - 32)]),
    "overlapping tensors": gguf(infos=[info("x", (8,)), info("y", (8,), offset=16)], data=bytes(64)),
    "data cut short": gguf(infos=[info(shape=(100,))]),
    "no data": gguf(data=b""),
    "alignment 0": alignment(0),
    "alignment 3": alignment(3),
    "alignment 33": alignment(33),
    "alignment 2^31": alignment(2**31),
    "alignment negative": alignment(-32, 5, "<i"),
    "alignment a text": gguf([pair("general.alignment", 8, text("32"))]),
}

CONFIG: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 400, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True, "eos_token_id": 2,
}  # fmt: skip

CONFIGS: dict[str, Any] = {
    "a billion layers": CONFIG | {"num_hidden_layers": 10**9},
    "no heads": CONFIG | {"num_attention_heads": 0},
    "heads that do not divide": CONFIG | {"num_attention_heads": 3},
    "kv heads that do not divide": CONFIG | {"num_attention_heads": 4, "num_key_value_heads": 3},
    "odd head size": CONFIG | {"head_dim": 7},
    "negative vocabulary": CONFIG | {"vocab_size": -1},
    "huge vocabulary": CONFIG | {"vocab_size": 10**18},
    "huge width": CONFIG | {"hidden_size": 2**40},
    "rope_theta 0": CONFIG | {"rope_theta": 0},
    "rope_theta NaN": CONFIG | {"rope_theta": float("nan")},
    "rope_theta infinite": CONFIG | {"rope_theta": float("inf")},
    "rope_theta negative": CONFIG | {"rope_theta": -1.0},
    "rope_theta a text": CONFIG | {"rope_theta": "10000"},
    "rope factor 0": CONFIG | {"rope_scaling": {"type": "linear", "factor": 0}},
    "rope factor missing": CONFIG | {"rope_scaling": {"type": "linear"}},
    "rope factors crossed": CONFIG
    | {"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 1}},
    "rope_scaling a list": CONFIG | {"rope_scaling": [1]},
    "context 1e12": CONFIG | {"max_position_embeddings": 10**12},
    "context 1e12 as a float": CONFIG | {"max_position_embeddings": 1e12},
    "epsilon NaN": CONFIG | {"rms_norm_eps": float("nan")},
    "epsilon a text": CONFIG | {"rms_norm_eps": "small"},
    "layers a text": CONFIG | {"num_hidden_layers": "1"},
    "layers true": CONFIG | {"num_hidden_layers": True},
    "layers a list": CONFIG | {"num_hidden_layers": [1]},
    "tied a text": CONFIG | {"tie_word_embeddings": "yes"},
    "eos a text": CONFIG | {"eos_token_id": "2"},
    "model_type a list": CONFIG | {"model_type": ["llama"]},
    "model_type of 10 MB": CONFIG | {"model_type": "x" * 1_000_000},
    "everything null": dict.fromkeys(CONFIG),
    "empty": {},
}

CONFIG_TEXTS: dict[str, bytes] = {
    "not JSON": b"{",
    "a list": b"[]",
    "a number of 10,000 digits": b'{"vocab_size": ' + b"9" * 10_000 + b"}",
    "nested 100,000 deep": b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "not UTF-8": b'{"\xff": 1}',
    "key twice": b'{"model_type": "llama", "model_type": "gpt2"}',
    "larger than 4 MiB": b'{"x": "' + b"a" * (5 << 20) + b'"}',
    "empty": b"",
    "NUL": b"\0" * 100,
}


def tiny_model(folder: Path) -> Path:
    """A sound Hugging Face folder of a few kilobytes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "model.safetensors").write_bytes(tiny_weights())
    write_tokenizer(folder, bpe())
    return folder


def tiny_weights() -> bytes:
    """The weights that CONFIG asks for, all the same small number."""
    shapes = {"model.embed_tokens.weight": (400, 16), "model.norm.weight": (16,)}
    layer = {
        "input_layernorm": (16,), "post_attention_layernorm": (16,), "self_attn.q_proj": (16, 16),
        "self_attn.k_proj": (8, 16), "self_attn.v_proj": (8, 16), "self_attn.o_proj": (16, 16),
        "mlp.gate_proj": (32, 16), "mlp.up_proj": (32, 16), "mlp.down_proj": (16, 32),
    }  # fmt: skip
    shapes |= {f"model.layers.0.{name}.weight": shape for name, shape in layer.items()}
    header: dict[str, Any] = {}
    position = 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F16", "shape": list(shape), "data_offsets": [position, position + size]}
        position += size
    return safetensors_bytes(header, b"\x00\x2c" * (position // 2))
