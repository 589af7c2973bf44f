"""Settings are refused where they are made, at the limit plus one, and the message names them."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec.config import LIMITS, ModelConfig, RopeConfig, SamplingParams, SpeculativeConfig, require_choice
from specdec.errors import ConfigError
from tests.settings import NOT_INTEGERS, NOT_NUMBERS, cases, refused
from tests.test_model_config import SMALL

SAMPLING_NUMBERS = {
    "temperature": (0.0, 100.0),
    "top_p": (0.0, 1.0),
    "min_p": (0.0, 1.0),
    "repetition_penalty": (0.01, 100.0),
    "frequency_penalty": (-10.0, 10.0),
    "presence_penalty": (-10.0, 10.0),
}
SAMPLING_INTEGERS = {
    "top_k": (0, LIMITS.max_vocabulary),
    "max_tokens": (0, LIMITS.max_new_tokens),
    "seed": (0, 2**63 - 1),
}


@pytest.mark.parametrize("name", SAMPLING_NUMBERS)
def test_sampling_numbers_hold_at_their_bounds(name):
    """The bound itself is allowed, the next float is not."""
    low, high = SAMPLING_NUMBERS[name]
    assert getattr(SamplingParams(**{name: low}), name) == low
    assert getattr(SamplingParams(**{name: high}), name) == high
    refused(SamplingParams, name, **{name: math.nextafter(low, -math.inf)})
    refused(SamplingParams, name, **{name: math.nextafter(high, math.inf)})


@pytest.mark.parametrize("name", SAMPLING_INTEGERS)
def test_sampling_integers_hold_at_their_bounds(name):
    """The bound itself is allowed, one more or less is not."""
    low, high = SAMPLING_INTEGERS[name]
    assert getattr(SamplingParams(**{name: low}), name) == low
    assert getattr(SamplingParams(**{name: high}), name) == high
    refused(SamplingParams, name, **{name: low - 1})
    refused(SamplingParams, name, **{name: high + 1})


@pytest.mark.parametrize("name, value", cases(SAMPLING_NUMBERS, NOT_NUMBERS))
def test_sampling_numbers_are_finite_numbers(name, value):
    """No bool, text, NaN or infinity."""
    refused(SamplingParams, name, **{name: value})


@pytest.mark.parametrize(
    "name, value", [case for case in cases(SAMPLING_INTEGERS, NOT_INTEGERS) if case.values != ("seed", None)]
)
def test_sampling_integers_are_integers(name, value):
    """No float, not even a whole one, no bool."""
    refused(SamplingParams, name, **{name: value})


def test_integers_pass_for_numbers():
    """temperature=1 is temperature=1.0."""
    assert SamplingParams(temperature=1) == SamplingParams(temperature=1.0)


def test_stop_strings_hold_at_their_bounds():
    """So many, so long, none empty, and a tuple."""
    longest, most = "x" * LIMITS.max_stop_length, LIMITS.max_stop_strings
    assert len(SamplingParams(stop=(longest,) * most).stop) == most
    refused(SamplingParams, "stop", stop=("x",) * (most + 1))
    refused(SamplingParams, "stop", stop=(longest + "x",))
    refused(SamplingParams, "stop", stop=("",))
    for wrong in ("abc", ["abc"], (1,), None):
        refused(SamplingParams, "stop", stop=wrong)


@pytest.mark.parametrize("bias", [{-1: 0.0}, {LIMITS.max_vocabulary + 1: 0.0}, {1.0: 0.0}, {True: 0.0}])
def test_biased_tokens_are_ids(bias):
    """Keys of logit_bias."""
    refused(SamplingParams, "logit_bias token", logit_bias=bias)


@pytest.mark.parametrize("value", [1e4 + 1, -1e4 - 1, *NOT_NUMBERS])
def test_biases_are_numbers(value):
    """Values of logit_bias, at their bounds and beyond."""
    assert SamplingParams(logit_bias={0: 1e4, LIMITS.max_vocabulary: -1e4})
    refused(SamplingParams, "logit_bias", logit_bias={0: value})


@pytest.mark.parametrize("token", [-1, LIMITS.max_vocabulary + 1, 1.0, True, None])
def test_stop_tokens_are_ids(token):
    """Ids in stop_token_ids."""
    assert SamplingParams(stop_token_ids=(0, LIMITS.max_vocabulary))
    refused(SamplingParams, "stop token id", stop_token_ids=(token,))


@pytest.mark.parametrize("params", [SamplingParams(), SamplingParams(temperature=2.0, top_k=1)])
def test_greedy_is_no_temperature_or_one_candidate(params):
    """Defaults are greedy, and so is top_k 1 at any temperature."""
    assert params.greedy
    assert not SamplingParams(temperature=1e-6).greedy


@pytest.mark.parametrize("value", [0, LIMITS.max_speculative_tokens, "auto", None])
def test_lookahead_may_be(value):
    """0 … the limit, auto, or the drafter's own."""
    assert SpeculativeConfig(value).num_speculative_tokens == value


