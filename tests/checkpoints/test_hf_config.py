"""config.json: old and new keys say the same, and what is not implemented is refused by its name."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from transformers import GPT2Config, LlamaConfig, MistralConfig, PretrainedConfig, Qwen2Config

from specdec.checkpoints.hf_config import config_from_hf, end_ids
from specdec.config import ModelConfig, RopeConfig
from specdec.errors import ConfigError, UnsupportedError

SHAPE: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
}
LLAMA = {"model_type": "llama", **SHAPE}
GPT2: dict[str, Any] = {
    "model_type": "gpt2", "vocab_size": 300, "n_embd": 48, "n_layer": 3, "n_head": 4, "n_positions": 128, "n_ctx": 128,
}  # fmt: skip
SMOLLM2 = {
    "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 1,
    "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 576, "initializer_range": 0.041666666666666664,
    "intermediate_size": 1536, "is_llama_config": True, "max_position_embeddings": 8192, "mlp_bias": False,
    "model_type": "llama", "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3,
    "pad_token_id": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": False, "rope_scaling": None,
    "rope_theta": 100000, "tie_word_embeddings": True, "torch_dtype": "bfloat16", "use_cache": True,
    "vocab_size": 49152,
}  # fmt: skip
LLAMA3_SCALING = {
    "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
}  # fmt: skip


def test_the_published_configuration_of_smollm2() -> None:
    """SmolLM2-135M-Instruct's own config.json, old keys, gives its 134,515,008 parameters."""
    config = config_from_hf(SMOLLM2)
    assert config.parameters == 134_515_008
    assert (config.head_dim, config.num_kv_heads, config.rope.theta) == (64, 3, 100_000)
    assert config.tie_word_embeddings


def test_old_and_new_rope_keys_mean_the_same() -> None:
    """`rope_theta` beside `rope_scaling`, and transformers 5's `rope_parameters`, give one configuration."""
    old = LLAMA | {
        "rope_theta": 5e5,
        "rope_scaling": {"rope_type": "llama3", **LLAMA3_SCALING},
        "torch_dtype": "float16",
    }
    new = LLAMA | {"rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3", **LLAMA3_SCALING}, "dtype": "float16"}
    assert config_from_hf(old) == config_from_hf(new)
    assert config_from_hf(new).rope == RopeConfig(5e5, "llama3", 32.0, 1.0, 4.0, 8192)


@pytest.mark.parametrize("key", ["rope_type", "type"])
def test_linear_scaling(key: str) -> None:
    """Positions divided by the factor, under either spelling of the kind."""
    config = config_from_hf(LLAMA | {"rope_theta": 1e4, "rope_scaling": {key: "linear", "factor": 4}})
    assert config.rope == RopeConfig(1e4, "linear", 4)


def test_a_configuration_without_rope_keys_has_the_original_base() -> None:
    """The first Llama configurations had no rope_theta: it is 10,000."""
    assert config_from_hf(LLAMA).rope == RopeConfig(10_000.0)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (
            LlamaConfig(**SHAPE, attention_bias=True, mlp_bias=True, head_dim=24),
            ModelConfig(
                "llama", 300, 64, 2, 4, 2, 24, 160, 512, 1e-6,
                qkv_bias=True, output_bias=True, mlp_bias=True, tie_word_embeddings=False,
            ),
        ),
        (
            Qwen2Config(**SHAPE, tie_word_embeddings=True, rms_norm_eps=1e-5),
            ModelConfig("llama", 300, 64, 2, 4, 2, 16, 160, 512, 1e-5, qkv_bias=True),
        ),
        (
            MistralConfig(**SHAPE, sliding_window=None),
            ModelConfig("llama", 300, 64, 2, 4, 2, 16, 160, 512, 1e-6, tie_word_embeddings=False),
        ),
        (
            GPT2Config(vocab_size=300, n_embd=48, n_layer=3, n_head=4, n_positions=128, n_inner=100),
            ModelConfig("gpt2", 300, 48, 3, 4, 4, 12, 100, 128, 1e-5, qkv_bias=True, output_bias=True, mlp_bias=True),
        ),
    ],
    ids=["llama", "qwen2", "mistral", "gpt2"],
)  # fmt: skip
def test_what_transformers_writes_is_read(tmp_path: Path, made: PretrainedConfig, expected: ModelConfig) -> None:
    """A configuration saved by transformers 5 means what it meant there: biases, head size, tied output."""
    made.save_pretrained(tmp_path)
    assert config_from_hf(json.loads((tmp_path / "config.json").read_text())) == expected


