"""Losslessness, exactly: the law of what is emitted is summed over all uniforms, and is the target's to 1e-12."""

from collections.abc import Iterator

import numpy as np
import pytest

from specdec.decoding.verification import RULES, Rule, match, rejection
from tests.statistics.broken import bonus_from_wrong_row, first_draft_unverified, raw_q, resample_from_p
from tests.statistics.laws import (
    Rows,
    distance,
    expected_match,
    expected_rejection,
    first_token_law,
    joint_law,
    markov_law,
    one_hot_law,
    outcomes,
    round_law,
)

EXACT = 1e-12
rules = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())


def pairs(count: int, vocab: int = 5) -> Iterator[tuple[Rows, Rows]]:
    """Random p and q: soft, peaked, with zeros, equal, equal but for rounding, with nothing in common."""
    rng = np.random.default_rng(2023)
    for i in range(count):
        p, q = rng.dirichlet(np.full(vocab, (0.2, 1.0, 5.0)[i % 3]), 2)
        kind = i // 3 % 5
        if kind == 1:
            p, q = (np.where(rng.random(vocab) < 0.4, 0, row) + 1e-300 for row in (p, q))
            p, q = (np.where(row < 1e-200, 0, row) for row in (p, q))
            p, q = (row if row.any() else np.eye(vocab)[i % vocab] for row in (p, q))
        if kind == 2:
            q = p.copy()
        if kind == 3:
            q = p * (1 + 1e-16 * rng.normal(size=vocab))
        if kind == 4:
            p, q = np.where(np.arange(vocab) < 2, p, 0), np.where(np.arange(vocab) < 2, 0, q)
        yield p / p.sum(), q / q.sum()


@rules
def test_one_draft_leaves_the_law_of_the_next_token_alone(rule: Rule) -> None:
    """300 random pairs, V = 5: |law − p| ≤ 1e-12, and the rule's borders lie where they must."""
    worst = max(np.abs(first_token_law(rule, p, q, edges=True) - p).max() for p, q in pairs(300))
    assert worst <= EXACT


@rules
def test_a_draft_chosen_without_chance_leaves_the_law_alone(rule: Rule) -> None:
    """One-hot q (n-gram, greedy drafts): every draft, likely or impossible, |law − p| ≤ 1e-12."""
    worst = max(np.abs(one_hot_law(rule, p, draft) - p).max() for p, _ in pairs(60) for draft in range(5))
    assert worst <= EXACT


@rules
@pytest.mark.parametrize("k", [1, 2, 3])
def test_joint_law_of_three_tokens_over_rounds(rule: Rule, k: int) -> None:
    """Random Markov target and drafter, V = 3: the joint law of the first three tokens is the target's to 1e-12."""
    rng = np.random.default_rng(k)
    target, drafter = rng.dirichlet(np.ones(3), (2, 3))
    laws = [round_law(rule, target, drafter, last, k) for last in range(3)]
    for last in range(3):
        assert distance(joint_law(laws.__getitem__, last, 3), markov_law(target, last, 3)) <= EXACT


def test_expected_acceptance_is_the_sum_the_theory_says() -> None:
    """Probability that one draft stands: Σ min(p, q) under rejection, Σ p·q under match, to 1e-12."""
    for rule, expected in ((rejection, expected_rejection), (match, expected_match)):
        for p, q in pairs(45):
            rows, stands = np.stack([p, np.eye(5)[0]]), 0.0
            for draft in np.flatnonzero(q).tolist():
                law = outcomes(rule, rows, (draft,), q[None])
                stands += q[draft] * sum(size for emitted, size in law.items() if len(emitted) == 2)
            assert abs(stands - expected(p, q)) <= EXACT


@pytest.mark.parametrize(
    "rule", [raw_q(0.7), resample_from_p, bonus_from_wrong_row, first_draft_unverified],
    ids=["raw q", "resample from p", "bonus from the wrong row", "first draft unverified"],
)  # fmt: skip
def test_the_exact_check_notices_broken_rules(rule: Rule) -> None:
    """Controls: each broken rule is off by more than a percent somewhere in the joint law of two tokens."""
    target, drafter = np.random.default_rng(5).dirichlet(np.ones(3), (2, 3))
    laws = [round_law(rule, target, drafter, last, 1) for last in range(3)]
    worst = max(distance(joint_law(laws.__getitem__, last, 2), markov_law(target, last, 2)) for last in range(3))
    assert worst > 0.01


def test_the_exact_check_notices_arg_max_drafts_with_soft_q() -> None:
    """Control: drafts that are always q's arg-max, judged as though drawn from q, bend the law by over a percent."""
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.3, 0.1])
    law = np.zeros(3)
    for emitted, size in outcomes(rejection, np.stack([p, p]), (0,), q[None]).items():
        law[emitted[0]] += size
    assert np.abs(law - p).max() > 0.01
