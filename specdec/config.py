"""Settings: frozen, slotted, and validated where they are made.

`ModelConfig` says what a transformer looks like, `SamplingParams` how tokens are chosen, `SpeculativeConfig` how
they are proposed and accepted, `Limits` how much of anything is allowed.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from specdec.errors import ConfigError

Family = Literal["llama", "gpt2"]
AcceptanceRule = Literal["rejection", "match"]
Lookahead = int | Literal["auto"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds that keep a hostile file or request from costing memory or time."""

    max_layers: int = 512
    max_width: int = 65_536
    max_vocabulary: int = 1_048_576
    max_context: int = 10_485_760
    max_speculative_tokens: int = 15
    max_top: int = 10
    max_seed: int = 2**63 - 1
    max_new_tokens: int = 1_000_000
    max_stop_strings: int = 16
    max_stop_length: int = 256


LIMITS = Limits()


def require_int(name: str, value: Any, low: int, high: int) -> None:
    """Raise ConfigError unless `value` is an integer (not a bool) in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{name} must be a whole number, not {value!r}")
    if not low <= value <= high:
        raise ConfigError(f"{name} must lie between {low} and {high}, not {value}")


def require_number(name: str, value: Any, low: float, high: float) -> None:
    """Raise ConfigError unless `value` is a finite number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise ConfigError(f"{name} must be a finite number, not {repr(value)[:40]}")
    if not low <= value <= high:
        raise ConfigError(f"{name} must lie between {low:g} and {high:g}, not {value:g}")


def require_bool(name: str, value: Any) -> None:
    """Raise ConfigError unless `value` is True or False."""
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be true or false, not {value!r}")


