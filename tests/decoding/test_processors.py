"""Processors: what SamplingParams say, row by row, as a pure function of each row's own prefix."""

import dataclasses
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec.config import SamplingParams
from specdec.decoding.processors import Processors, keep_top_k, keep_top_p
from specdec.decoding.sampling import draw
from specdec.errors import NumericalError

V = 12


def reference(logits: list[float], prompt: list[int], output: list[int], params: SamplingParams) -> list[float]:
    """One row, in Python floats, a sentence of the documentation at a time."""
    x = list(logits)
    for token, bias in params.logit_bias.items():
        x[token] += bias
    for token in {*prompt, *output}:
        x[token] = x[token] / params.repetition_penalty if x[token] > 0 else x[token] * params.repetition_penalty
    for token, count in Counter(output).items():
        x[token] -= count * params.frequency_penalty + params.presence_penalty
    best = x.index(max(x))
    if params.greedy:
        return [float(i == best) for i in range(len(x))]
    w = [math.exp((value - max(x)) / params.temperature) for value in x]
    order = sorted(range(len(x)), key=lambda i: (-w[i], i))
    if params.top_k:
        order = order[: params.top_k]
    if params.top_p < 1:
        total, kept, mass = sum(w[i] for i in order), [], 0.0
        for i in order:
            kept.append(i)
            mass += w[i]
            if mass >= params.top_p * total:
                break
        order = kept
    order = [i for i in order if w[i] >= params.min_p]
    return [w[i] / sum(w[j] for j in order) if i in order else 0.0 for i in range(len(x))]


params_strategy = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 0.1, 0.7, 1.0, 2.0]),
    top_k=st.sampled_from([0, 1, 3, V, V + 5]),
    top_p=st.sampled_from([0.0, 0.13, 0.57, 0.91, 1.0]),
    min_p=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    repetition_penalty=st.sampled_from([1.0, 1.3, 0.8]),
    frequency_penalty=st.sampled_from([0.0, 0.7, -0.4]),
    presence_penalty=st.sampled_from([0.0, 0.9]),
    logit_bias=st.dictionaries(st.integers(0, V - 1), st.sampled_from([-5.0, 2.5, 100.0, -10_000.0]), max_size=3),
)
tokens = st.lists(st.integers(0, V - 1), max_size=8)


@given(params_strategy, tokens, tokens, st.lists(st.integers(0, V - 1), max_size=4), st.integers(0, 2**32 - 1))
@settings(max_examples=300, deadline=None)
def test_every_row_of_a_window_is_what_the_documentation_says(
    params: SamplingParams, prompt: list[int], output: list[int], drafts: list[int], seed: int
) -> None:
    """All processors, rows behind 0 … k drafts, against a plain reference: equal to 1e-9 in float64."""
    logits = np.random.default_rng(seed).normal(0, 3, (len(drafts) + 1, V))
    processors = Processors(params, prompt, V)
    for length in range(len(output) + 1):
        processors.follow(prompt + output[:length])
    rows = processors.probabilities(logits, drafts)
    for i, row in enumerate(rows):
        assert np.allclose(row, reference(logits[i].tolist(), prompt, output + drafts[:i], params), atol=1e-9)


PENALTIES = SamplingParams(temperature=0.8, repetition_penalty=1.2, frequency_penalty=0.5, presence_penalty=0.3)


def test_penalties_count_neither_refused_drafts_nor_accepted_ones_twice() -> None:
    """After a round of which one of three drafts stood, the next rows are those of a fresh count of the text."""
    logits = np.random.default_rng(1).normal(0, 2, (4, V))
    once = Processors(PENALTIES, [1, 2], V)
    once.probabilities(logits, [3, 4, 5])
    once.follow([1, 2, 3, 7])
    once.probabilities(logits, [3, 3, 3])
    once.follow([1, 2, 3, 7, 3])
    fresh = Processors(PENALTIES, [1, 2], V)
    fresh.follow([1, 2, 3, 7, 3])
    assert np.array_equal(once.probabilities(logits[:1]), fresh.probabilities(logits[:1]))


