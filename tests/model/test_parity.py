"""The forward pass agrees with PyTorch `transformers` on every variant of both families: |Δlogit| ≤ 2e-4."""

import numpy as np
import pytest
from transformers import PreTrainedModel

from specdec.config import ModelConfig, RopeConfig
from specdec.model import Transformer
from tests.model.random_models import (
    gpt2_reference,
    llama_reference,
    qwen2_reference,
    reference_logits,
    weights_of,
)

TOLERANCE = 2e-4
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 10_000.0, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
}  # fmt: skip


def llama_config(**changes: object) -> ModelConfig:
    settings: dict[str, object] = {
        "family": "llama", "vocab_size": 300, "hidden_size": 96, "num_layers": 3, "num_heads": 6, "num_kv_heads": 2,
        "head_dim": 16, "intermediate_size": 200, "context_length": 512, "norm_eps": 1e-6,
    }  # fmt: skip
    return ModelConfig(**(settings | changes))


def qwen2_config() -> ModelConfig:
    return llama_config(
        hidden_size=64, num_layers=2, num_heads=4, intermediate_size=160, qkv_bias=True,
        rope=RopeConfig(theta=10_000.0),
    )  # fmt: skip


def gpt2_config(**changes: object) -> ModelConfig:
    settings: dict[str, object] = {
        "family": "gpt2", "vocab_size": 301, "hidden_size": 48, "num_layers": 3, "num_heads": 4, "num_kv_heads": 4,
        "head_dim": 12, "intermediate_size": 192, "context_length": 512, "qkv_bias": True, "output_bias": True,
        "mlp_bias": True,
    }  # fmt: skip
    return ModelConfig(**(settings | changes))


VARIANTS = {
    "llama": lambda: (llama_reference(), llama_config()),
    "untied": lambda: (llama_reference(tie_word_embeddings=False), llama_config(tie_word_embeddings=False)),
    "every head its own keys": lambda: (llama_reference(num_key_value_heads=6), llama_config(num_kv_heads=6)),
    "one head of keys": lambda: (llama_reference(num_key_value_heads=1), llama_config(num_kv_heads=1)),
    "wide heads": lambda: (llama_reference(head_dim=40), llama_config(head_dim=40)),
    "theta": lambda: (
        llama_reference(rope_parameters={"rope_type": "default", "rope_theta": 500_000.0}),
        llama_config(rope=RopeConfig(theta=500_000.0)),
    ),
    "linear scaling": lambda: (
        llama_reference(rope_parameters={"rope_type": "linear", "rope_theta": 10_000.0, "factor": 4.0}),
        llama_config(rope=RopeConfig(scaling="linear", factor=4.0)),
    ),
    "llama3 scaling": lambda: (
        llama_reference(rope_parameters=LLAMA3),
        llama_config(rope=RopeConfig(scaling="llama3", factor=8.0, original_context=64)),
    ),
    "attention and mlp bias": lambda: (
        llama_reference(attention_bias=True, mlp_bias=True),
        llama_config(qkv_bias=True, output_bias=True, mlp_bias=True),
    ),
    "qwen2": lambda: (qwen2_reference(), qwen2_config()),
    "gpt2": lambda: (gpt2_reference(), gpt2_config()),
    "gpt2 untied": lambda: (gpt2_reference(tie_word_embeddings=False), gpt2_config(tie_word_embeddings=False)),
    "gpt2 inner": lambda: (gpt2_reference(n_inner=80), gpt2_config(intermediate_size=80)),
}


@pytest.fixture(params=VARIANTS, scope="module")
def pair(request: pytest.FixtureRequest) -> tuple[PreTrainedModel, Transformer]:
    reference, config = VARIANTS[request.param]()
    return reference, Transformer(config, weights_of(reference), threads=1)


def test_logits_equal_those_of_transformers(pair: tuple[PreTrainedModel, Transformer]) -> None:
    """Prefill of 300 tokens in chunks, then one at a time, then a window: all rows within 2e-4."""
    reference, model = pair
    ids = np.random.default_rng(1).integers(0, 300, 320).tolist()
    expected = reference_logits(reference, ids)
    cache = model.new_cache(320)
    rows = [model.forward(ids[:300], cache)]
    rows += [model.forward([token], cache) for token in ids[300:310]]
    rows += [model.forward(ids[310:], cache)]
    assert np.abs(expected).max() > 1, "the reference is too tame to tell anything"
    assert np.abs(np.concatenate(rows) - expected).max() <= TOLERANCE


def test_the_configuration_counts_parameters_as_transformers_does() -> None:
    """`ModelConfig.parameters` is the number of weight-matrix and norm entries, biases aside."""
    reference = llama_reference()
    assert llama_config().parameters == sum(tensor.numel() for tensor in reference.parameters())
