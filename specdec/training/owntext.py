"""What a model writes by itself, many windows at a time, for drafts to learn from.

The only place here with a KV cache: a token of a whole batch costs one pass over the weights. Windows are as the model
was trained on them: a text, `<|endoftext|>`, the next text.

Shape letters: B windows, T tokens, C width, H heads, G key/value heads, D head dim, S cached.
"""

from collections.abc import Iterator
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - PyTorch's own custom

from specdec.training.corpus import Ids
from specdec.training.network import Layer, Llama, rotate
from specdec.training.settings import END_OF_TEXT_ID

TEMPERATURES = (0.01, 0.5, 0.8, 1.0)  # by turns; the first is as good as greedy
OPENINGS = (2, 5, 9, 14)  # tokens given, `<|endoftext|>` included, by turns
BATCH = 256  # windows at a time

Cache = list[Tensor]  # keys and values of each layer, (2, B, G, S, D)


def own_windows(network: Llama, stream: Ids, count: int, seed: int) -> Iterator[NDArray[np.uint16]]:
    """`count` windows of T + 1 tokens in batches, (≤ BATCH, T + 1); each begins like some document of `stream`."""
    model, rng = _half(network), np.random.default_rng(seed)
    starts = np.flatnonzero(stream[: -max(OPENINGS)] == END_OF_TEXT_ID)
    for number, first in enumerate(range(0, count, BATCH)):
        chosen = rng.choice(starts, min(BATCH, count - first))
        length = OPENINGS[number % len(OPENINGS)]
        openings = np.stack([stream[start : start + length] for start in chosen]).astype(np.int64)
        yield write_on(model, openings, seed + number)


@torch.no_grad()
def write_on(model: Llama, openings: NDArray[np.int64], seed: int) -> NDArray[np.uint16]:
    """Continue openings, (B, n), to windows of T + 1 tokens; temperatures go round over them."""
    device = model.cos.device
    generator = torch.Generator(device).manual_seed(seed)
    tokens = torch.from_numpy(openings).to(device)
    heat = torch.tensor(TEMPERATURES, device=device)[torch.arange(len(tokens)) % len(TEMPERATURES)][:, None]  # (B, 1)
    cache, fed = _empty_cache(model, len(tokens)), 0
    while tokens.shape[1] <= model.shape.context:
        logits = _step(model, tokens[:, fed:], cache, fed)  # (B, V)
        fed = tokens.shape[1]
        chosen = torch.multinomial(torch.softmax(logits.float() / heat, dim=-1), 1, generator=generator)
        tokens = torch.cat((tokens, chosen), dim=1)
    return tokens.cpu().numpy().astype(np.uint16)


def _half(network: Llama) -> Llama:
    model = Llama(network.shape).to(next(network.parameters()).device)
    model.load_state_dict(network.state_dict())
    return model.bfloat16().eval()


def _empty_cache(model: Llama, windows: int) -> Cache:
    shape = model.shape
    size = (2, windows, shape.num_key_value_heads, shape.context, shape.head_dim)
    return [model.cos.new_zeros(size) for _ in range(shape.num_hidden_layers)]


def _step(model: Llama, tokens: Tensor, cache: Cache, start: int) -> Tensor:
    """Feed [B, T] behind `start` cached tokens; logits of the last, [B, V]."""
    end = start + tokens.shape[1]
    x = model.model.embed_tokens(tokens)  # (B, T, C)
    cos, sin = model.cos[start:end], model.sin[start:end]
    for layer, kept in zip(model.model.layers, cache, strict=True):
        x = _run_layer(cast(Layer, layer), x, cos, sin, kept, start, end)
    last = model.model.norm(x[:, -1]).to(x.dtype)
    return F.linear(last, model.model.embed_tokens.weight)


def _run_layer(layer: Layer, x: Tensor, cos: Tensor, sin: Tensor, kept: Tensor, start: int, end: int) -> Tensor:
    attention = layer.self_attn
    normed = layer.input_layernorm(x).to(x.dtype)
    q, k, v = (attention.split(p(normed)) for p in (attention.q_proj, attention.k_proj, attention.v_proj))
    keys, values = kept
    keys[:, :, start:end], values[:, :, start:end] = rotate(k, cos, sin), v
    mixed = F.scaled_dot_product_attention(
        rotate(q, cos, sin),
        keys[:, :, :end],
        values[:, :, :end],
        is_causal=start == 0 and end > 1,
        enable_gqa=attention.grouped,
    )
    x = x + attention.o_proj(mixed.transpose(1, 2).flatten(2))
    out: Tensor = x + layer.mlp(layer.post_attention_layernorm(x).to(x.dtype))
    return out
