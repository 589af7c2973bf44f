"""GPT-2-family checkpoints: tensor names and matrices to blocks.

Names are those of Hugging Face's `GPT2LMHeadModel`; its `Conv1D` matrices are (in, out), the transpose of `Linear`'s.
"""

import numpy as np

from specdec.config import ModelConfig
from specdec.model.blocks import Block, Stack
from specdec.model.linear import Linear
from specdec.model.operations import F32, gelu_doubled, layer_norm
from specdec.model.weights import Weights, take
from specdec.model.workers import Workers


def build(config: ModelConfig, weights: Weights, workers: Workers) -> Stack:
    """Read every tensor once, the largest first, so that loading never holds much beside the model."""
    width = config.hidden_size
    table = take(weights, "transformer.wte.weight", config.vocab_size, width)
    tied = config.tie_word_embeddings
    output = table if tied else take(weights, "lm_head.weight", config.vocab_size, width)
    head = Linear(output, None, workers)
    embedding = None if tied else np.ascontiguousarray(table)
    del table, output
    return Stack(
        blocks=tuple(_block(config, weights, f"transformer.h.{i}", workers) for i in range(config.num_layers)),
        head=head,
        embedding=embedding,
        positions=take(weights, "transformer.wpe.weight", config.context_length, width),
        rotary=None,
        norm=layer_norm,
        activation=gelu_doubled,
        final_scale=take(weights, "transformer.ln_f.weight", width),
        final_shift=take(weights, "transformer.ln_f.bias", width),
        workers=workers,
    )


def _block(config: ModelConfig, weights: Weights, prefix: str, workers: Workers) -> Block:
    width, inner = config.hidden_size, config.intermediate_size
    qkv, qkv_bias = _behind_norm(
        weights, f"{prefix}.ln_1", *_conv1d(weights, f"{prefix}.attn.c_attn", width, 3 * width)
    )
    scale = np.float32(config.head_dim**-0.5)
    qkv[:width] *= scale
    qkv_bias[:width] *= scale
    down, down_bias = _conv1d(weights, f"{prefix}.mlp.c_proj", inner, width)
    return Block(
        qkv=Linear(qkv, qkv_bias, workers),
        output=Linear(*_conv1d(weights, f"{prefix}.attn.c_proj", width, width), workers),
        up=Linear(
            *_behind_norm(weights, f"{prefix}.ln_2", *_conv1d(weights, f"{prefix}.mlp.c_fc", width, inner)), workers
        ),
        down=Linear(down * np.float32(0.5), down_bias, workers),  # `gelu_doubled` returns twice the value
    )


def _conv1d(weights: Weights, name: str, inputs: int, outputs: int) -> tuple[F32, F32]:
    """Matrix as (out, in), and bias."""
    return take(weights, f"{name}.weight", inputs, outputs).T, take(weights, f"{name}.bias", outputs)


def _behind_norm(weights: Weights, norm: str, matrix: F32, bias: F32) -> tuple[F32, F32]:
    """Fold a norm's scale and shift into the matrix and bias behind it."""
    scale, shift = (take(weights, f"{norm}.{part}", matrix.shape[1]) for part in ("weight", "bias"))
    return matrix * scale, bias + matrix @ shift
