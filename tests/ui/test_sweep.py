"""What a sweep measures, in which order, and how its runs become the theory's letters. Rounds are made by hand."""

from collections.abc import Sequence
from typing import Any

import pytest

from specdec.decoding import expected_tokens
from specdec.records import Proposal, Round, Token
from specdec.serving import GenerationRequest, Offer
from specdec.ui.sweep import Run, Theory, Way, gain, lookaheads, pairings, plain_speed, take_turns

PLAIN = Way("big")
STEP_S = 0.01


def made(k: int, accepted: int, rows_cost: float = 1.0, draft_s: float = 0.001) -> Round:
    """A round of k drafts; its pass costs `rows_cost` plain steps, each draft `draft_s`."""
    outcomes = ["accepted"] * accepted + ["rejected"] * (accepted < k) + ["discarded"] * (k - accepted - 1)
    drafts = tuple(Proposal(1, " x", 0.5, 0.5, 0.5, 0.5, outcome) for outcome in outcomes)  # type: ignore[arg-type]
    tokens = tuple(Token(1, " x", "plain") for _ in range(accepted + 1))
    return Round(0, drafts, tokens, "", k * draft_s, STEP_S * rows_cost, 0.0, 1)


def run(way: Way, rounds: Sequence[Round]) -> Run:
    return Run.of(way, rounds)


def plain(seconds: float = STEP_S) -> Run:
    return run(PLAIN, [made(0, 0, seconds / STEP_S)] * 4)


def speculative(k: int, *accepted: int, **more: Any) -> Run:
    return run(Way("big", "small", k), [made(k, count, **more) for count in accepted])


@pytest.mark.parametrize(
    ("most", "measured"),
    [(0, []), (1, [1]), (3, [1, 2, 3]), (7, [1, 2, 3, 4, 5, 6, 7]), (8, [1, 2, 3, 4, 5, 6, 8]), (-2, [])],
)
def test_a_sweep_goes_up_to_the_k_that_was_asked_for(most: int, measured: list[int]):
    """Small k all, large ones with gaps, the largest always."""
    assert lookaheads(most) == measured


def test_plain_decoding_takes_turns():
    """First, after every second way and last, for each target by itself; no way is lost."""
    ways = [Way("big", "small", k) for k in (1, 2, 3)] + [Way("other", "small", 2)]
    assert take_turns(ways) == [PLAIN, *ways[:2], PLAIN, ways[2], PLAIN, Way("other"), ways[3], Way("other")]
    assert take_turns([]) == []


def test_pairs_are_targets_with_smaller_drafts():
    """Roles are kept; a model never drafts for itself, nor a larger one for a smaller."""
    offers = [
        Offer("big", 100, "target"),
        Offer("small", 10, "draft"),
        Offer("middle", 50, "either"),
        Offer("unknown", None, "either"),
    ]
    found = {(way.target, way.draft) for way in pairings(offers, 3)}
    assert found == {
        *(("big", draft) for draft in ("small", "middle", "unknown")),
        *(("middle", draft) for draft in ("small", "unknown")),
        *(("unknown", draft) for draft in ("small", "middle")),
    }


def test_a_way_changes_nothing_but_target_draft_and_k():
    """Prompt, sampling and acceptance rule are what was asked."""
    asked = GenerationRequest("Once", "other", "none")
    request = Way("big", "small", 5).request(asked)
    assert (request.target, request.draft, request.speculation.num_speculative_tokens) == ("big", "small", 5)
    assert (request.prompt, request.params) == (asked.prompt, asked.params)
    assert request.speculation.acceptance == asked.speculation.acceptance


def test_speed_up_is_over_the_median_of_the_plain_runs():
    """One plain run at a bad moment changes nothing; other targets' runs do not count."""
    runs = [plain(0.01), plain(0.05), plain(0.01), run(Way("other"), [made(0, 0)]), speculative(2, 2, 2, draft_s=0.0)]
    assert plain_speed(runs, "big") == pytest.approx(100)
    assert gain(runs[-1], runs) == pytest.approx(3.0)
    assert plain_speed(runs, "absent") == 0


def test_the_letters_are_what_the_rounds_say():
    """α of all runs together, c a draft's seconds in plain steps, v by rows, and straight lines between."""
    runs = [plain(), speculative(2, 2, 1, rows_cost=1.2), speculative(4, 0, 4, rows_cost=1.6)]
    theory = Theory.of(runs)
    assert theory.alpha == pytest.approx(7 / 9)  # accepted 2 + 1 + 0 + 4, refused 0 + 1 + 1 + 0
    assert theory.c == pytest.approx(0.1)
    assert theory.v == pytest.approx({1: 1.0, 3: 1.2, 5: 1.6})
    assert theory.cost(4) == pytest.approx(1.4)
    assert theory.row == pytest.approx((2 * 0.2 + 4 * 0.6) / (4 + 16))
    assert theory.speed_up(0) == 1
    assert theory.speed_up(2) == pytest.approx(expected_tokens(7 / 9, 2) / (1.2 + 2 * 0.1))


def test_theory_agrees_with_runs_that_behave_as_it_says():
    """Where every draft is accepted and costs are constant, the curve is the measurement, exactly."""
    runs = [plain(), *(speculative(k, *[k] * 5, rows_cost=1 + 0.1 * k) for k in (1, 2, 3, 4))]
    theory = Theory.of(runs)
    assert [gain(each, runs) for each in runs[1:]] == pytest.approx([theory.speed_up(k) for k in (1, 2, 3, 4)])
    assert theory.row == pytest.approx(0.1)


def test_plain_runs_alone_are_no_accident():
    """Before anything was drafted α and c are 0 and v is 1."""
    theory = Theory.of([plain()])
    assert (theory.alpha, theory.c, theory.v, theory.row) == (0, 0, {1: 1}, 0)
