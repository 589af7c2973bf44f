"""Speculative output equals plain output on trained models: greedy with any drafter, `match` at temperature 1."""

from dataclasses import dataclass

import pytest

from specdec import Engine, LanguageModel, ModelDrafter, NgramDrafter, SamplingParams, SpeculativeConfig
from specdec.model import Transformer
from tests.decoding.greedy_check import differences
from tests.model.random_models import llama_config, random_model

STORIES = [
    "Once upon a time",
    "Tom had a red ball. He",
    "The little dog was sad because",
    '"Look!" said Lily. "A',
    "One day, a big bear found a boat.",
    "Mia and Ben went to the park.",
    "It was raining.",
    "The",
    "A frog who could not jump met a bird who could not sing.",
    "Mom said no. Sam",
]
CHATS = ["Count from 1 to 20.", "Repeat after me: red fish, blue fish, red fish.", "Why is the sky blue?"]
MATCH = SpeculativeConfig(acceptance="match")
SAMPLED = SamplingParams(temperature=1.0, seed=3)


@dataclass(frozen=True)
class Untrained:
    """A draft model with random weights that shares the target's words."""

    tokenizer: object
    network: Transformer
    eos_ids: frozenset[int]
    name: str = "random weights"


def untrained(target: LanguageModel) -> Untrained:
    network = random_model(llama_config(target.network.vocab_size, 32, 1, 2, 1, 16, 32))
    return Untrained(target.tokenizer, network, target.eos_ids)


def chat(model: LanguageModel, text: str) -> list[int]:
    return model.tokenizer.apply_chat_template([{"role": "user", "content": text}])


@pytest.mark.timeout(900)  # minutes on a machine that does other things too
def test_bundled_pair_greedy(bundled: tuple[LanguageModel, LanguageModel]) -> None:
    """10 prompts × 64 tokens × k 1, 2, 3, 4, 8 × {draft, target itself, random weights, n-gram}: equal, bit for bit."""
    target, draft = bundled
    drafters = [ModelDrafter(draft), ModelDrafter(target), ModelDrafter(untrained(target)), NgramDrafter()]
    assert target.network.bit_exact
    assert differences(target, drafters, STORIES) == []


def test_bundled_pair_match(bundled: tuple[LanguageModel, LanguageModel]) -> None:
    """`match` at temperature 1: the very tokens of plain sampling with the same seed."""
    target, draft = bundled
    drafters = [ModelDrafter(draft), NgramDrafter()]
    assert differences(target, drafters, STORIES, params=SAMPLED, speculation=MATCH, lookaheads=(1, 4)) == []


def test_a_model_that_drafts_for_itself_is_always_accepted(bundled: tuple[LanguageModel, LanguageModel]) -> None:
    """Acceptance 1.0 over a whole long text, so that no round leaves the draft's cache a token short."""
    target, _ = bundled
    for params in (SamplingParams(max_tokens=300, ignore_eos=True), SamplingParams(1.0, max_tokens=300, seed=1)):
        stats = Engine(target, ModelDrafter(target, 4)).generate(STORIES[0], params).stats
        assert stats.acceptance_rate == 1.0


def test_smollm2_greedy(smollm2: LanguageModel) -> None:
    """Chat prompts × 20 tokens × k 2, 5 × {n-gram, random weights}: equal, bit for bit."""
    prompts = [chat(smollm2, text) for text in CHATS]
    drafters = [NgramDrafter(min_ngram=1), ModelDrafter(untrained(smollm2))]
    assert differences(smollm2, drafters, prompts, tokens=20, lookaheads=(2, 5)) == []


def test_smollm2_drafting_for_itself(smollm2: LanguageModel) -> None:
    """Same model as draft: all accepted, same ids."""
    ids = chat(smollm2, CHATS[0])
    params = SamplingParams(max_tokens=20)
    trace = Engine(smollm2, ModelDrafter(smollm2, 4)).generate(ids, params)
    assert trace.stats.acceptance_rate == 1.0
    assert trace.ids == Engine(smollm2).generate(ids, params).ids


def test_smollm2_match(smollm2: LanguageModel) -> None:
    """`match` at temperature 1 on the real model, token for token."""
    prompts = [chat(smollm2, text) for text in CHATS[:2]]
    drafters = [NgramDrafter(min_ngram=1)]
    found = differences(smollm2, drafters, prompts, tokens=24, lookaheads=(4,), params=SAMPLED, speculation=MATCH)
    assert found == []
