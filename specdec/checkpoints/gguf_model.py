"""GGUF metadata and tensors as `ModelConfig` and weights under their Hugging Face names.

Follows llama.cpp's converter (`conversion/` and `gguf-py/gguf/tensor_mapping.py`) backwards. For the architecture
`llama`, and only there, it reorders the rows of q and k for rotary embeddings that pair neighbours; they are put back
into the half-split order. A tensor that this module does not know is refused: it would change the arithmetic.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from specdec.checkpoints.gguf_file import GGUFFile
from specdec.checkpoints.weights import F32, LazyTensor, Weights
from specdec.config import Family, ModelConfig, RopeConfig
from specdec.errors import ConfigError, LoadError, UnsupportedError
from specdec.model.rotary import frequencies

_LLAMA_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_GPT2_NAMES = {
    "token_embd": "transformer.wte",
    "position_embd": "transformer.wpe",
    "output_norm": "transformer.ln_f",
    "output": "lm_head",
    "attn_norm": "ln_1",
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
}
_CONV1D = ("attn_qkv.weight", "attn_output.weight", "ffn_up.weight", "ffn_down.weight")
_NAME = re.compile(r"(?:blk\.(?P<layer>\d{1,6})\.)?(?P<part>[a-z0-9_]+)\.(?P<kind>weight|bias)")
_ROPE_FREQS = "rope_freqs.weight"


@dataclass(frozen=True, slots=True)
class _Architecture:
    family: Family
    names: Mapping[str, str]
    layers: str
    permuted: bool = False


_ARCHITECTURES = {
    "llama": _Architecture("llama", _LLAMA_NAMES, "model.layers", permuted=True),
    "qwen2": _Architecture("llama", _LLAMA_NAMES, "model.layers"),
    "gpt2": _Architecture("gpt2", _GPT2_NAMES, "transformer.h"),
}


def config_from_gguf(file: GGUFFile) -> ModelConfig:
    """ModelConfig of a GGUF file; ConfigError or UnsupportedError name the key at fault."""
    metadata = _Metadata(file)
    family = metadata.architecture.family
    heads, width = metadata.count("attention.head_count"), metadata.count("embedding_length")
    _refuse_what_differs(file, metadata)
    norm = "attention.layer_norm_epsilon" if family == "gpt2" else "attention.layer_norm_rms_epsilon"
    return ModelConfig(
        family=family,
        vocab_size=_vocab_size(file),
        hidden_size=width,
        num_layers=metadata.count("block_count"),
        num_heads=heads,
        num_kv_heads=metadata.count("attention.head_count_kv", heads),
        head_dim=_head_dim(metadata, width, heads),
        intermediate_size=metadata.count("feed_forward_length"),
        context_length=metadata.count("context_length"),
        norm_eps=metadata.get(norm, 1e-5),
        rope=_rope(file, metadata) if family == "llama" else RopeConfig(),
        qkv_bias="blk.0.attn_q.bias" in file.tensors or "blk.0.attn_qkv.bias" in file.tensors,
        output_bias="blk.0.attn_output.bias" in file.tensors,
        mlp_bias="blk.0.ffn_up.bias" in file.tensors,
        tie_word_embeddings="output.weight" not in file.tensors,
    )


def weights_from_gguf(file: GGUFFile, config: ModelConfig) -> Weights:
    """The tensors by Hugging Face name, in that library's order of rows and columns."""
    architecture = _Metadata(file).architecture
    heads = {"attn_q": config.num_heads, "attn_k": config.num_kv_heads} if architecture.permuted else {}
    tensors = {}
    for name, tensor in file.tensors.items():
        if name == _ROPE_FREQS or name.endswith(".attn_rot_embd.weight"):
            continue
        found = _NAME.fullmatch(name)
        if found is None or found["part"] not in architecture.names:
            raise UnsupportedError(f"{file.path}: tensor {name[:100]!r} belongs to no model this engine runs")
        part, kind = found["part"], found["kind"]
        prefix = "" if found["layer"] is None else f"{architecture.layers}.{int(found['layer'])}."
        if part in heads:
            tensor = LazyTensor(tensor.shape, partial(_unpermuted, file, name, heads[part]))
        elif architecture.family == "gpt2" and name.endswith(_CONV1D):
            tensor = LazyTensor(tensor.shape[::-1], partial(_transposed, tensor))
        tensors[f"{prefix}{architecture.names[part]}.{kind}"] = tensor
    return Weights(tensors)


