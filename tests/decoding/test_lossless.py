"""Speculative output is plain output: greedy always, `match` at any temperature, token for token, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.decoding import Engine, ModelDrafter, NgramDrafter
from specdec.decoding.protocols import Drafter
from specdec.decoding.verification import Verdict, greedy
from tests.decoding.greedy_check import differences
from tests.decoding.tiny import tiny
from tests.decoding.toys import Toy, ToyDrafter, hashed, noisy_copy

MATCH = SpeculativeConfig(acceptance="match")
SAMPLED = SamplingParams(temperature=0.9, top_p=0.95, seed=11)
PENALISED = SamplingParams(repetition_penalty=1.3, frequency_penalty=0.4, presence_penalty=0.2, logit_bias={5: 1.0})


def prompts(vocab: int, count: int) -> list[list[int]]:
    rng = np.random.default_rng(count)
    return [rng.integers(0, vocab, rng.integers(1, 12)).tolist() for _ in range(count)]


def drafters(target: Toy, close: Toy, far: Toy) -> list[Drafter]:
    """The target itself, a close copy, an unrelated model, n-grams, and noise."""
    rng = np.random.default_rng(0)
    noise = ToyDrafter(lambda tokens, k: rng.integers(0, target.network.vocab_size, k).tolist(), name="noise")
    return [ModelDrafter(target), ModelDrafter(close), ModelDrafter(far), NgramDrafter(min_ngram=1), noise]


@pytest.fixture(scope="module")
def toys() -> tuple[Toy, list[Drafter]]:
    target = hashed(1)
    return target, drafters(target, noisy_copy(target, 2, 0.7), hashed(3))


@pytest.fixture(scope="module")
def transformers() -> tuple[Toy, list[Drafter]]:
    target = tiny(1)
    return target, drafters(target, tiny(1, layers=1), tiny(7))


def test_greedy_equals_plain_for_every_lookahead_and_drafter(toys: tuple[Toy, list[Drafter]]) -> None:
    """20 prompts × 64 tokens × k 1, 2, 3, 4, 8 × 5 drafters, a target that depends on every token: no difference."""
    target, candidates = toys
    assert differences(target, candidates, prompts(16, 20)) == []


def test_greedy_equals_plain_on_real_transformers(transformers: tuple[Toy, list[Drafter]]) -> None:
    """The same with a tiny random Llama, 3 prompts, k 1, 3, 8: windows of real arithmetic, no difference."""
    target, candidates = transformers
    assert target.network.bit_exact
    assert differences(target, candidates, prompts(97, 3), lookaheads=(1, 3, 8)) == []


def test_the_check_notices_a_difference_and_its_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: an engine that takes every first draft on trust is caught, with where and by how much."""

    def trusting(best: list[int], drafts: list[int], judge: list[float]) -> Verdict:
        return greedy([*drafts[:1], *best[1:]] if drafts else best, drafts, judge)

    monkeypatch.setattr("specdec.decoding.engine.greedy", trusting)
    target = hashed(1)
    first, *_ = differences(target, [ModelDrafter(hashed(3))], [[1, 2]], lookaheads=(2,))
    assert first.margin > 0 and "k = 2, prompt 0: differs at token" in str(first)


@pytest.mark.parametrize("params", [PENALISED, replace(PENALISED, repetition_penalty=1.0)])
def test_greedy_with_penalties_equals_plain(transformers: tuple[Toy, list[Drafter]], params: SamplingParams) -> None:
    """Penalties and bias are a function of each row's prefix: no difference either."""
    target, candidates = transformers
    assert differences(target, candidates[1:4], prompts(97, 2), lookaheads=(1, 4), params=params) == []


@pytest.mark.parametrize("temperature", [0.3, 0.9, 1.5])
def test_match_equals_plain_sampling_at_any_temperature(toys: tuple[Toy, list[Drafter]], temperature: float) -> None:
    """Same seed, 6 prompts × 64 tokens × k 1, 3, 8 × 5 drafters, sampled: token-identical to plain decoding."""
    target, candidates = toys
    params = SamplingParams(temperature=temperature, seed=5)
    found = differences(target, candidates, prompts(16, 6), lookaheads=(1, 3, 8), params=params, speculation=MATCH)
    assert found == []


def test_match_equals_plain_sampling_on_real_transformers(transformers: tuple[Toy, list[Drafter]]) -> None:
    """top-p, temperature and penalties over real arithmetic: token-identical."""
    target, candidates = transformers
    params = replace(PENALISED, temperature=0.9, top_p=0.95, seed=11)
    found = differences(target, candidates[:3], prompts(97, 2), lookaheads=(1, 4), params=params, speculation=MATCH)
    assert found == []


