"""Shapes of models are refused where they are made, at the limit plus one, and nothing is allocated for them."""

import math
from typing import Any

import pytest

from specdec.config import LIMITS, ModelConfig, RopeConfig
from tests.settings import NOT_INTEGERS, NOT_NUMBERS, cases, refused

MODEL_INTEGERS = {
    "vocab_size": LIMITS.max_vocabulary,
    "hidden_size": LIMITS.max_width,
    "num_layers": LIMITS.max_layers,
    "num_heads": LIMITS.max_width,
    "num_kv_heads": LIMITS.max_width,
    "head_dim": LIMITS.max_width,
    "intermediate_size": LIMITS.max_width,
    "context_length": LIMITS.max_context,
}
ROPE_NUMBERS = {
    "theta": (1.0, 1e12),
    "factor": (1.0, 1e6),
    "low_freq_factor": (1e-3, 1e6),
    "high_freq_factor": (1e-3, 1e6),
}
SMALL: dict[str, Any] = {
    "family": "llama",
    "vocab_size": 10,
    "hidden_size": 8,
    "num_layers": 1,
    "num_heads": 2,
    "num_kv_heads": 1,
    "head_dim": 4,
    "intermediate_size": 16,
    "context_length": 32,
}


@pytest.mark.parametrize("name", MODEL_INTEGERS)
def test_model_counts_hold_at_their_bounds(name):
    """1 and the limit are allowed (where the others fit), 0 and one more are not."""
    others = {"num_heads": MODEL_INTEGERS[name], "num_kv_heads": 1} if name == "num_heads" else {}
    fitting = {"num_heads": MODEL_INTEGERS[name]} if name == "num_kv_heads" else {}
    assert getattr(ModelConfig(**SMALL | others | fitting | {name: MODEL_INTEGERS[name]}), name) == MODEL_INTEGERS[name]
    refused(ModelConfig, name, **SMALL | {name: 0})
    refused(ModelConfig, name, **SMALL | {name: -1})
    refused(ModelConfig, name, **SMALL | {name: MODEL_INTEGERS[name] + 1})


@pytest.mark.parametrize("name, value", cases(MODEL_INTEGERS, NOT_INTEGERS))
def test_model_counts_are_integers(name, value):
    """No float, bool, text or NaN."""
    refused(ModelConfig, name, **SMALL | {name: value})


@pytest.mark.parametrize("eps", [-1e-9, 1.1, *NOT_NUMBERS])
def test_norm_epsilon_is_a_small_number(eps):
    """0 … 1."""
    assert ModelConfig(**SMALL, norm_eps=0.0).norm_eps == 0.0
    refused(ModelConfig, "norm_eps", **SMALL, norm_eps=eps)


@pytest.mark.parametrize(
    "changes, name",
    [
        ({"family": "mamba"}, "family"),
        ({"num_heads": 3, "num_kv_heads": 2}, "num_kv_heads"),
        ({"head_dim": 3}, "head_dim"),
    ],
)
def test_parts_of_a_model_must_fit(changes, name):
    """Unknown family, heads that do not divide, an odd rotary dimension."""
    refused(ModelConfig, name, **SMALL | changes)


def test_gpt2_may_have_an_odd_head():
    """Only rotary embeddings need pairs."""
    assert ModelConfig(**SMALL | {"family": "gpt2", "head_dim": 3}).head_dim == 3


@pytest.mark.parametrize("name", ROPE_NUMBERS)
def test_rotary_numbers_hold_at_their_bounds(name):
    """The bound itself is allowed, the next float is not; no NaN."""
    low, high = ROPE_NUMBERS[name]
    assert getattr(RopeConfig(**{name: low}), name) == low
    assert getattr(RopeConfig(**{name: high}), name) == high
    for value in (math.nextafter(low, -math.inf), math.nextafter(high, math.inf), *NOT_NUMBERS):
        refused(RopeConfig, name, **{name: value})


def test_rotary_scaling_must_make_sense():
    """llama3 scaling needs its frequencies in order; contexts are counts; other scalings are unknown."""
    assert RopeConfig(scaling="llama3", low_freq_factor=1.0, high_freq_factor=4.0).scaling == "llama3"
    refused(RopeConfig, "high_freq_factor", scaling="llama3", low_freq_factor=4.0, high_freq_factor=4.0)
    refused(RopeConfig, "scaling", scaling="yarn")
    for value in (0, LIMITS.max_context + 1, 8192.0, True):
        refused(RopeConfig, "original context", original_context=value)


def test_absurd_models_cost_nothing():
    """A configuration of a billion layers is refused as a number: nothing is allocated for it."""
    refused(ModelConfig, "num_layers", **SMALL | {"num_layers": 10**9})
    refused(ModelConfig, "context_length", **SMALL | {"context_length": 10**12})


@pytest.mark.parametrize(
    "changes, parameters",
    [
        ({}, 10 * 8 + 1 * (8 * 4 * 2 * (2 + 1) + 3 * 8 * 16 + 2 * 8) + 8),
        ({"tie_word_embeddings": False}, 2 * 10 * 8 + 1 * (8 * 4 * 2 * (2 + 1) + 3 * 8 * 16 + 2 * 8) + 8),
    ],
)
def test_parameters_are_counted(changes, parameters):
    """Embeddings, projections, gated MLP, norms: a small Llama counted by hand."""
    config = ModelConfig(**SMALL | changes)
    assert config.parameters == parameters
    assert config.float32_bytes == 4 * parameters