class _Metadata:
    """The keys of the file's own architecture, by their names without it."""

    def __init__(self, file: GGUFFile) -> None:
        self._file = file
        name = file.value("general.architecture")
        if not isinstance(name, str) or name not in _ARCHITECTURES:
            raise UnsupportedError(
                f"{file.path}: architecture {name!r:.60} is not supported; {', '.join(_ARCHITECTURES)} are"
            )
        self._prefix = name
        self.architecture = _ARCHITECTURES[name]

    def get(self, key: str, default: Any = None) -> Any:
        return self._file.value(f"{self._prefix}.{key}", default)

    def count(self, key: str, default: int | None = None) -> int:
        value = self.get(key, default)
        if type(value) is not int or value < 1:
            raise ConfigError(f"{self._prefix}.{key} must be a positive whole number, not {value!r:.60}")
        return value


def _refuse_what_differs(file: GGUFFile, metadata: _Metadata) -> None:
    if file.value("split.count") not in (None, 0, 1):
        raise UnsupportedError(f"{file.path} is one part of several; only whole files are supported")
    for key in ("expert_count", "attention.sliding_window"):
        if metadata.get(key):
            raise UnsupportedError(f"{key} {metadata.get(key)!r:.60} is not supported")


def _vocab_size(file: GGUFFile) -> int:
    table = file.tensors.get("token_embd.weight")
    if table is None or len(table.shape) != 2:
        raise LoadError(f"{file.path} has no table of token embeddings (token_embd.weight)")
    return table.shape[0]


def _head_dim(metadata: _Metadata, width: int, heads: int) -> int:
    if metadata.get("attention.key_length") is None and width % heads:
        raise ConfigError(f"{heads} attention heads do not divide a width of {width}")
    size = metadata.count("attention.key_length", width // heads)
    for key in ("attention.value_length", "rope.dimension_count"):
        if metadata.get(key, size) != size:
            raise UnsupportedError(f"{key} {metadata.get(key)!r:.60} for heads of {size} is not supported")
    return size


def _rope(file: GGUFFile, metadata: _Metadata) -> RopeConfig:
    theta = metadata.get("rope.freq_base", 10_000.0)
    if _ROPE_FREQS in file.tensors:
        return _llama3_rope(file, theta)
    kind = metadata.get("rope.scaling.type", "linear" if metadata.get("rope.scale_linear") else "none")
    if kind == "none":
        return RopeConfig(theta=theta)
    if kind != "linear":
        raise UnsupportedError(f"rope.scaling.type {kind!r:.60} is not supported; none, linear and llama3's are")
    return RopeConfig(
        theta=theta, scaling="linear", factor=metadata.get("rope.scaling.factor", metadata.get("rope.scale_linear"))
    )


def _llama3_rope(file: GGUFFile, theta: Any) -> RopeConfig:
    """llama3 scaling, which llama.cpp stores as a tensor of divisors; refused where they are not that rule's."""
    divisors = file.tensors[_ROPE_FREQS].read().reshape(-1)
    rope = RopeConfig(
        theta=theta, scaling="llama3", factor=float(divisors.max()), low_freq_factor=1.0, high_freq_factor=4.0
    )
    size = 2 * divisors.size
    if not np.allclose(divisors, frequencies(RopeConfig(theta=theta), size) / frequencies(rope, size), rtol=1e-3):
        raise UnsupportedError(f"{file.path}: {_ROPE_FREQS} is not the scaling of Llama 3.1, the only one supported")
    return rope


def _unpermuted(file: GGUFFile, name: str, heads: int) -> F32:
    """Rows of q or k from interleaved to half-split rotary order."""
    values = file.tensors[name].read()
    rows = values.shape[0]
    if rows % (2 * heads):
        raise LoadError(f"{file.path}: tensor {name} has {rows} rows, which {heads} heads do not divide")
    pairs = values.reshape(heads, rows // heads // 2, 2, *values.shape[1:])
    return pairs.swapaxes(1, 2).reshape(values.shape)


def _transposed(tensor: LazyTensor) -> F32:
    return np.ascontiguousarray(tensor.read().T)
