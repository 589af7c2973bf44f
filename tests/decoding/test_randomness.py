"""Uniforms are a function of (seed, position, purpose) and of nothing else."""

import numpy as np

from specdec.decoding.randomness import BLOCK, Purpose, Uniforms, block


def test_the_same_key_gives_the_same_number_in_any_order() -> None:
    """Positions visited forwards, backwards and across blocks: equal."""
    one, other = Uniforms(7), Uniforms(7)
    positions = [0, 1, BLOCK - 1, BLOCK, 5 * BLOCK + 3]
    forwards = {(p, i): one.at(p, i) for p in Purpose for i in positions}
    backwards = {(p, i): other.at(p, i) for i in reversed(positions) for p in reversed(Purpose)}
    assert forwards == backwards


def test_known_numbers() -> None:
    """The first uniforms of seed 0, so that a recorded seed means the same tomorrow: raw Philox, shifted to 53 bits."""
    key, counter = np.array([0, Purpose.CHOOSE], np.uint64), np.zeros(4, np.uint64)
    raw = np.random.Philox(key=key, counter=counter).random_raw(2)
    assert block(0, Purpose.CHOOSE, 0)[:2] == [int(value) // 2**11 / 2**53 for value in raw]


def test_seeds_purposes_and_positions_are_independent() -> None:
    """No two of 6 × 3 × 1,024 numbers are equal, and neighbours do not correlate (|r| < 0.1; 1 in 1,000 by chance)."""
    seeds = (0, 1, 2, 2**32, 2**62, 2**63 - 1)
    streams = [Uniforms(seed).window(p, 0, 4 * BLOCK) for seed in seeds for p in Purpose]
    assert len({value for stream in streams for value in stream}) == 18 * 4 * BLOCK
    correlations = np.corrcoef(streams) - np.eye(18)
    assert np.abs(correlations).max() < 0.15


def test_numbers_lie_in_the_unit_interval_and_fill_it() -> None:
    """[0, 1), mean 0.5 ± 0.02 over 4,096."""
    values = np.array(Uniforms(3).window(Purpose.JUDGE, 0, 16 * BLOCK))
    assert values.min() >= 0 and values.max() < 1 and abs(values.mean() - 0.5) < 0.02


def test_nothing_global_is_touched() -> None:
    """NumPy's global generator is left as it was."""
    before = np.random.get_state()[1].tolist()
    Uniforms(5).window(Purpose.DRAFT, 0, 600)
    assert np.random.get_state()[1].tolist() == before