def test_null_counts_as_absent() -> None:
    """`head_dim`, `num_key_value_heads` and `n_inner` may be null; then they follow from the rest."""
    config = config_from_hf(LLAMA | {"head_dim": None, "num_key_value_heads": None})
    assert (config.head_dim, config.num_kv_heads) == (16, 4)
    assert config_from_hf(GPT2 | {"n_inner": None}).intermediate_size == 4 * 48


def test_qwen2_has_biases_on_queries_keys_and_values_only() -> None:
    """Qwen2's attention bias is not in its configuration, and never on the output."""
    config = config_from_hf(LLAMA | {"model_type": "qwen2", "attention_bias": True})
    assert (config.qkv_bias, config.output_bias, config.mlp_bias) == (True, False, False)


def test_a_window_as_long_as_the_context_changes_nothing() -> None:
    """Mistral's sliding window is accepted where it never closes."""
    wide = config_from_hf(LLAMA | {"model_type": "mistral", "sliding_window": 512})
    assert wide == replace(config_from_hf(LLAMA | {"model_type": "mistral", "sliding_window": None}))


@pytest.mark.parametrize("activation", ["gelu_new", "gelu_pytorch_tanh"])
def test_gpt2_activations(activation: str) -> None:
    """Two names of the same approximation."""
    assert config_from_hf(GPT2 | {"activation_function": activation}).family == "gpt2"


REFUSED = {
    "mixtral": LLAMA | {"model_type": "mixtral"},
    "model_type None": SHAPE,
    "sliding_window 256": LLAMA | {"model_type": "mistral", "sliding_window": 256},
    "sliding_window 4096": LLAMA | {"model_type": "mistral", "max_position_embeddings": 8192},
    "use_sliding_window": LLAMA | {"model_type": "qwen2", "use_sliding_window": True},
    "layer_types": LLAMA | {"model_type": "qwen2", "layer_types": ["full_attention", "sliding_attention"]},
    "hidden_act 'gelu'": LLAMA | {"hidden_act": "gelu"},
    "activation_function 'relu'": GPT2 | {"activation_function": "relu"},
    "rope type 'yarn'": LLAMA | {"rope_scaling": {"type": "yarn", "factor": 2.0}},
    "rope type 'longrope'": LLAMA | {"rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4}},
    "rope type 'dynamic'": LLAMA | {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
    "rope_parameters": LLAMA | {"rope_parameters": {"full_attention": {"rope_type": "default"}}},
    "partial_rotary_factor": LLAMA | {"partial_rotary_factor": 0.5},
    "partial_rotary": LLAMA | {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.25}},
    "norms on queries and keys": LLAMA | {"qk_layernorm": True},
    "quantization_config": LLAMA | {"quantization_config": {"quant_method": "gptq", "bits": 4}},
    "mixture of experts": LLAMA | {"num_local_experts": 8},
    "attention scaled by layer": GPT2 | {"scale_attn_by_inverse_layer_idx": True},
    "unscaled attention": GPT2 | {"scale_attn_weights": False},
    "cross-attention": GPT2 | {"add_cross_attention": True},
}


@pytest.mark.parametrize(("name", "raw"), REFUSED.items(), ids=REFUSED)
def test_what_is_not_implemented_is_refused_by_name(name: str, raw: Mapping[str, Any]) -> None:
    """A model that would need other arithmetic is no model with wrong answers, but an error that says why."""
    with pytest.raises(UnsupportedError, match=name):
        config_from_hf(raw)


@pytest.mark.parametrize("key", [key for key in SHAPE if key != "num_key_value_heads"])
def test_a_missing_key_is_named(key: str) -> None:
    """A configuration without one of its numbers says which."""
    with pytest.raises(ConfigError, match=f"has no {key}"):
        config_from_hf({name: value for name, value in LLAMA.items() if name != key})


@pytest.mark.parametrize(
    ("value", "expected"),
    [(2, {2}), ([2, 5, 2], {2, 5}), (None, set()), ([], set()), (-1, set()), (300, set()), ([0, 299, 300], {0, 299})],
)
def test_ids_that_end_a_text(value: object, expected: set[int]) -> None:
    """One id, several, or none; those the model cannot emit are left out."""
    assert end_ids({"eos_token_id": value}, 300) == expected


@pytest.mark.parametrize("value", ["2", [1, None], {"id": 2}, True, 2.0])
def test_ids_that_are_none_are_refused(value: object) -> None:
    """An end id must be a whole number."""
    with pytest.raises(ConfigError, match="eos_token_id"):
        end_ids({"eos_token_id": value}, 300)
