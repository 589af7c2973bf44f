"""SmolLM2-135M-Instruct in this engine: the same words as `transformers`, and the same bits in every window."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from specdec.bench.reference import as_transformers
from specdec.checkpoints.checkpoint import Checkpoint
from specdec.model import Transformer
from tests.real.conftest import NAME

PROMPTS = [
    "What is the capital of France?",
    "Count from 1 to 20.",
    "Write a Python function that reverses a string.",
    "Give me three names for a black cat.",
    "Why is the sky blue? Answer in one sentence.",
]
CONTINUATION = 24


def greedy(network: Transformer, ids: list[int], count: int) -> list[int]:
    cache = network.new_cache(len(ids) + count)
    network.forward(ids[:-1], cache, logits=0)
    tokens = list(ids)
    for _ in range(count):
        tokens.append(int(network.forward(tokens[cache.length :], cache)[0].argmax()))
    return tokens[len(ids) :]


def test_greedy_continuations_equal_those_of_transformers(checkpoint: Checkpoint, network: Transformer) -> None:
    """Five chat prompts, 24 tokens each, on the same dequantised weights: not one id differs."""
    reference = as_transformers(checkpoint)
    for prompt in PROMPTS:
        ids = checkpoint.tokenizer.apply_chat_template([{"role": "user", "content": prompt}])
        found = greedy(network, ids, CONTINUATION)
        with torch.inference_mode():
            logits = reference(torch.tensor([ids + found])).logits[0].numpy()
        expected = logits[len(ids) - 1 : -1].argmax(axis=-1).tolist()
        assert found == expected, prompt


def test_logits_are_close_to_those_of_transformers(checkpoint: Checkpoint, network: Transformer) -> None:
    """A whole pass over 60 tokens: |Δlogit| ≤ 2e-3 on logits that reach 20 (float32 sums of 30 layers)."""
    ids = np.random.default_rng(0).integers(0, checkpoint.config.vocab_size, 60).tolist()
    with torch.inference_mode():
        expected = as_transformers(checkpoint)(torch.tensor([ids])).logits[0].numpy()
    found = network.forward(ids, network.new_cache(60))
    assert np.abs(found - expected).max() <= 2e-3


@pytest.mark.parametrize("size", [2, 3, 5, 9, 13])
def test_windows_equal_single_rows_bit_for_bit(network: Transformer, size: int) -> None:
    """Rows 40 … 105 of a random text, windowed and one at a time: no bit of any logit differs."""
    assert network.bit_exact
    ids = np.random.default_rng(1).integers(0, network.vocab_size, 105).tolist()
    cache = network.new_cache(105)
    network.forward(ids[:40], cache, logits=0)
    alone = np.concatenate([network.forward([token], cache) for token in ids[40:]])
    cache.truncate(40)
    windows = [network.forward(ids[i : i + size], cache) for i in range(40, 105, size)]
    assert np.array_equal(alone, np.concatenate(windows))


MEASURE = f"""
from specdec import load_model
from specdec.checkpoints.memory import peak_bytes
model = load_model("{NAME}")
cache = model.network.new_cache(600)
model.network.forward(list(range(600)), cache, logits=1)
print(peak_bytes() / model.network.config.float32_bytes)
"""


def test_weights_are_held_once() -> None:
    """Peak resident memory of loading and a 600-token prefill, in a process of its own: ≤ 1.5 × the float32 weights."""
    run = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    assert float(run.stdout) <= 1.5