def require_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ConfigError unless `value` is one of `choices`."""
    if value not in choices:
        raise ConfigError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """Rotary position embedding: base frequency and how it is stretched over longer contexts.

    `linear` divides positions by `factor`; `llama3` stretches low frequencies only (Llama 3.1 model card).
    """

    theta: float = 10_000.0
    scaling: Literal["none", "linear", "llama3"] = "none"
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_context: int = 8_192

    def __post_init__(self) -> None:
        require_number("rope theta", self.theta, 1.0, 1e12)
        require_choice("rope scaling", self.scaling, ("none", "linear", "llama3"))
        require_number("rope scaling factor", self.factor, 1.0, 1e6)
        require_number("rope low_freq_factor", self.low_freq_factor, 1e-3, 1e6)
        require_number("rope high_freq_factor", self.high_freq_factor, 1e-3, 1e6)
        require_int("rope original context", self.original_context, 1, LIMITS.max_context)
        if self.scaling == "llama3" and self.high_freq_factor <= self.low_freq_factor:
            raise ConfigError("rope high_freq_factor must exceed low_freq_factor")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Shape of a decoder-only transformer; all counts are of elements, none of bytes."""

    family: Family
    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    context_length: int
    norm_eps: float = 1e-5
    rope: RopeConfig = field(default_factory=RopeConfig)
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        require_choice("model family", self.family, ("llama", "gpt2"))
        require_int("vocab_size", self.vocab_size, 1, LIMITS.max_vocabulary)
        require_int("num_layers", self.num_layers, 1, LIMITS.max_layers)
        for name in ("hidden_size", "num_heads", "num_kv_heads", "head_dim", "intermediate_size"):
            require_int(name, getattr(self, name), 1, LIMITS.max_width)
        require_int("context_length", self.context_length, 1, LIMITS.max_context)
        require_number("norm_eps", self.norm_eps, 0.0, 1.0)
        if self.num_heads % self.num_kv_heads:
            raise ConfigError(f"num_heads {self.num_heads} is not a multiple of num_kv_heads {self.num_kv_heads}")
        if self.family == "llama" and self.head_dim % 2:
            raise ConfigError(f"rotary embeddings need an even head_dim, not {self.head_dim}")

    @property
    def parameters(self) -> int:
        """Number of weights, tied output counted once."""
        width, inner = self.hidden_size, self.intermediate_size
        attention = width * self.head_dim * 2 * (self.num_heads + self.num_kv_heads)
        mlp = width * inner * (3 if self.family == "llama" else 2)
        tables = self.vocab_size * width * (1 if self.tie_word_embeddings else 2)
        positions = self.context_length * width if self.family == "gpt2" else 0
        return self.num_layers * (attention + mlp + 2 * width) + tables + positions + width

    @property
    def float32_bytes(self) -> int:
        """Bytes of the weights as float32."""
        return 4 * self.parameters


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How tokens are chosen; the defaults are greedy decoding.

    Processors apply in this order: logit bias, repetition penalty (prompt and output; Keskar et al. 2019), frequency
    and presence penalty (output only; OpenAI API), temperature, top-k, top-p (Holtzman et al. 2020), min-p
    (Nguyen et al. 2024). `temperature` 0 or `top_k` 1 is greedy. `top_k` 0, `top_p` 1 and `min_p` 0 are off.
    `seed` None draws a fresh one for each run. `logprobs` reports log p under the target of each emitted token,
    before any processor.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    max_tokens: int = 128
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    logprobs: bool = False

    def __post_init__(self) -> None:
        require_number("temperature", self.temperature, 0.0, 100.0)
        require_int("top_k", self.top_k, 0, LIMITS.max_vocabulary)
        require_number("top_p", self.top_p, 0.0, 1.0)
        require_number("min_p", self.min_p, 0.0, 1.0)
        require_number("repetition_penalty", self.repetition_penalty, 0.01, 100.0)
        require_number("frequency_penalty", self.frequency_penalty, -10.0, 10.0)
        require_number("presence_penalty", self.presence_penalty, -10.0, 10.0)
        require_int("max_tokens", self.max_tokens, 0, LIMITS.max_new_tokens)
        if self.seed is not None:
            require_int("seed", self.seed, 0, LIMITS.max_seed)
        require_bool("ignore_eos", self.ignore_eos)
        require_bool("logprobs", self.logprobs)
        self._check_tokens()
        self._check_stop_strings()

    def _check_tokens(self) -> None:
        if not isinstance(self.logit_bias, Mapping):
            raise ConfigError(f"logit_bias must map token ids to numbers, not {self.logit_bias!r}")
        if not isinstance(self.stop_token_ids, tuple):
            raise ConfigError(f"stop_token_ids must be a tuple of token ids, not {self.stop_token_ids!r}")
        object.__setattr__(self, "logit_bias", dict(self.logit_bias))  # the caller's may change later
        for token, bias in self.logit_bias.items():
            require_int("logit_bias token", token, 0, LIMITS.max_vocabulary)
            require_number("logit_bias", bias, -1e4, 1e4)
        for token in self.stop_token_ids:
            require_int("stop token id", token, 0, LIMITS.max_vocabulary)

    def _check_stop_strings(self) -> None:
        if not isinstance(self.stop, tuple) or not all(isinstance(stop, str) for stop in self.stop):
            raise ConfigError("stop must be a tuple of strings")
        if len(self.stop) > LIMITS.max_stop_strings:
            raise ConfigError(f"at most {LIMITS.max_stop_strings} stop strings are allowed, not {len(self.stop)}")
        for stop in self.stop:
            require_int("length of a stop string", len(stop), 1, LIMITS.max_stop_length)

    @property
    def greedy(self) -> bool:
        """True where the choice is the arg-max, without randomness."""
        return self.temperature == 0 or self.top_k == 1


@dataclass(frozen=True, slots=True)
class SpeculativeConfig:
    """How tokens are proposed and accepted.

    `num_speculative_tokens` None takes the drafter's own. `acceptance`: `rejection` (Leviathan et al. 2023, Chen et
    al. 2023) or `match` (accept while the target's own draw equals the draft). `exact` keeps every logit equal, bit
    for bit, to those of plain decoding.

    `top`: how many of the likeliest tokens to record wherever a draft is judged or a token drawn; 0 records none and
    costs nothing. Recorded are p and q as they were used, after all processors, and never does that change the
    output. Greedy decoding makes neither: p is one at the arg max, which tells nothing of what else the target
    thought. There the target's list is the softmax, at temperature 1 and without cuts, of the logits that the arg max
    was taken of; a draft's is the one token it chose.
    """

    num_speculative_tokens: Lookahead | None = None
    acceptance: AcceptanceRule = "rejection"
    exact: bool = True
    top: int = 0

    def __post_init__(self) -> None:
        if self.num_speculative_tokens is not None:
            require_lookahead(self.num_speculative_tokens)
        require_choice("acceptance", self.acceptance, ("rejection", "match"))
        require_bool("exact", self.exact)
        require_int("top", self.top, 0, LIMITS.max_top)


def require_lookahead(value: Any) -> None:
    """Raise ConfigError unless `value` is "auto" or 0 … LIMITS.max_speculative_tokens."""
    if value != "auto":
        require_int("num_speculative_tokens", value, 0, LIMITS.max_speculative_tokens)
