"""Drawing by the inverse of the cumulative sum, and log-probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec.decoding.sampling import draw, log_probabilities
from specdec.errors import NumericalError

ALMOST_ONE = 1 - 2.0**-53


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [5, 2_048, 2_049, 49_152])
def test_no_token_of_probability_zero_is_drawn(size: int, dtype: type) -> None:
    """u = 0, 1 − 2⁻⁵³, 1 and 500 between, over rows that begin and end with zeros: every draw has weight."""
    rng = np.random.default_rng(size)
    weights = np.where(rng.random(size) < 0.5, 0, rng.random(size)).astype(dtype)
    weights[:2] = weights[-2:] = 0
    weights[2] = 1e-3
    weights /= weights.sum()
    for u in [0.0, ALMOST_ONE, 1.0, *rng.random(500)]:
        assert weights[draw(weights, u)] > 0


@pytest.mark.parametrize("size", [7, 3_000])
def test_each_token_gets_its_share_of_the_unit_interval(size: int) -> None:
    """Just inside either end of a token's interval the draw is that token: the inverse of the cumulative sum."""
    weights = np.random.default_rng(size).dirichlet(np.ones(size))
    ends = weights.cumsum() / weights.sum()
    for token in range(0, size, 1 + size // 100):
        low = ends[token - 1] if token else 0.0
        assert draw(weights, low + weights[token] * 1e-3) == token
        assert draw(weights, ends[token] - weights[token] * 1e-3) == token


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9).filter(any), st.floats(0, 1), st.floats(0.999999, 1.000001))
def test_rows_that_sum_to_almost_one_are_fine(values: list[float], u: float, scale: float) -> None:
    """Sums of 1 ± 1e-6 change no draw's sense: always a token of weight."""
    weights = np.array(values)
    with np.errstate(all="ignore"):
        weights = weights / weights.sum() * scale
    if np.isfinite(weights).all() and weights.sum() > 0:
        assert weights[draw(weights, u)] > 0


@pytest.mark.parametrize("size", [7, 3_000])
def test_weights_need_not_sum_to_one(size: int) -> None:
    """Four times or an eighth of the weights, which rounds nothing, draw the same tokens."""
    weights = np.random.default_rng(size).dirichlet(np.ones(size))
    for u in np.random.default_rng(0).random(50):
        assert draw(weights * 4, u) == draw(weights / 8, u) == draw(weights, u)


def test_small_weights_are_not_lost_beside_a_large_one() -> None:
    """Running sums are float64, whatever the row: in float32 2²⁴ + 1 is 2²⁴."""
    weights = np.array([2.0**24, 1, 1], np.float32)
    assert [draw(weights, (2**24 + part) / (2**24 + 2)) for part in (-0.5, 0.5, 1.5)] == [0, 1, 2]


@pytest.mark.parametrize("weights", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_nothing_to_draw_is_an_error(weights: list[float]) -> None:
    """Zero, NaN or infinite sums: NumericalError."""
    with pytest.raises(NumericalError, match="sum to"):
        draw(np.array(weights), 0.5)


def test_one_hot_rows_draw_their_token() -> None:
    """Greedy rows, long and short."""
    for size in (3, 5_000):
        for token in (0, 1, size - 1):
            row = np.zeros(size, np.float32)
            row[token] = 1
            assert [draw(row, u) for u in (0.0, 0.5, ALMOST_ONE)] == [token] * 3


def test_log_probabilities_are_the_log_softmax() -> None:
    """Against the formula in float64, at ±1e4 too: equal to 1e-5."""
    logits = np.random.default_rng(4).normal(0, 4, (3, 50)).astype(np.float32)
    logits[2, 7], logits[2, 8] = 1e4, -1e4
    wide = logits.astype(np.float64)
    expected = [wide[i, token] - np.logaddexp.reduce(wide[i]) for i, token in enumerate((3, 49, 8))]
    assert np.allclose(log_probabilities(logits, (3, 49, 8)), expected, rtol=1e-5, atol=1e-5)


def test_log_probabilities_of_a_part_of_the_rows() -> None:
    """Fewer tokens than rows: the run ended inside the window."""
    logits = np.zeros((4, 8), np.float32)
    assert np.allclose(log_probabilities(logits, (1, 2)), [-np.log(8)] * 2)
