"""Random models of any shape, as `transformers` builds them and as this project runs them."""

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from specdec.config import ModelConfig
from specdec.model import Transformer


def llama_reference(seed: int = 0, **changes: object) -> PreTrainedModel:
    """A tiny Llama with weights large enough for every part to matter."""
    settings: dict[str, object] = {
        "vocab_size": 300,
        "hidden_size": 96,
        "intermediate_size": 200,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 512,
        "tie_word_embeddings": True,
        "initializer_range": 0.15,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    torch.manual_seed(seed)
    return _unsettle(LlamaForCausalLM(LlamaConfig(**(settings | changes))))


def qwen2_reference(seed: int = 0) -> PreTrainedModel:
    """A tiny Qwen2: biases on queries, keys and values."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=300, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, tie_word_embeddings=True, initializer_range=0.15,
        bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    return _unsettle(Qwen2ForCausalLM(config))


def gpt2_reference(seed: int = 0, **changes: object) -> PreTrainedModel:
    """A tiny GPT-2; its vocabulary is not a multiple of a panel's width."""
    settings: dict[str, object] = {
        "vocab_size": 301,
        "n_embd": 48,
        "n_layer": 3,
        "n_head": 4,
        "n_positions": 512,
        "initializer_range": 0.15,
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    torch.manual_seed(seed)
    return _unsettle(GPT2LMHeadModel(GPT2Config(**(settings | changes))))


def _unsettle(model: PreTrainedModel) -> PreTrainedModel:
    """Give norms and biases, which start at one and zero, values that matter."""
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if tensor.ndim == 1:
                tensor.add_(torch.randn_like(tensor) * 0.2 * ("norm" not in name or 1))
    return model.eval()


def weights_of(model: PreTrainedModel) -> dict[str, NDArray[np.float32]]:
    """A model's parameters by name, float32."""
    return {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}


def reference_logits(model: PreTrainedModel, ids: list[int]) -> NDArray[np.float32]:
    """What `transformers` computes for every position, (T, V)."""
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


class RandomWeights:
    """Random Llama weights of any configuration, made when asked for."""

    def __init__(self, config: ModelConfig, seed: int = 0) -> None:
        self.config = config
        self.rng = np.random.default_rng(seed)

    def __contains__(self, name: str) -> bool:
        return True

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        shape = self._shape(name)
        if "norm" in name:
            return np.float32(1) + self.rng.standard_normal(shape, dtype=np.float32) * np.float32(0.1)
        return self.rng.standard_normal(shape, dtype=np.float32) * np.float32(shape[-1] ** -0.5)

    def _shape(self, name: str) -> tuple[int, ...]:
        config = self.config
        width, inner = config.hidden_size, config.intermediate_size
        queries, keys = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
        if "norm" in name:
            return (width,)
        if "_proj" not in name:
            return (config.vocab_size, width)
        kind = name.rsplit(".", 2)[1].removesuffix("_proj")
        return {
            "q": (queries, width), "k": (keys, width), "v": (keys, width), "o": (width, queries),
            "gate": (inner, width), "up": (inner, width), "down": (width, inner),
        }[kind]  # fmt: skip


def llama_config(vocab: int, width: int, layers: int, heads: int, kv: int, dim: int, inner: int) -> ModelConfig:
    """A Llama configuration by its numbers, context 512."""
    return ModelConfig("llama", vocab, width, layers, heads, kv, dim, inner, 512)


def random_model(config: ModelConfig, seed: int = 0, threads: int = 1) -> Transformer:
    """A random model of this configuration."""
    return Transformer(config, RandomWeights(config, seed), threads=threads)
