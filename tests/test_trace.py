"""A trace survives JSON, and what is no trace is refused by name."""

import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec.errors import RequestError
from specdec.records import (
    Candidate,
    Exactness,
    Finished,
    FinishReason,
    Outcome,
    Proposal,
    Round,
    Source,
    Started,
    Token,
)
from specdec.trace import Trace
from tests.example_run import FINISHED, ROUNDS, RUN, STARTED

finite = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 10**9)
seconds = st.floats(0, 1e6)
chances = st.floats(0, 1)
texts = st.text(max_size=8)
one_of = lambda alias: st.sampled_from(get_args(alias))  # noqa: E731
values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
tops = st.lists(st.builds(Candidate, counts, texts, chances), max_size=2).map(tuple)
tokens = st.builds(Token, counts, texts, one_of(Source), st.none() | finite, tops)
maybe = st.none() | chances
proposals = st.builds(Proposal, counts, texts, chances, maybe, maybe, maybe, one_of(Outcome), tops, tops)
rounds = st.builds(
    Round,
    counts,
    st.lists(proposals, max_size=3).map(tuple),
    st.lists(tokens, max_size=3).map(tuple),
    texts,
    seconds,
    seconds,
    seconds,
    counts,
    st.none() | counts,
    seconds,
    texts,
)
ids = st.lists(counts, max_size=4).map(tuple)
starts = st.builds(
    Started, texts, texts, ids, counts, one_of(Exactness), st.dictionaries(texts, values, max_size=3), texts
)
ends = st.builds(Finished, one_of(FinishReason), ids, texts, texts)
traces = st.builds(
    Trace, starts, st.lists(rounds, max_size=3).map(tuple), ends, st.dictionaries(texts, st.floats(0, 1e9), max_size=2)
)


@given(traces)
def test_any_trace_survives_json(trace):
    """to_json, then from_json: the same records, figures and measurements, whatever they hold."""
    again = Trace.from_json(trace.to_json())
    assert again == trace
    assert again.stats == trace.stats
    assert again.to_json() == trace.to_json()


def test_a_trace_is_its_run():
    """Collected records come back in order; the shortcuts say what the last record says."""
    trace = Trace.collect(RUN, {"wall_s": 4.5})
    assert trace.records == RUN
    assert (trace.text, trace.ids, trace.finish_reason) == (FINISHED.text, FINISHED.ids, "eos")
    assert trace.to_dict()["stats"]["wall_s"] == trace.measurements["wall_s"] == 4.5


@pytest.mark.parametrize("records", [[], RUN[:1], RUN[1:], RUN[:-1], [FINISHED, STARTED]])
def test_half_a_run_is_no_trace(records):
    """Started first and Finished last, or ValueError."""
    with pytest.raises(ValueError, match="from Started to Finished"):
        Trace.collect(records)


def example() -> dict[str, Any]:
    """The example run as JSON data that a test may spoil."""
    return json.loads(Trace.collect(RUN, {"wall_s": 4.5}).to_json())


def refused(data: Any, field: str) -> None:
    with pytest.raises(RequestError) as caught:
        Trace.from_json(data if isinstance(data, str) else json.dumps(data))
    assert "this is not a trace" in str(caught.value)
    assert field in str(caught.value)


FIELDS = {
    "target": 1,
    "drafter": None,
    "prompt_ids": "1",
    "seed": True,
    "exactness": "exact",
    "settings": [],
    "note": 0,
    "finish_reason": "done",
    "ids": {"0": 1},
    "text": None,
    "tail": 3,
    "rounds": {},
    "measurements": [],
}


@pytest.mark.parametrize("field, value", FIELDS.items())
def test_wrong_types_are_named(field, value):
    """Each field of a trace, with a value of another type."""
    refused(example() | {field: value}, "reason" if field == "finish_reason" else field)


@pytest.mark.parametrize("field", ["target", "drafter", "prompt_ids", "seed", "exactness", "settings", "ids", "rounds"])
def test_missing_fields_are_named(field):
    """Each field that has no default, left out."""
    data = example()
    del data[field]
    refused(data, field)


@pytest.mark.parametrize(
    "field, value",
    [
        ("index", 1.0),
        ("index", False),
        ("proposals", None),
        ("tokens", [[]]),
        ("text", ["a"]),
        ("draft_s", "0.1"),
        ("verify_s", True),
        ("target_cache", None),
        ("draft_cache", "4"),
        ("fault", None),
    ],
)
def test_wrong_rounds_are_named(field, value):
    """A field of the second round, named with its place."""
    data = example()
    data["rounds"][1][field] = value
    refused(data, f"rounds[1].{field}")


