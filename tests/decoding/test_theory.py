"""The formulae shown beside the measurements."""

import numpy as np
import pytest

from specdec.decoding import expected_tokens, speed_up


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.8, 0.999, 1.0])
@pytest.mark.parametrize("k", [0, 1, 4, 15])
def test_expected_tokens_is_the_geometric_sum(alpha: float, k: int) -> None:
    """1 + α + … + α^k, at α = 1 as well."""
    assert expected_tokens(alpha, k) == pytest.approx(sum(alpha**i for i in range(k + 1)))


def test_expected_tokens_of_simulated_rounds() -> None:
    """Independent acceptances at α = 0.7, k = 4, 200,000 rounds: within 0.02 (5 standard errors)."""
    stands = np.random.default_rng(0).random((200_000, 4)) < 0.7
    mean = 1 + np.cumprod(stands, axis=1).sum(axis=1).mean()
    assert mean == pytest.approx(expected_tokens(0.7, 4), abs=0.02)


def test_speed_up_of_leviathans_example_and_on_a_cpu() -> None:
    """v = 1 is the paper's formula; a window that costs more eats the gain; k = 0 changes nothing."""
    assert speed_up(0.8, 5, 0.1) == pytest.approx((1 - 0.8**6) / (0.2 * 1.5))
    assert speed_up(0.8, 5, 0.1, v=2.0) == pytest.approx((1 - 0.8**6) / (0.2 * 2.5))
    assert speed_up(0.3, 0, 0.5) == 1.0
