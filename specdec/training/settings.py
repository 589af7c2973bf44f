"""What a training run is asked to do: the model's shape and the recipe, frozen and validated where they are made.

The defaults are the recipe of the bundled target. Names follow Hugging Face's `LlamaConfig` wherever it has one.
"""

from dataclasses import asdict, dataclass
from typing import Any

from specdec.config import require_choice, require_int, require_number
from specdec.errors import ConfigError

END_OF_TEXT = "<|endoftext|>"
END_OF_TEXT_ID = 0  # begins every document, ends every answer, and fills batches


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Shape of a Llama model with tied embeddings; every count is of elements.

    Raises ConfigError naming the value and its limit, or the two numbers that do not divide.
    """

    vocab_size: int = 4096
    hidden_size: int = 256
    intermediate_size: int = 688
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    num_key_value_heads: int = 4
    head_dim: int = 64
    context: int = 512  # positions trained, and so the most that config.json may promise
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10_000.0

    def __post_init__(self) -> None:
        for name, low, high in (
            ("vocab_size", 2, 1_048_576),
            ("hidden_size", 1, 65_536),
            ("intermediate_size", 1, 262_144),
            ("num_hidden_layers", 1, 512),
            ("num_attention_heads", 1, 4096),
            ("num_key_value_heads", 1, 4096),
            ("head_dim", 2, 1024),
            ("context", 2, 1_048_576),
        ):
            require_int(name, getattr(self, name), low, high)
        if self.num_attention_heads % self.num_key_value_heads:
            raise ConfigError(
                f"num_attention_heads {self.num_attention_heads} must be a multiple of "
                f"num_key_value_heads {self.num_key_value_heads}"
            )
        if self.head_dim % 2:
            raise ConfigError(f"head_dim must be even for rotary positions, not {self.head_dim}")

    def hf_config(self) -> dict[str, Any]:
        """`config.json` of this shape, with the keys `transformers.LlamaConfig` reads (old and new spelling)."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "num_key_value_heads": self.num_key_value_heads,
            "head_dim": self.head_dim,
            "max_position_embeddings": self.context,
            "rms_norm_eps": self.rms_norm_eps,
            "rope_theta": self.rope_theta,
            "rope_parameters": {"rope_type": "default", "rope_theta": self.rope_theta},
            "hidden_act": "silu",
            "attention_bias": False,
            "mlp_bias": False,
            "tie_word_embeddings": True,
            "bos_token_id": END_OF_TEXT_ID,
            "eos_token_id": END_OF_TEXT_ID,
            "pad_token_id": None,
            "initializer_range": 0.02,
            "use_cache": True,
        }

    @classmethod
    def from_hf_config(cls, config: dict[str, Any]) -> "ModelShape":
        """The shape in a `config.json` written by `hf_config`."""
        names = set(cls.__slots__) - {"context"}
        return cls(context=config["max_position_embeddings"], **{name: config[name] for name in names})


@dataclass(frozen=True, slots=True)
class Recipe:
    """How long, on what and how fast to train. One of `steps`, `epochs`, `minutes` sets the length.

    `minutes` counts training time over all interruptions; with it the schedule follows the clock, and a repeated
    run is no longer equal to the bit.
    """

    steps: int | None = None
    epochs: float | None = None
    minutes: float | None = None
    batch: int = 8  # windows of `context` tokens a step
    accumulate: int = 1  # ... split into so many passes, where memory is short
    learning_rate: float = 2e-3
    final_fraction: float = 0.05  # of the learning rate, at the end of the cosine
    warmup_fraction: float = 0.03  # of the run
    weight_decay: float = 0.1
    dropout: float = 0.0
    grad_clip: float = 1.0
    distill_weight: float = 0.9  # of the target's distribution, where there are lessons; the rest is the text's
    overlap_weight: float = 1.0  # of 1 − Σ min(p, q), where there are lessons
    precision: str = "bfloat16"
    seed: int = 0
    held_out_every: int = 100  # documents
    evaluate_every: int = 200  # steps
    checkpoint_seconds: float = 180.0

    def __post_init__(self) -> None:
        if [self.steps, self.epochs, self.minutes].count(None) != 2:
            raise ConfigError("exactly one of steps, epochs, minutes must be given")
        for name in ("batch", "accumulate", "held_out_every", "evaluate_every"):
            require_int(name, getattr(self, name), 1, 1_000_000)
        for name in ("final_fraction", "warmup_fraction", "dropout", "distill_weight"):
            require_number(name, getattr(self, name), 0.0, 1.0)
        for name in ("learning_rate", "weight_decay", "grad_clip", "overlap_weight"):
            require_number(name, getattr(self, name), 0.0, 1000.0)
        require_choice("precision", self.precision, ("bfloat16", "float32"))
        if self.batch % self.accumulate:
            raise ConfigError(f"batch {self.batch} must be a multiple of accumulate {self.accumulate}")

    def to_json(self) -> dict[str, Any]:
        """All settings by name, for the run's record."""
        return asdict(self)
