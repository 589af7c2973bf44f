"""The Llama architecture in PyTorch, exactly as `transformers.LlamaForCausalLM` computes it, with its weight names.

RMS norm before each block, rotary positions in Hugging Face's half-split order, grouped-query attention, SwiGLU, no
biases, tied embeddings (Touvron et al. 2023, arXiv:2302.13971). Parameters carry the names of the checkpoint, so
that `state_dict()` is the file. Only for training: there is no KV cache here, `specdec.model` has the fast engine.

Shape letters: B batch, T positions, C width, H heads, G key/value heads, D head dim, V vocabulary.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - PyTorch's own custom

from specdec.training.settings import END_OF_TEXT_ID, ModelShape


class RmsNorm(nn.Module):
    """Root-mean-square norm, computed in float32 (Zhang and Sennrich 2019)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """[..., C] -> [..., C]."""
        return F.rms_norm(x.float(), self.weight.shape, self.weight.float(), self.eps)


def rope_table(shape: ModelShape) -> tuple[Tensor, Tensor]:
    """Cosines and sines of all positions, (context, D) each: the two halves repeat the same D/2 angles."""
    frequency = shape.rope_theta ** (-torch.arange(0, shape.head_dim, 2) / shape.head_dim)  # (D/2,)
    angle = torch.outer(torch.arange(shape.context).float(), frequency).repeat(1, 2)  # (context, D)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """[B, H, T, D] -> [B, H, T, D]: each pair (i, i + D/2) turned by its position's angle."""
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin


class Attention(nn.Module):
    """Causal grouped-query attention with rotary positions."""

    def __init__(self, shape: ModelShape, dropout: float) -> None:
        super().__init__()
        C, D = shape.hidden_size, shape.head_dim
        self.head_dim, self.dropout = D, dropout
        self.grouped = shape.num_key_value_heads != shape.num_attention_heads
        self.q_proj = nn.Linear(C, shape.num_attention_heads * D, bias=False)
        self.k_proj = nn.Linear(C, shape.num_key_value_heads * D, bias=False)
        self.v_proj = nn.Linear(C, shape.num_key_value_heads * D, bias=False)
        self.o_proj = nn.Linear(shape.num_attention_heads * D, C, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """[B, T, C] -> [B, T, C]; cos and sin are [T, D]."""
        q, k, v = (self.split(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj))  # (B, H or G, T, D)
        cos, sin = cos.to(q.dtype), sin.to(q.dtype)
        dropout = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(
            rotate(q, cos, sin), rotate(k, cos, sin), v, dropout_p=dropout, is_causal=True, enable_gqa=self.grouped
        )
        out: Tensor = self.o_proj(mixed.transpose(1, 2).flatten(2))
        return out

    def split(self, x: Tensor) -> Tensor:
        """[B, T, heads·D] -> [B, heads, T, D]."""
        return x.view(*x.shape[:2], -1, self.head_dim).transpose(1, 2)


class Mlp(nn.Module):
    """SwiGLU: down(silu(gate(x)) · up(x)) (Shazeer 2020)."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        C, inner = shape.hidden_size, shape.intermediate_size
        self.gate_proj = nn.Linear(C, inner, bias=False)
        self.up_proj = nn.Linear(C, inner, bias=False)
        self.down_proj = nn.Linear(inner, C, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """[..., C] -> [..., C]."""
        out: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class Layer(nn.Module):
    """One block: attention, then the MLP, each behind a norm and beside a residual path."""

    def __init__(self, shape: ModelShape, dropout: float) -> None:
        super().__init__()
        self.input_layernorm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)
        self.self_attn = Attention(shape, dropout)
        self.post_attention_layernorm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)
        self.mlp = Mlp(shape)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """[B, T, C] -> [B, T, C]."""
        x = x + self.drop(self.self_attn(self.input_layernorm(x), cos, sin))
        out: Tensor = x + self.drop(self.mlp(self.post_attention_layernorm(x)))
        return out


class Body(nn.Module):
    """Embedding, layers, last norm: what the checkpoint calls `model`."""

    def __init__(self, shape: ModelShape, dropout: float) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(Layer(shape, dropout) for _ in range(shape.num_hidden_layers))
        self.norm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)


class Llama(nn.Module):
    """A whole model. The embedding is the output matrix too."""

    def __init__(self, shape: ModelShape, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        self.model = Body(shape, dropout)
        cos, sin = rope_table(shape)
        self.cos: Tensor
        self.sin: Tensor
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """[B, T] ids -> [B, T, V] logits. T must not exceed the context."""
        T = tokens.shape[1]
        x = self.model.embed_tokens(tokens)  # (B, T, C)
        for layer in self.model.layers:
            x = layer(x, self.cos[:T], self.sin[:T])
        return F.linear(self.model.norm(x), self.model.embed_tokens.weight)

    def parameter_count(self) -> int:
        """Parameters, the tied embedding counted once."""
        return sum(p.numel() for p in self.parameters())


def initialise(network: Llama, seed: int) -> None:
    """GPT-2's initialisation: normal(0, 0.02), matrices that write to the residual path shrunk by √(2 · layers)."""
    generator = torch.Generator().manual_seed(seed)
    shrink = (2 * network.shape.num_hidden_layers) ** -0.5
    for name, parameter in network.named_parameters():
        if parameter.dim() == 2:
            scale = shrink if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
            nn.init.normal_(parameter, std=0.02 * scale, generator=generator)


@torch.no_grad()
def sample(network: Llama, prompt: list[int], *, temperature: float, seed: int) -> list[int]:
    """Ids sampled after `prompt` until the end-of-text id or the end of the context. Slow and simple: no cache."""
    generator = torch.Generator().manual_seed(seed)
    network.eval()
    ids = list(prompt)
    while len(ids) < network.shape.context:
        logits = network(torch.tensor([ids]))[0, -1].float()  # (V,)
        ids.append(int(torch.multinomial(torch.softmax(logits / temperature, -1), 1, generator=generator)))
        if ids[-1] == END_OF_TEXT_ID:
            break
    return ids[len(prompt) :]
