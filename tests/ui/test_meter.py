"""A run's figures and the points of its charts, as it grows."""

from typing import Any

import pytest

from specdec.records import Round, Token
from specdec.stats import Stats
from specdec.ui.meter import RECENT, Meter, versus
from tests.ui.test_view import KEPT, PLAIN, REFUSED

PLAIN_LANE = Stats(tokens=30, rounds=30, verify_s=0.28, sample_s=0.02)  # 100 tokens/s


def metered(*steps: Round, plain: Stats | None = None) -> Meter:
    meter = Meter(plain)
    for step in steps:
        meter.add(step)
    return meter


def timed(index: int, seconds: float, **more: Any) -> Round:
    return Round(index, (), (Token(1, " x", "plain"),), " x", 0.0, seconds, 0.0, 1, **more)


def test_figures_are_those_of_stats():
    """Counts of all rounds; times of all but the first, which is the warm-up, as is prefill."""
    meter = metered(REFUSED, KEPT, PLAIN)
    every, later = Stats.of([REFUSED, KEPT, PLAIN]), Stats.of([KEPT, PLAIN])
    assert meter.figures() == {
        "speed": f"{later.tokens_per_second:.0f}",
        "now": f"{later.tokens_per_second:.0f}",
        "speedup": "–",
        "versus": "×",
        "acceptance": f"{100 * every.acceptance_rate:.0f}",
        "length": f"{every.mean_acceptance_length:.2f}",
        "draft": f"{100 * later.draft_share:.0f}",
        "verify": f"{100 * later.verify_share:.0f}",
        "rest": "25",
        "rounds": "3",
        "ttft": "140",
        "prefill": "100",
    }


@pytest.mark.parametrize(
    "seconds", [(0.125, 0.336, 0.539), (0.336, 0.334, 0.33), (0.0, 1.0, 0.0), (0.006, 0.988, 0.006)]
)
def test_shares_come_to_a_hundred(seconds: tuple[float, float, float]):
    """Also where each part by itself would be rounded up."""
    meter = metered(Round(0, (), (Token(1, " x", "plain"),), " x", *seconds, 1))
    figures = meter.figures()
    assert sum(int(figures[name]) for name in ("draft", "verify", "rest")) == 100
    assert int(figures["rest"]) >= 0


def test_of_nothing_nothing_is_said():
    """Dashes before the first round, and for drafts where there are none."""
    figures = Meter().figures()
    assert figures.pop("rounds") == "0"
    assert figures.pop("versus") == "×"
    assert set(figures.values()) == {"–"}
    assert metered(PLAIN, PLAIN).figures()["acceptance"] == "–"


def test_the_first_round_counts_only_while_it_is_alone():
    """A first round a hundred times slower is in no speed once there is a second; until then it is all there is."""
    assert metered(timed(0, 1.0)).figures()["speed"] == "1"
    meter = metered(timed(0, 1.0), timed(1, 0.01))
    assert (meter.figures()["speed"], meter.figures()["now"]) == ("100", "100")
    assert meter.stats.rounds == 2


def test_now_looks_back_on_a_few_rounds():
    """Slow rounds are forgotten after eight fast ones; the average remembers them."""
    meter = metered(*[timed(i, 0.1) for i in range(9)], *[timed(i, 0.01) for i in range(9, 9 + RECENT)])
    assert meter.figures()["now"] == "100"
    assert meter.figures()["speed"] == f"{(8 + RECENT) / (0.8 + 0.01 * RECENT):.0f}"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.005, {"speedup": "2.00", "versus": "×"}),
        (0.0098, {"speedup": "1.02", "versus": "×, as fast as plain"}),
        (0.02, {"speedup": "0.50", "versus": "×, slower than plain"}),
    ],
)
def test_the_speed_up_says_what_it_is(seconds: float, said: dict[str, str]):
    """Speed ÷ the plain lane's speed, and "slower than plain" where it is."""
    assert versus(PLAIN_LANE, Stats(tokens=1, rounds=1, verify_s=seconds)) == said
    meter = metered(timed(0, 9.0), timed(1, seconds), plain=PLAIN_LANE)
    assert {name: meter.figures()[name] for name in said} == said


def test_points_for_the_charts():
    """A round's own acceptance rate, the running one, drafts accepted, tokens, speed; none where there is none."""
    meter, points = Meter(), []
    for step in (REFUSED, KEPT, PLAIN):
        meter.add(step)
        points.append(meter.points(step))
    assert [point[:4] for point in points] == [[0.3333, 0.3333, 1, 2], [1.0, 0.6, 2, 5], [None, 0.6, None, 6]]
    assert [point[4] for point in points] == [None, 75, 50]
    assert metered(PLAIN).points(PLAIN)[:3] == [None, None, None]
