"""`config.json` of a Hugging Face folder to `ModelConfig`, in the keys of transformers 5 and of those before it.

Whatever would change the arithmetic and is not implemented is refused by name: better no answer than a wrong one.
Keys that only matter to training, caching or printing are not looked at.
"""

from collections.abc import Mapping
from typing import Any

from specdec.config import ModelConfig, RopeConfig
from specdec.errors import ConfigError, UnsupportedError

Raw = Mapping[str, Any]

_FAMILIES = {"llama": "llama", "mistral": "llama", "qwen2": "llama", "gpt2": "gpt2"}
_SILU = ("silu", "swish")
_GELU_TANH = ("gelu_new", "gelu_pytorch_tanh")
_ROPE_NUMBERS: Mapping[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
}
_KV_HEADS_WHERE_ABSENT = {"mistral": 8, "qwen2": 32}
_MISTRAL_WINDOW = 4096  # what transformers takes where the key is absent

# What must be absent or have one of these values, and what it is called.
_REFUSED: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    "quantization_config": ("quantised weights", (None,)),
    "num_local_experts": ("a mixture of experts", (None, 0)),
    "num_experts": ("a mixture of experts", (None, 0)),
    "n_routed_experts": ("a mixture of experts", (None, 0)),
    "is_encoder_decoder": ("an encoder", (None, False)),
    "add_cross_attention": ("cross-attention", (None, False)),
    "use_sliding_window": ("sliding-window attention", (None, False)),
    "partial_rotary_factor": ("partial rotary embeddings", (None, 1, 1.0)),
    "qk_layernorm": ("norms on queries and keys", (None, False)),
    "use_qk_norm": ("norms on queries and keys", (None, False)),
    "qk_norm": ("norms on queries and keys", (None, False)),
    "attn_logit_softcapping": ("capped attention scores", (None,)),
    "final_logit_softcapping": ("capped logits", (None,)),
    "scale_attn_weights": ("unscaled attention scores", (None, True)),
    "scale_attn_by_inverse_layer_idx": ("attention scaled by layer", (None, False)),
}


def config_from_hf(raw: Raw) -> ModelConfig:
    """ModelConfig of a parsed config.json; ConfigError or UnsupportedError name the key at fault."""
    model_type = raw.get("model_type")
    if not isinstance(model_type, str) or model_type not in _FAMILIES:
        raise UnsupportedError(f"model_type {model_type!r:.60} is not supported; {', '.join(_FAMILIES)} are")
    _refuse_what_differs(raw)
    return _gpt2(raw) if model_type == "gpt2" else _llama(raw, model_type)


def end_ids(raw: Raw, vocab_size: int) -> frozenset[int]:
    """`eos_token_id` of a config.json or generation_config.json: absent, one id, or several."""
    value = raw.get("eos_token_id")
    ids = value if isinstance(value, list) else [] if value is None else [value]
    if not all(type(item) is int for item in ids):
        raise ConfigError(f"eos_token_id must be a token id or a list of them, not {value!r:.60}")
    return frozenset(item for item in ids if 0 <= item < vocab_size)


def _refuse_what_differs(raw: Raw) -> None:
    for key, (meaning, accepted) in _REFUSED.items():
        if raw.get(key) not in accepted:
            raise UnsupportedError(f"{key} {raw[key]!r:.60}: {meaning} are not supported")
    layers = raw.get("layer_types")
    if layers is not None and (not isinstance(layers, list) or set(map(str, layers)) - {"full_attention"}):
        raise UnsupportedError("layer_types: only full_attention is supported")


