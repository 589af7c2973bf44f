"""Real transformers with random weights, small enough to run thousands of passes a second."""

import numpy as np
from numpy.typing import NDArray

from specdec.config import ModelConfig
from specdec.model import Transformer
from tests.decoding.toys import Toy


class RandomWeights:
    """Llama weights made when asked for."""

    def __init__(self, config: ModelConfig, seed: int) -> None:
        self.config = config
        self.rng = np.random.default_rng(seed)

    def __contains__(self, name: str) -> bool:
        return True

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        if "norm" in name:
            return np.ones(self.config.hidden_size, np.float32)
        shape = self._shape(name)
        return self.rng.standard_normal(shape, dtype=np.float32) * np.float32(2 * shape[1] ** -0.5)

    def _shape(self, name: str) -> tuple[int, int]:
        config = self.config
        width, inner, dim = config.hidden_size, config.intermediate_size, config.head_dim
        shapes = {
            "q_proj": (config.num_heads * dim, width), "k_proj": (config.num_kv_heads * dim, width),
            "v_proj": (config.num_kv_heads * dim, width), "o_proj": (width, config.num_heads * dim),
            "gate_proj": (inner, width), "up_proj": (inner, width), "down_proj": (width, inner),
        }  # fmt: skip
        return shapes.get(name.rsplit(".", 2)[-2], (config.vocab_size, width))


def tiny(seed: int, vocab: int = 97, context: int = 512, layers: int = 2, width: int = 32, threads: int = 1) -> Toy:
    """A random Llama as a `Model` without a tokenizer."""
    config = ModelConfig("llama", vocab, width, layers, 2, 1, width // 2, 2 * width, context)
    return Toy(Transformer(config, RandomWeights(config, seed), threads=threads), f"tiny {seed}")
