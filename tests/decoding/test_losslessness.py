"""The test of losslessness itself: the real rules pass, a broken one is caught, and the critical value holds."""

import numpy as np
import pytest

from specdec.config import SamplingParams
from specdec.decoding import ModelDrafter, NgramDrafter
from specdec.decoding.losslessness import (
    UNIFORMS,
    Place,
    Tally,
    critical_variation,
    first_token,
    most_telling,
    plain_token,
    trusting,
)
from specdec.decoding.verification import RULES
from specdec.errors import RequestError
from tests.decoding.toys import hashed, noisy_copy

TARGET = hashed(1, vocab=40)
SAMPLED = SamplingParams(temperature=1.0)
DRAWS = 4_000


def place() -> Place:
    return most_telling(TARGET, ModelDrafter(noisy_copy(TARGET, 2, 1.0)), [1, 2, 3, 4], SAMPLED)


def tally(rule: str | None, seed: int) -> Tally:
    """Draws by a rule, or by the one that trusts every draft."""
    here, rng = place(), np.random.default_rng(seed)
    counted = Tally(here.p)
    chosen = trusting if rule is None else RULES[rule]  # type: ignore[index]
    counted.add(first_token(chosen, here, rng.random(UNIFORMS).tolist()) for _ in range(DRAWS))
    return counted


@pytest.mark.parametrize("rule", RULES)
def test_the_real_rules_pass(rule: str) -> None:
    """4,000 draws, fixed seed: below the critical value, which a sound rule exceeds for 1 seed in 10,000 at most."""
    counted = tally(rule, 3)
    assert counted.draws == DRAWS
    assert counted.variation <= counted.critical


def test_plain_draws_pass() -> None:
    """The control that must pass, as above."""
    here, rng = place(), np.random.default_rng(4)
    counted = Tally(here.p)
    counted.add(plain_token(RULES["rejection"], here, rng.random(UNIFORMS).tolist()) for _ in range(DRAWS))
    assert counted.variation <= counted.critical


def test_a_rule_that_keeps_every_draft_is_caught() -> None:
    """The control that must fail: its distance is that of q from p, far beyond the critical value."""
    counted = tally(None, 3)
    assert counted.variation > counted.critical
    assert abs(counted.variation - place().disagreement) < 0.05


def test_the_critical_value_keeps_its_promise() -> None:
    """At a false alarm of 1 in 10, 2,000 samples of each of three laws exceed it in no more than 10 %."""
    rng = np.random.default_rng(0)
    limit = critical_variation(200, 4, false_alarm=0.1)
    for law in ([0.25] * 4, [0.5, 0.5, 0, 0], [0.9, 0.05, 0.03, 0.02]):
        drawn = rng.multinomial(200, law, 2_000) / 200
        exceeded = (np.abs(drawn - law).sum(axis=1) / 2 > limit).mean()
        assert exceeded <= 0.1
    assert critical_variation(20_000, 16) == pytest.approx(0.02253, abs=1e-5)


def test_the_place_is_where_target_and_draft_differ_most() -> None:
    """Of all beginnings of the prompt; with a drafter that has nothing to propose it is an error in one sentence."""
    drafter = ModelDrafter(noisy_copy(TARGET, 2, 1.0))
    ends = [most_telling(TARGET, drafter, [1, 2, 3, 4][:end], SAMPLED) for end in range(1, 5)]
    assert ends[-1].disagreement == max(each.disagreement for each in ends)
    with pytest.raises(RequestError, match="ngram proposes nothing in this prompt"):
        most_telling(TARGET, NgramDrafter(), [1, 2, 3, 4], SAMPLED)


def test_a_draft_without_chance_is_judged_as_such() -> None:
    """n-gram lookup, q one at its draft: rejection passes, trust is caught."""
    here = most_telling(TARGET, NgramDrafter(min_ngram=1), [1, 2, 3, 1, 2], SAMPLED)
    assert here.drafts.q is None
    for rule, sound in ((RULES["rejection"], True), (trusting, False)):
        counted, rng = Tally(here.p), np.random.default_rng(5)
        counted.add(first_token(rule, here, rng.random(UNIFORMS).tolist()) for _ in range(DRAWS))
        assert (counted.variation <= counted.critical) == sound
