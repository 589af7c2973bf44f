"""Llama-family checkpoints (Llama, SmolLM2, Qwen2, Mistral): tensor names and matrices to blocks.

Names, layouts and the rotary order are those of Hugging Face's `LlamaForCausalLM` and its kin; matrices are (out, in).
"""

import numpy as np

from specdec.config import ModelConfig
from specdec.model.blocks import Block, Stack
from specdec.model.linear import Linear
from specdec.model.operations import F32, rms_norm, swiglu
from specdec.model.rotary import Rotary, pair_up
from specdec.model.weights import Weights, take
from specdec.model.workers import Workers


def build(config: ModelConfig, weights: Weights, workers: Workers) -> Stack:
    """Read every tensor once, the largest first, so that loading never holds much beside the model."""
    table = take(weights, "model.embed_tokens.weight", config.vocab_size, config.hidden_size)
    final_scale = take(weights, "model.norm.weight", config.hidden_size)
    if config.tie_word_embeddings:
        head, embedding = Linear(table, None, workers), None
    else:
        output = take(weights, "lm_head.weight", config.vocab_size, config.hidden_size)
        head, embedding = Linear(output * final_scale, None, workers), np.ascontiguousarray(table)
        del output
    del table
    return Stack(
        blocks=tuple(_block(config, weights, f"model.layers.{i}", workers) for i in range(config.num_layers)),
        head=head,
        embedding=embedding,
        positions=None,
        rotary=Rotary(config.rope, config.head_dim),
        norm=rms_norm,
        activation=swiglu,
        final_scale=final_scale if embedding is None else None,
        final_shift=None,
        workers=workers,
    )


def _block(config: ModelConfig, weights: Weights, prefix: str, workers: Workers) -> Block:
    width, inner = config.hidden_size, config.intermediate_size
    output = take(weights, f"{prefix}.self_attn.o_proj.weight", width, config.num_heads * config.head_dim)
    output_bias = _bias(weights, f"{prefix}.self_attn.o_proj", width, config.output_bias)
    down = take(weights, f"{prefix}.mlp.down_proj.weight", width, inner)
    down_bias = _bias(weights, f"{prefix}.mlp.down_proj", width, config.mlp_bias)
    return Block(
        qkv=_qkv(config, weights, prefix, workers),
        output=Linear(output, output_bias, workers),
        up=_gate_up(config, weights, prefix, workers),
        down=Linear(down, down_bias, workers),
    )


def _bias(weights: Weights, name: str, size: int, present: bool) -> F32 | None:
    return take(weights, f"{name}.bias", size) if present else None


def _qkv(config: ModelConfig, weights: Weights, prefix: str, workers: Workers) -> Linear:
    """Query, key and value matrices in one; queries carry 1/√D, queries and keys the rotary order."""
    width, dim = config.hidden_size, config.head_dim
    norm = take(weights, f"{prefix}.input_layernorm.weight", width)
    scale = np.float32(dim**-0.5)
    matrices, biases = [], []
    for name, heads in (("q", config.num_heads), ("k", config.num_kv_heads), ("v", config.num_kv_heads)):
        matrix = take(weights, f"{prefix}.self_attn.{name}_proj.weight", heads * dim, width) * norm
        bias = _bias(weights, f"{prefix}.self_attn.{name}_proj", heads * dim, config.qkv_bias)
        bias = np.zeros(heads * dim, np.float32) if bias is None else bias
        if name != "v":
            matrix, bias = pair_up(matrix, dim), pair_up(bias, dim)
        if name == "q":
            matrix, bias = matrix * scale, bias * scale
        matrices.append(matrix)
        biases.append(bias)
    return Linear(np.concatenate(matrices), np.concatenate(biases) if config.qkv_bias else None, workers)


def _gate_up(config: ModelConfig, weights: Weights, prefix: str, workers: Workers) -> Linear:
    """Gate and up matrices in one; the gate is halved for `swiglu`."""
    width, inner, half = config.hidden_size, config.intermediate_size, np.float32(0.5)
    norm = take(weights, f"{prefix}.post_attention_layernorm.weight", width)
    gate = take(weights, f"{prefix}.mlp.gate_proj.weight", inner, width) * (norm * half)
    up = take(weights, f"{prefix}.mlp.up_proj.weight", inner, width) * norm
    gate_bias = _bias(weights, f"{prefix}.mlp.gate_proj", inner, config.mlp_bias)
    up_bias = _bias(weights, f"{prefix}.mlp.up_proj", inner, config.mlp_bias)
    bias = None if gate_bias is None or up_bias is None else np.concatenate([gate_bias * half, up_bias])
    return Linear(np.concatenate([gate, up]), bias, workers)