def _llama(raw: Raw, model_type: str) -> ModelConfig:
    _require_activation(raw, "hidden_act", _SILU)
    heads, hidden = _count(raw, "num_attention_heads"), _count(raw, "hidden_size")
    context = _count(raw, "max_position_embeddings")
    window = raw.get("sliding_window", _MISTRAL_WINDOW) if model_type == "mistral" else None
    if window is not None and not (type(window) is int and window >= context):
        raise UnsupportedError(f"sliding_window {window!r:.60} below the context of {context} is not supported")
    bias = _flag(raw, "attention_bias", default=False) and model_type == "llama"
    return ModelConfig(
        family="llama",
        vocab_size=_count(raw, "vocab_size"),
        hidden_size=hidden,
        num_layers=_count(raw, "num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=_count(raw, "num_key_value_heads", _KV_HEADS_WHERE_ABSENT.get(model_type, heads)),
        head_dim=_count(raw, "head_dim", None) or _divide(hidden, heads),
        intermediate_size=_count(raw, "intermediate_size"),
        context_length=context,
        norm_eps=raw.get("rms_norm_eps", 1e-6),
        rope=_rope(raw, context),
        qkv_bias=bias or model_type == "qwen2",
        output_bias=bias,
        mlp_bias=_flag(raw, "mlp_bias", default=False) and model_type == "llama",
        tie_word_embeddings=_flag(raw, "tie_word_embeddings", default=False),
    )


def _gpt2(raw: Raw) -> ModelConfig:
    _require_activation(raw, "activation_function", _GELU_TANH)
    hidden, heads = _count(raw, "n_embd"), _count(raw, "n_head")
    return ModelConfig(
        family="gpt2",
        vocab_size=_count(raw, "vocab_size"),
        hidden_size=hidden,
        num_layers=_count(raw, "n_layer"),
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=_divide(hidden, heads),
        intermediate_size=_count(raw, "n_inner", None) or 4 * hidden,
        context_length=_count(raw, "n_positions"),
        norm_eps=raw.get("layer_norm_epsilon", 1e-5),
        qkv_bias=True,
        output_bias=True,
        mlp_bias=True,
        tie_word_embeddings=_flag(raw, "tie_word_embeddings", default=True),
    )


def _rope(raw: Raw, context: int) -> RopeConfig:
    """`rope_parameters` (transformers 5) holds theta and scaling; before, `rope_theta` stood beside `rope_scaling`."""
    key = "rope_parameters" if raw.get("rope_parameters") is not None else "rope_scaling"
    found = raw.get(key)
    if found is not None and (not isinstance(found, dict) or any(isinstance(item, dict) for item in found.values())):
        raise UnsupportedError(f"{key} must be one set of numbers for all layers")
    settings: dict[str, Any] = found or {}
    kind = settings.get("rope_type", settings.get("type", "default"))
    if not isinstance(kind, str) or kind not in _ROPE_NUMBERS:
        raise UnsupportedError(f"rope type {kind!r:.60} is not supported; {', '.join(_ROPE_NUMBERS)} are")
    if settings.get("partial_rotary_factor") not in (None, 1, 1.0):
        raise UnsupportedError("partial_rotary_factor: partial rotary embeddings are not supported")
    numbers: dict[str, Any] = {name: settings.get(name) for name in _ROPE_NUMBERS[kind]}
    numbers["scaling"] = "none" if kind == "default" else kind
    numbers["theta"] = settings.get("rope_theta", raw.get("rope_theta", 10_000.0))
    if kind == "llama3":
        original = "original_max_position_embeddings"
        numbers["original_context"] = settings.get(original, raw.get(original, context))
    return RopeConfig(**numbers)


def _require_activation(raw: Raw, key: str, accepted: tuple[str, ...]) -> None:
    value = raw.get(key, accepted[0])
    if value not in accepted:
        raise UnsupportedError(f"{key} {value!r:.60} is not supported; {' and '.join(accepted)} are")


_REQUIRED: Any = object()


def _count(raw: Raw, key: str, default: Any = _REQUIRED) -> Any:
    """A positive whole number; null counts as absent."""
    value = raw.get(key)
    if value is None:
        if default is _REQUIRED:
            raise ConfigError(f"the configuration has no {key}")
        return default
    if type(value) is not int or value < 1:
        raise ConfigError(f"{key} must be a positive whole number, not {value!r:.60}")
    return value


def _flag(raw: Raw, key: str, *, default: bool) -> bool:
    value = raw.get(key, default)
    if not isinstance(value, bool):
        raise ConfigError(f"{key} must be true or false, not {value!r:.60}")
    return value


def _divide(hidden: int, heads: int) -> int:
    if hidden % heads:
        raise ConfigError(f"{heads} attention heads do not divide a width of {hidden}, and no head_dim is given")
    return hidden // heads