@pytest.mark.parametrize("vocab", [V, 301, 4096, 5003])
@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=0.7),
        SamplingParams(temperature=1.3, top_k=7, top_p=0.9),
        SamplingParams(temperature=1.0, top_p=0.8, min_p=0.01),
        dataclasses.replace(PENALTIES, logit_bias={3: 2.0}),
        SamplingParams(repetition_penalty=1.4),
    ],
)
def test_a_row_has_the_same_bits_in_a_window_as_alone(vocab: int, params: SamplingParams) -> None:
    """float32, 5 rows at once against one at a time: no bit differs, so that `match` is plain decoding's twin."""
    logits = np.random.default_rng(vocab).normal(0, 3, (5, vocab)).astype(np.float32)
    drafts = [3, 5, 3, 2]
    window = Processors(params, [1, 2], vocab).probabilities(logits, drafts)
    assert window.dtype == np.float32
    for i in range(5):
        alone = Processors(params, [1, 2], vocab)
        alone.follow([1, 2, *drafts[:i]])
        assert np.array_equal(alone.probabilities(logits[i : i + 1])[0], window[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_are_neither_changed_nor_widened(dtype: type) -> None:
    """The caller's logits stay as they were (log-probabilities are read off them later); the type is kept."""
    logits = np.random.default_rng(2).normal(0, 2, (2, V)).astype(dtype)
    before = logits.copy()
    params = dataclasses.replace(PENALTIES, logit_bias={1: 3.0}, top_p=0.9, top_k=4, min_p=0.1)
    for each in (params, SamplingParams(temperature=1.0), SamplingParams(), SamplingParams(logit_bias={1: 3.0})):
        processors = Processors(each, [1, 2, 3], V)
        processors.follow([1, 2, 3, 4])
        assert processors.probabilities(logits, [5]).dtype == dtype
        assert np.array_equal(logits, before)


def probabilities(row: list[float], dtype: type = np.float32, **settings: float) -> np.ndarray:
    params = SamplingParams(**{"temperature": 1.0, **settings})
    with np.errstate(all="raise"):
        return Processors(params, [], len(row)).probabilities(np.array([row], dtype))[0]


EXTREMES = {
    "±1e4": [1e4, -1e4, 9999.0, 0.0],
    "all equal": [3.0] * 4,
    "one finite": [-np.inf, 2.0, -np.inf, -np.inf],
    "huge": [-3e38, 0.0, 1.0, 3e30],
    "tiny differences": [1.0, 1.0 + 1e-7, 1.0, 1.0],
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("temperature", [1e-300, 1e-6, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("row", EXTREMES.values(), ids=EXTREMES.keys())
def test_extreme_logits_still_sum_to_one(row: list[float], temperature: float, dtype: type) -> None:
    """±1e4, all equal, one finite, at any temperature: the sum is 1 ± 1e-6, with all of NumPy's errors raised."""
    p = probabilities(row, dtype, temperature=temperature)
    assert abs(p.sum() - 1) <= 1e-6 and (p >= 0).all()
    assert p[np.argmax(np.array(row, dtype))] == p.max()


@pytest.mark.parametrize("row", [[-np.inf] * 3, [0.0, np.nan, 1.0], [np.nan] * 3, [0.0, np.inf, 1.0]])
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.0}, {"top_p": 0.5}, {"top_k": 2}, {"top_k": 1}])
def test_no_possible_token_or_nan_is_an_error(row: list[float], settings: dict[str, float]) -> None:
    """All −∞, NaN anywhere or +∞: NumericalError, whatever the settings."""
    with pytest.raises(NumericalError):
        probabilities(row, **settings)


def test_one_bad_row_of_a_window_is_enough() -> None:
    """NaN in the last row of three."""
    logits = np.zeros((3, 4), np.float32)
    logits[2, 1] = np.nan
    with pytest.raises(NumericalError):
        Processors(SamplingParams(temperature=1), [], 4).probabilities(logits, [1, 2])


@pytest.mark.parametrize(
    "settings", [{"temperature": 0.0}, {"top_k": 1}, {"top_p": 0.0}, {"temperature": 1e-6}, {"min_p": 1.0}]
)
def test_greedy_where_it_is_greedy(settings: dict[str, float]) -> None:
    """temperature 0, top_k 1, top_p 0, a tiny temperature, min_p 1: all of the mass on the arg-max."""
    assert probabilities([0.1, 2.0, 1.0, -1.0], **settings).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("settings", [{"temperature": 0.0}, {"top_k": 1}, {"top_p": 0.0}])
def test_of_equal_logits_the_lowest_id_wins(settings: dict[str, float]) -> None:
    """Ties go to the lowest id."""
    assert probabilities([1.0, 5.0, 5.0, 5.0], **settings).tolist() == [0, 1, 0, 0]


def test_top_k_of_ties_keeps_exactly_k() -> None:
    """Where several are equal at the border, the lower ids stay; k tokens, not more."""
    weights = np.array([[0.2, 1.0, 0.2, 0.2, 0.1], [0.0, 0.0, 1.0, 0.0, 0.0]])
    keep_top_k(weights, 3)
    assert weights.tolist() == [[0.2, 1.0, 0.2, 0, 0], [0, 0, 1.0, 0, 0]]


@given(st.lists(st.sampled_from([0.0, 0.001, 0.1, 0.25, 0.5, 1.0]), min_size=1, max_size=40), st.floats(0, 0.999))
def test_top_p_keeps_the_smallest_set_that_suffices(values: list[float], top_p: float) -> None:
    """What stays reaches top_p of the mass, without its last member it would not, and none outside is larger."""
    row = np.array([*values, 1.0])
    weights = row[None].copy()
    keep_top_p(weights, top_p)
    kept = np.sort(weights[0][weights[0] > 0])
    assert kept.sum() >= top_p * row.sum() * (1 - 1e-12)
    assert len(kept) == 1 or kept[1:].sum() < top_p * row.sum() * (1 + 1e-12)
    assert np.sort(row)[::-1][: len(kept)].tolist() == kept[::-1].tolist()


@pytest.mark.parametrize("temperature", [0.0, 0.1, 0.7, 1.0, 2.0])
@pytest.mark.parametrize("top_k", [0, 1, 5, 50])
def test_nothing_outside_the_support_is_ever_drawn(temperature: float, top_k: int) -> None:
    """20 settings × 3 of top_p × 200 draws over 50 tokens: each draw has p > 0, at most top_k different ones."""
    rng = np.random.default_rng(top_k)
    for top_p in (0.1, 0.9, 1.0):
        params = SamplingParams(temperature=temperature, top_k=top_k, top_p=top_p)
        p = Processors(params, [], 50).probabilities(rng.normal(0, 2, (1, 50)).astype(np.float32))[0]
        drawn = {draw(p, u) for u in [0.0, *rng.random(198), 1.0]}
        assert all(p[token] > 0 for token in drawn)
        assert not top_k or len(drawn) <= top_k


def test_bias_reaches_every_row() -> None:
    """A forbidding bias holds in each row of a window, not in the bonus row only."""
    params = SamplingParams(temperature=1.0, logit_bias={4: -10_000.0}, min_p=1e-9)
    rows = Processors(params, [], V).probabilities(np.zeros((4, V), np.float32), [1, 2, 3])
    assert (rows[:, 4] == 0).all() and (rows[:, 5] > 0).all()