@pytest.mark.parametrize("value", [-1, LIMITS.max_speculative_tokens + 1, "AUTO", "4", 4.0, True, math.nan])
def test_lookahead_may_not_be(value):
    """Anything else."""
    refused(SpeculativeConfig, "num_speculative_tokens", num_speculative_tokens=value)


@pytest.mark.parametrize("value", [-1, LIMITS.max_top + 1, *NOT_INTEGERS])
def test_tops_hold_at_their_bounds(value):
    """0 … the limit, whole numbers only."""
    assert [SpeculativeConfig(top=top).top for top in (0, LIMITS.max_top)] == [0, LIMITS.max_top]
    refused(SpeculativeConfig, "top", top=value)


@pytest.mark.parametrize("value", ["Rejection", "", None, 0, "typical"])
def test_acceptance_rules_are_two(value):
    """rejection and match."""
    assert {SpeculativeConfig(acceptance=rule).acceptance for rule in ("rejection", "match")} == {"rejection", "match"}
    refused(SpeculativeConfig, "acceptance", acceptance=value)


@given(st.one_of(st.none(), st.text(), st.floats(), st.integers(), st.booleans(), st.lists(st.integers())))
def test_any_value_is_taken_or_refused(value):
    """A setting never fails in another way than ConfigError."""
    for kind, base in ((SamplingParams, {}), (SpeculativeConfig, {}), (RopeConfig, {}), (ModelConfig, SMALL)):
        for name in (
            "temperature",
            "top_k",
            "max_tokens",
            "num_speculative_tokens",
            "acceptance",
            "theta",
            "num_layers",
        ):
            if name in {spec.name for spec in dataclasses.fields(kind)}:
                try:
                    assert getattr(kind(**base | {name: value}), name) == value
                except ConfigError as error:
                    assert str(error)


def test_settings_cannot_be_changed():
    """Frozen: a request in flight keeps what it was checked with."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        SamplingParams().temperature = 2.0  # type: ignore[misc]
    with pytest.raises(ConfigError, match="one of a, b"):
        require_choice("thing", "c", ("a", "b"))


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"logit_bias": None}, "logit_bias"),
        ({"logit_bias": [1]}, "logit_bias"),
        ({"stop_token_ids": 5}, "stop_token_ids"),
        ({"temperature": 10**400}, "temperature"),
        ({"logprobs": 3}, "logprobs"),
        ({"ignore_eos": "no"}, "ignore_eos"),
    ],
)
def test_values_of_another_kind_are_refused_by_name(settings, named):
    """No AttributeError, TypeError or OverflowError, and nothing counts as true that is not."""
    with pytest.raises(ConfigError, match=named):
        SamplingParams(**settings)
    with pytest.raises(ConfigError, match="exact"):
        SpeculativeConfig(exact="no")


def test_a_bias_changed_later_changes_nothing():
    """Settings keep their own copy."""
    bias = {1: 2.0}
    params = SamplingParams(logit_bias=bias)
    bias[1] = math.nan
    assert params.logit_bias == {1: 2.0}
