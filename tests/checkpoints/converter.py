"""Hugging Face models to GGUF files, as llama.cpp's converter writes them: its names, its order of q and k."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from tests.checkpoints.files import write_gguf

_LLAMA = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip
_GPT2 = {
    "transformer.wte": "token_embd", "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm",
    "lm_head": "output", "ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
}  # fmt: skip


def permuted(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """llama.cpp's `permute`: half-split to interleaved rotary order."""
    split = values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:])
    return split.swapaxes(1, 2).reshape(values.shape)


def to_gguf(
    model: PreTrainedModel,
    path: Path,
    architecture: str,
    *,
    metadata: dict[str, Any] | None = None,
    kinds: dict[str, gguf.GGMLQuantizationType] | None = None,
) -> Path:
    """Write the model; `metadata` is added to, and goes over, what the configuration says."""
    config = model.config
    tensors = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        tensors[_gguf_name(name, architecture)] = _stored(name, tensor.numpy(), config, architecture)
    keys = _gpt2_keys(config) if architecture == "gpt2" else _llama_keys(config, architecture)
    return write_gguf(path, keys | (metadata or {}), tensors, architecture=architecture, kinds=kinds)


def _gguf_name(name: str, architecture: str) -> str:
    stem, _, kind = name.rpartition(".")
    parts = stem.split(".")
    names = _GPT2 if architecture == "gpt2" else _LLAMA
    if len(parts) > 2 and parts[2].isdigit():
        return f"blk.{parts[2]}.{names['.'.join(parts[3:])]}.{kind}"
    return f"{names[stem]}.{kind}"


def _stored(name: str, values: NDArray[np.float32], config: Any, architecture: str) -> NDArray[np.float32]:
    if architecture == "llama" and "q_proj" in name:
        return permuted(values, config.num_attention_heads)
    if architecture == "llama" and "k_proj" in name:
        return permuted(values, config.num_key_value_heads)
    if architecture == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
        return np.ascontiguousarray(values.T)
    return values


def _llama_keys(config: Any, prefix: str) -> dict[str, Any]:
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return {
        f"{prefix}.block_count": config.num_hidden_layers,
        f"{prefix}.context_length": config.max_position_embeddings,
        f"{prefix}.embedding_length": config.hidden_size,
        f"{prefix}.feed_forward_length": config.intermediate_size,
        f"{prefix}.attention.head_count": config.num_attention_heads,
        f"{prefix}.attention.head_count_kv": config.num_key_value_heads,
        f"{prefix}.attention.key_length": head_dim,
        f"{prefix}.attention.value_length": head_dim,
        f"{prefix}.attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        f"{prefix}.rope.freq_base": float(config.rope_parameters["rope_theta"]),
        f"{prefix}.rope.dimension_count": head_dim,
    }


def _gpt2_keys(config: Any) -> dict[str, Any]:
    return {
        "gpt2.block_count": config.n_layer,
        "gpt2.context_length": config.n_positions,
        "gpt2.embedding_length": config.n_embd,
        "gpt2.feed_forward_length": config.n_inner or 4 * config.n_embd,
        "gpt2.attention.head_count": config.n_head,
        "gpt2.attention.layer_norm_epsilon": config.layer_norm_epsilon,
    }
