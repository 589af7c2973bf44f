"""Losslessness end to end: 50,000 tokens through the whole engine have the law of the target alone.

The target is Markov over V = 16 tokens. Each row is one and the same law in another order, so that the rank of a token
under the row of its predecessor is distributed alike for every token, and a token from a wrong row is noticed.
"""

from collections.abc import Callable

import numpy as np
import pytest

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.decoding import Engine, ModelDrafter, NgramDrafter
from specdec.decoding.protocols import Drafter
from specdec.decoding.verification import RULES
from specdec.stats import Stats
from tests.decoding.toys import Toy, ToyDrafter, markov
from tests.statistics.broken import (
    ArgmaxDrafter,
    bonus_from_wrong_row,
    first_draft_unverified,
    raw_q,
    resample_from_p,
)

V = 16
N = 50_000
RUN = 5_000  # tokens of one run; each has its own seed
CHI2 = 44.1  # 15 degrees of freedom, exceeded by chance once in 10,000 times
VARIATION = 0.022

BASE = np.exp(-0.35 * np.arange(V)) / np.exp(-0.35 * np.arange(V)).sum()
ORDER = np.stack([np.random.default_rng(row).permutation(V) for row in range(V)])  # (predecessor, token) -> rank
TARGET = markov(BASE[ORDER])
DRAFT = markov(np.random.default_rng(99).dirichlet(np.full(V, 0.8), V) * 0.5 + BASE[ORDER] * 0.5)


def sampled(drafter: Drafter | None, temperature: float, count: int, rule: str) -> tuple[np.ndarray, Stats]:
    """How often each rank occurs among `count` tokens, (V,), and the last run's statistics."""
    ranks = np.zeros(V)
    engine = Engine(TARGET, drafter)
    for seed in range(count // RUN):
        params = SamplingParams(temperature=temperature, max_tokens=RUN, seed=seed)
        trace = engine.generate([seed % V], params, SpeculativeConfig(acceptance=rule))
        path = np.array([seed % V, *trace.ids])
        ranks += np.bincount(ORDER[path[:-1], path[1:]], minlength=V)
    return ranks, trace.stats


def misfit(ranks: np.ndarray, temperature: float) -> tuple[float, float]:
    """χ² and total variation of counted ranks against the target's law at this temperature."""
    law = BASE ** (1 / temperature) / (BASE ** (1 / temperature)).sum()
    expected = law * ranks.sum()
    return float(((ranks - expected) ** 2 / expected).sum()), float(np.abs(ranks / ranks.sum() - law).sum() / 2)


DRAFTERS: dict[str, Callable[[], Drafter]] = {
    "model": lambda: ModelDrafter(DRAFT, 3),
    "n-gram": lambda: NgramDrafter(4, max_ngram=3, min_ngram=1),
}


@pytest.mark.parametrize("temperature", [0.7, 1.0])
@pytest.mark.parametrize("drafter", DRAFTERS)
def test_rejection_keeps_the_law(drafter: str, temperature: float) -> None:
    """N = 50,000: χ² ≤ 44.1 and total variation ≤ 0.022, fixed seeds; a correct engine fails for 1 seed in 10,000."""
    ranks, stats = sampled(DRAFTERS[drafter](), temperature, N, "rejection")
    chi2, variation = misfit(ranks, temperature)
    assert chi2 <= CHI2 and variation <= VARIATION
    assert 0.05 < stats.alpha < 0.95, "drafts must be both accepted and refused for the check to mean anything"


def test_match_keeps_the_law() -> None:
    """The same for `match`, N = 10,000, at temperature 1."""
    chi2, variation = misfit(sampled(DRAFTERS["model"](), 1.0, 10_000, "match")[0], 1.0)
    assert chi2 <= CHI2 and variation <= 0.03


def test_a_drafter_of_noise_leaves_the_law_alone() -> None:
    """Random proposals without a thought: N = 10,000, χ² ≤ 44.1."""
    rng = np.random.default_rng(8)
    noise = ToyDrafter(lambda tokens, k: rng.integers(0, V, k).tolist(), 3)
    assert misfit(sampled(noise, 1.0, 10_000, "rejection")[0], 1.0)[0] <= CHI2


def test_impossible_drafts_are_all_refused_and_leave_the_law_alone() -> None:
    """Drafts with p = 0 only: acceptance 0, one token a round, N = 10,000, χ² ≤ 44.1, no NaN."""
    worst = ORDER.argmax(axis=1)  # the token of last rank after each predecessor
    possible = np.where(ORDER < V - 1, BASE[ORDER], 0)
    target = markov(possible / possible.sum(axis=1, keepdims=True))
    impossible = ToyDrafter(lambda tokens, k: [int(worst[tokens[-1]])] * k, 2)
    trace = Engine(target, impossible).generate([0], SamplingParams(temperature=1, max_tokens=10_000, seed=1))
    assert trace.stats.acceptance_rate == 0 and trace.stats.mean_acceptance_length == 1
    path = np.array([0, *trace.ids])
    ranks = np.bincount(ORDER[path[:-1], path[1:]], minlength=V)
    assert ranks[V - 1] == 0
    expected = BASE[: V - 1] / BASE[: V - 1].sum() * 10_000
    assert ((ranks[: V - 1] - expected) ** 2 / expected).sum() <= CHI2


CONTROLS = {
    "raw q": (raw_q(0.7), 0.7, ModelDrafter(DRAFT, 3)),
    "resample from p": (resample_from_p, 1.0, ModelDrafter(DRAFT, 3)),
    "bonus from the wrong row": (bonus_from_wrong_row, 1.0, ModelDrafter(DRAFT, 3)),
    "first draft unverified": (first_draft_unverified, 1.0, ModelDrafter(DRAFT, 3)),
    "arg-max draft, soft q": (RULES["rejection"], 1.0, ArgmaxDrafter(DRAFT, 3)),
}


@pytest.mark.parametrize("control", CONTROLS)
def test_the_check_notices_broken_verifiers(control: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Controls: each of five broken verifiers fails the check, already with 10,000 of its 50,000 tokens."""
    rule, temperature, drafter = CONTROLS[control]
    monkeypatch.setattr("specdec.decoding.engine.RULES", {"rejection": rule})
    chi2, _ = misfit(sampled(drafter, temperature, 10_000, "rejection")[0], temperature)
    assert chi2 > CHI2


def test_toy_target_is_what_the_check_takes_it_for() -> None:
    """Each row of the target is the base law in its own order, and rows differ."""
    target: Toy = TARGET
    assert np.allclose(np.sort(np.exp(target.network.table), axis=1)[:, ::-1], BASE)
    assert len({tuple(row) for row in ORDER.tolist()}) == V
