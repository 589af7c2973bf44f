"""What the page is told of a sweep: every figure in its place, and an honest sentence."""

import pytest

from specdec.ui.findings import best_lookahead, best_models, by_lookahead, by_models, label
from specdec.ui.sweep import Run, Way
from tests.ui.test_sweep import made, plain, run, speculative


def said(finding: dict[str, str]) -> tuple[str, str]:
    return finding["outcome"], finding["text"].replace("\N{NO-BREAK SPACE}", " ")


def test_the_fastest_k_is_named_with_its_speed_up_and_the_theory():
    """Not the largest one, nor the one with the most accepted drafts."""
    runs = [plain(), speculative(1, 1, 1), speculative(3, 3, 3, rows_cost=1.2), speculative(6, 6, 6, rows_cost=4)]
    assert said(best_lookahead(runs, {})) == ("faster", "Best here: k = 3, 2.67 × plain (theory 2.67 ×).")


@pytest.mark.parametrize(
    ("tries", "why"),
    [
        ([speculative(2, 0, 0), speculative(4, 0, 0)], "too few drafts were accepted"),
        ([speculative(2, 2, 2, draft_s=0.02)], "the target is too small for drafting to pay"),
        ([speculative(2, 2, 2, rows_cost=5)], "checking several tokens in a pass costs this target too much"),
    ],
)
def test_where_no_k_pays_it_says_so_and_why(tries: list[Run], why: str):
    """With the k that comes nearest."""
    outcome, text = said(best_lookahead([plain(), *tries], {}))
    assert outcome == "slower"
    assert text.startswith(f"No k pays here: plain is fastest, because {why}. Nearest: k = 2, 0.")


def test_nobody_wins_by_less_than_a_measurement_can_tell():
    """Within 5 % of plain no k is called faster."""
    runs = [plain(), speculative(1, 1, 1, rows_cost=1.88)]
    assert said(best_lookahead(runs, {}))[1].startswith(
        "No k is clearly faster than plain: at best k = 1, 1.01 × plain"
    )


def test_points_and_rows_are_in_the_order_of_k_and_say_the_same():
    """Also where they were measured in another order."""
    runs = [plain(), speculative(3, 3, 3), speculative(1, 1, 0, 0), plain()]
    told = by_lookahead(runs, {})
    assert [k for k, _ in told["points"]] == [1, 3]
    assert [k for k, _ in told["curve"]] == [0, 1, 2, 3]
    assert [row[0] for row in told["rows"]] == ["plain", "1", "3"]
    assert [float(row[2][:4]) for row in told["rows"][1:]] == pytest.approx([y for _, y in told["points"]], abs=0.005)
    _, _, _, alpha, rate, tau, v, theory = told["rows"][2]
    assert (alpha, rate, tau, v) == ("1.00", "100 %", "4.00", "1.00")
    assert float(theory[:4]) == pytest.approx(told["curve"][3][1], abs=0.005)
    assert told["letters"]["alpha"] == pytest.approx(7 / 9)
    assert "plain: 100–100 tokens/s in 2 runs" in told["about"]


def test_before_anything_was_drafted_there_is_no_curve():
    """Only the row of plain decoding."""
    told = by_lookahead([plain()], {})
    assert (told["points"], told["curve"], told["letters"], len(told["rows"])) == ([], [], None, 1)


def test_the_table_of_models_has_a_cell_for_every_pair():
    """A result with its α, a reason where a pair does not fit, nothing where it is not measured yet."""
    way = Way("big", "foreign", 2)
    runs = [plain(), speculative(2, 2, 1), run(Way("other"), [made(0, 0)])]
    told = by_models(runs, {way: "Their tokenizers differ.", Way("absent", "foreign", 2): "No."})
    assert told["columns"] == ["small", "foreign"]
    (big, other) = told["rows"]
    assert (big["target"], big["plain"], other["cells"]) == ("big", "100 tokens/s", [None, None])
    assert big["cells"][0]["note"].startswith("α 0.75")
    assert big["cells"][0]["times"] == pytest.approx(2.5 / 1.2, abs=1e-3)
    assert big["cells"][1] == {"text": "–", "note": "Their tokenizers differ."}


def test_the_best_pair_is_the_one_with_the_largest_speed_up():
    """Among all targets; where none fits, the reason."""
    other = [run(Way("other"), [made(0, 0, 0.5)]), run(Way("other", "small", 2), [made(2, 2, 0.5, 0.0)])]
    assert said(best_models([plain(), speculative(2, 1, 1), *other], {})) == (
        "faster",
        "Best here: small for other, 3.00 × plain at 600 tokens/s.",
    )
    outcome, text = said(best_models([], {Way("big", "foreign", 2): "Their tokenizers differ."}))
    assert (outcome, text) == ("even", "No pair could be measured. Their tokenizers differ.")


def test_a_run_is_named_by_what_varies():
    """k, or the models."""
    assert [label(way, models=False) for way in (Way("big"), Way("big", "small", 3))] == ["plain", "k = 3"]
    assert [label(way, models=True) for way in (Way("big"), Way("big", "small", 3))] == ["big, plain", "big, small"]