@pytest.mark.parametrize(
    "kind, field, value",
    [
        ("proposals", "id", 1.5),
        ("proposals", "outcome", "kept"),
        ("proposals", "outcome", []),
        ("proposals", "q", None),
        ("proposals", "p", "0.5"),
        ("tokens", "source", {}),
        ("tokens", "logprob", "0"),
        ("tokens", "text", 7),
    ],
)
def test_wrong_tokens_are_named(kind, field, value):
    """A field of a token, named with its place."""
    data = example()
    data["rounds"][0][kind][0][field] = value
    refused(data, f"rounds[0].{kind}[0].{field}")


LISTS = [("proposals", "target_top"), ("proposals", "draft_top"), ("tokens", "top")]


@pytest.mark.parametrize("kind, field", LISTS)
def test_lists_are_written_where_they_are_and_read_strictly(kind, field):
    """A file of before they were, and one of a run that recorded none, has no such field; a wrong one is named."""
    data = example()
    inner = data["rounds"][0][kind][0]
    assert field not in inner
    entry = {"id": 3, "text": " a", "probability": 0.25}
    inner[field] = [entry]
    trace = Trace.from_json(json.dumps(data))
    assert getattr(getattr(trace.rounds[0], kind)[0], field) == (Candidate(3, " a", 0.25),)
    assert json.loads(trace.to_json())["rounds"][0][kind][0][field] == [entry]
    for wrong in (None, {}, [1], [entry | {"probability": "0"}], [entry | {"id": 0.5}], [{"id": 3}]):
        inner[field] = wrong
        refused(data, f"rounds[0].{kind}[0].{field}")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + 400 * "0"])
def test_numbers_that_are_none_are_refused(number):
    """JSON has no NaN and no infinity; charts and sums must never see one."""
    data = example()
    data["rounds"][0]["draft_s"] = "HERE"
    refused(json.dumps(data).replace('"HERE"', number), "JSON has no" if number[-1] in "Ny" else "rounds[0].draft_s")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", '"x"', "[" * 100_000, '{"a":' * 100_000, "\x00"])
def test_what_is_no_json_object_is_refused(text):
    """Empty, truncated, of another type, nested 100,000 deep: one clear error, no crash."""
    refused(text, "")


def test_deep_nesting_inside_a_field_is_refused_or_kept():
    """Settings may hold anything that JSON can read, and nothing that breaks the reader."""
    data = example() | {"settings": "HERE"}
    for depth in (10, 200_000):
        text = json.dumps(data).replace('"HERE"', '{"a":' * depth + "1" + "}" * depth)
        if depth == 10:
            assert Trace.from_json(text).started.settings["a"]["a"]
        else:
            refused(text, "")


@pytest.mark.parametrize("measurements", [{"x": "1"}, {"x": None}, {"x": True}, {"x": [1]}, 5, None])
def test_measurements_are_numbers(measurements):
    """Anything else is refused."""
    refused(example() | {"measurements": measurements}, "measurements")


def test_unknown_fields_and_forged_figures_are_ignored():
    """Figures are folded from the rounds again, whatever a file says of them."""
    data = example() | {"stats": {"tokens_per_second": 1e9}, "unknown": 1}
    assert Trace.from_json(json.dumps(data)).stats == Trace.collect(RUN).stats


@given(st.recursive(values, lambda inner: st.dictionaries(st.sampled_from([*FIELDS, "index", "tokens"]), inner)))
def test_whatever_json_says_the_answer_is_a_trace_or_one_error(data):
    """No other exception leaves the reader."""
    try:
        trace = Trace.from_json(json.dumps(data))
    except RequestError:
        return
    assert isinstance(trace.started, Started)


def test_spoiling_any_leaf_gives_a_trace_or_one_error():
    """Every value of the example, replaced by values of every JSON type: a trace or a RequestError."""
    for path in leaves(example()):
        for value in (None, True, -1, 1.5, "x", [], {}, [[]], {"id": 1}):
            data = example()
            inner = data
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
            try:
                assert len(Trace.from_json(json.dumps(data)).rounds) <= len(ROUNDS)
            except RequestError as error:
                assert "this is not a trace" in str(error)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Ways to every value inside, containers too."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [found for key, item in items for found in leaves(item, (*path, key))]
    return inner + ([path] if path else [])


def test_older_traces_load_and_a_paused_round_comes_back():
    """A file without the breaker's fields is read as closed; with them they come back, and empty ones take no room."""
    data = Trace.collect(RUN).to_dict()
    assert data.pop("breaker") == "closed"
    trace = Trace.from_json(json.dumps(data))
    assert trace.started.breaker == "closed"
    assert "paused" not in trace.to_json()
    steps = (replace(trace.rounds[0], paused="drafting is paused"), *trace.rounds[1:])
    paused = replace(trace, started=replace(trace.started, breaker="half-open"), rounds=steps)
    again = Trace.from_json(paused.to_json())
    assert (again.started.breaker, again.rounds[0].paused) == ("half-open", "drafting is paused")