def test_log_probabilities_of_speculative_and_plain_runs_are_the_same_bits() -> None:
    """Every emitted token's log p, accepted ones included: equal to plain decoding's, none 0 by default."""
    target = tiny(2)
    params = SamplingParams(max_tokens=40, logprobs=True)
    plain = Engine(target).generate([3, 4], params)
    fast = Engine(target, ModelDrafter(tiny(2, layers=1))).generate([3, 4], params)
    ours, theirs = ([token.logprob for step in trace.rounds for token in step.tokens] for trace in (fast, plain))
    assert ours == theirs
    assert all(value is not None and value < 0 for value in ours)
    assert fast.stats.accepted > 0


@pytest.mark.parametrize("k", [1, 2, 3, 4, 8])
def test_a_drafter_that_is_the_target_is_always_right(k: int) -> None:
    """Greedy, 64 tokens: acceptance 1, k + 1 tokens a round but for the last, ⌈64 / (k + 1)⌉ rounds, right sources."""
    target = hashed(4)
    trace = Engine(target, ModelDrafter(target, k)).generate([1, 2], SamplingParams(max_tokens=64))
    assert trace.stats.acceptance_rate == trace.stats.alpha == 1.0
    assert len(trace.rounds) == -(-64 // (k + 1))
    for step in trace.rounds[:-1]:
        assert [token.source for token in step.tokens] == ["accepted"] * k + ["bonus"]
    assert sum(len(step.tokens) for step in trace.rounds) == 64


@pytest.mark.parametrize("k", [1, 3, 7])
def test_a_drafter_that_is_the_target_stays_right_when_sampling(k: int) -> None:
    """q = p at temperature 1 over 2,000 tokens: all accepted, to the end; a cache off by one decays slowly."""
    target = hashed(5)
    params = SamplingParams(temperature=1.0, max_tokens=2_000, seed=3)
    assert Engine(target, ModelDrafter(target, k)).generate([1], params).stats.alpha == 1.0


def test_a_greedy_draft_is_not_judged_by_a_soft_q() -> None:
    """Greedy: the draft's q is one-hot, every proposal says q = 1, and p is 0 or 1."""
    target = hashed(6)
    trace = Engine(target, ModelDrafter(noisy_copy(target, 1, 1.0))).generate([0], SamplingParams(max_tokens=40))
    judged = [p for step in trace.rounds for p in step.proposals if p.outcome != "discarded"]
    assert {p.q for p in judged} == {1.0}
    assert all((p.p, p.acceptance) == ((1.0, 1.0) if p.outcome == "accepted" else (0.0, 0.0)) for p in judged)


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    """Rejection sampling, model drafter: ids repeat with the seed, differ without."""
    target = hashed(8)
    engine = Engine(target, ModelDrafter(noisy_copy(target, 1, 1.0)))
    params = SamplingParams(temperature=1.0, max_tokens=50, seed=1)
    assert engine.generate([1], params).ids == engine.generate([1], params).ids
    assert engine.generate([1], params).ids != engine.generate([1], replace(params, seed=2)).ids


def test_a_seed_that_was_drawn_can_be_used_again() -> None:
    """seed None: a fresh one each time, reported, and good for the same run once more."""
    engine = Engine(hashed(8))
    params = SamplingParams(temperature=1.0, max_tokens=50)
    first, second = engine.generate([1], params), engine.generate([1], params)
    assert first.started.seed != second.started.seed and first.ids != second.ids
    assert engine.generate([1], replace(params, seed=first.started.seed)).ids == first.ids


def test_nothing_outside_the_targets_support_is_emitted() -> None:
    """top-k 3, top-p 0.9 and a drafter that samples from everything: each of 600 tokens is in the target's support."""
    from specdec.decoding.processors import Processors

    target = hashed(9)
    params = SamplingParams(temperature=1.0, top_k=3, top_p=0.9, max_tokens=600, seed=0)
    rng = np.random.default_rng(0)
    noise = ToyDrafter(lambda tokens, k: rng.integers(0, 16, k).tolist())
    for drafter in (noise, ModelDrafter(hashed(10))):
        ids = Engine(target, drafter).generate([1], params).ids
        cache = target.network.new_cache(601)
        logits = target.network.forward([1, *ids[:-1]], cache)
        p = Processors(params, [1], 16).probabilities(logits)
        assert all(p[i, token] > 0 for i, token in enumerate(ids))
