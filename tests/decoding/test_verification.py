"""Acceptance rules at their borders. That they keep the law is summed in tests/statistics."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from specdec.decoding.verification import RULES, Rule, Verdict, acceptance, greedy, match, rejection, residual

ALMOST_ONE = 1 - 2.0**-53
rules = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())


def rows(*values: Sequence[float], dtype: type = np.float64) -> np.ndarray:
    return np.array(values, dtype)


def test_a_draft_without_probability_is_refused_even_at_u_0() -> None:
    """u = 0, p = 0: refused, with soft and one-hot q, since 0 < 0 is false."""
    p = rows([0.0, 1.0], [0.5, 0.5])
    for q in (rows([0.5, 0.5]), None):
        verdict = rejection(p, [0], q, [0.0], [0.3, 0.3])
        assert (verdict.accepted, verdict.token, verdict.kind) == (0, 1, "recovered")


@pytest.mark.parametrize("value", [0.1, 0.25, 0.3, 1e-30, 0.9999999, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_p_and_q_accept_up_to_the_last_u(value: float, dtype: type) -> None:
    """u = 1 − 2⁻⁵³, p = q: accepted, whatever the value."""
    p, q = rows([value, 1 - value], [1, 0], dtype=dtype), rows([value, 1 - value], dtype=dtype)
    assert rejection(p, [0], q, [ALMOST_ONE], [0.5, 0.5]).accepted == 1


def test_a_residual_of_nothing_falls_back_to_p() -> None:
    """p = q, p = q to rounding, one-hot p: the residual is a distribution within p's support, never NaN."""
    p = np.array([0.2, 0.3, 0.5])
    assert residual(p, p).tolist() == p.tolist()
    nearly = residual(p, p * (1 + 1e-16))
    assert abs(nearly.sum() - 1) < 1e-12
    one = np.array([0.0, 1.0, 0.0])
    assert residual(one, one).tolist() == one.tolist()
    assert residual(one, p).tolist() == one.tolist()


def test_verification_is_silent_under_all_of_numpys_errors() -> None:
    """np.errstate(all = raise), float32 rows with zeros, tiny and one-hot values: no warning from either rule."""
    tiny = rows([1e-38, 1 - 1e-38, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], dtype=np.float32)
    with np.errstate(all="raise"):
        for rule, q, u in product(RULES.values(), (tiny[:2], None), (0.0, 0.5, ALMOST_ONE)):
            assert 0 <= rule(tiny, [0, 2], q, [u] * 2, [u] * 3).token < 3


def test_rejection_recovers_from_the_residual_and_gives_the_bonus_from_row_k() -> None:
    """Refused: the residual's only token; all accepted: the last row's."""
    p = rows([0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    q = rows([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    assert rejection(p, [0, 1], q, [0.6, 0.1], [0.9] * 3) == rejection(p, [0, 1], None, [0.6, 0.1], [0.9] * 3)
    refused = rejection(p, [0, 1], q, [0.6, 0.1], [0.9] * 3)
    assert (refused.accepted, refused.token, refused.kind, len(refused.judged)) == (0, 1, "recovered", 1)
    bonus = rejection(p, [0, 1], q, [0.4, 0.1], [0.9] * 3)
    assert (bonus.accepted, bonus.token, bonus.kind, len(bonus.judged)) == (2, 2, "bonus", 2)


def test_a_refused_draft_of_which_its_drafter_was_certain_is_not_drawn() -> None:
    """q None is one at the draft: the residual has nothing left there, whatever the uniform."""
    p = rows([0.5, 0.3, 0.2], [1, 0, 0])
    drawn = [rejection(p, [0], None, [0.7], [u, 0.5]).token for u in (0.0, 0.3, 0.59, 0.61, ALMOST_ONE)]
    assert drawn == [1, 1, 1, 2, 2]


def test_judgements_say_p_acceptance_and_u() -> None:
    """What the page shows of each judged draft."""
    p, q = rows([0.2, 0.8], [0.9, 0.1], [1, 0]), rows([0.4, 0.6], [0.3, 0.7])
    first, second = rejection(p, [0, 0], q, [0.4, 0.5], [0.5] * 3).judged
    assert (first.p, first.acceptance, first.u) == (0.2, 0.5, 0.4)
    assert (second.p, second.acceptance, second.u) == (0.9, 1.0, 0.5)
    (judged, *_) = match(p, [1, 0], q, [0.4, 0.5], [0.7] * 3).judged
    assert (judged.p, judged.acceptance, judged.u) == (0.8, 0.8, 0.7)


def test_match_emits_the_targets_own_draws() -> None:
    """Whatever the drafts, the tokens are those that the uniforms draw from p: a prefix of plain decoding."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 4)
    uniforms = rng.random(4).tolist()
    plain = [match(p[i : i + 1], [], None, [], uniforms[i : i + 1]).token for i in range(4)]
    for drafts in product(range(3), repeat=3):
        verdict = match(p, drafts, None, [], uniforms)
        emitted = [*drafts[: verdict.accepted], verdict.token]
        assert emitted == plain[: len(emitted)]


@rules
def test_without_drafts_a_round_is_a_plain_step(rule: Rule) -> None:
    """k = 0: one token, kind "plain", nothing judged."""
    assert rule(rows([0.0, 1.0]), [], None, [], [0.5]) == Verdict(0, 1, "plain", ())


@rules
def test_greedy_is_either_rule_on_one_hot_rows(rule: Rule) -> None:
    """All best tokens and drafts, V = 3, k = 0 … 2, one-hot and soft q, 3 uniforms: the same tokens and verdicts."""
    soft = np.full((2, 3), 1 / 3)
    for k in range(3):
        for best, drafts in product(product(range(3), repeat=k + 1), product(range(3), repeat=k)):
            p = np.eye(3)[list(best)]
            for q, u in product((None, soft[:k]), (0.0, 0.5, ALMOST_ONE)):
                ours, theirs = greedy(best, drafts, [u] * k), rule(p, drafts, q, [u] * k, [u] * (k + 1))
                assert (ours.accepted, ours.token, ours.kind) == (theirs.accepted, theirs.token, theirs.kind)
                assert [(j.p, j.u) for j in ours.judged] == [(j.p, j.u) for j in theirs.judged]


@pytest.mark.parametrize("p, q, expected", [(0.0, 0.0, 1.0), (0.0, 0.5, 0.0), (0.5, 0.0, 1.0), (0.2, 0.4, 0.5)])
def test_acceptance_probability_never_divides_by_zero(p: float, q: float, expected: float) -> None:
    """min(1, p / q), at the borders too."""
    assert acceptance(p, q) == expected
