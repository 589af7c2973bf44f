"""Records fold to figures that can be counted by hand."""

import dataclasses
import json

import pytest

from specdec.records import Finished, Round, Started
from specdec.stats import Stats, ratio
from tests.example_run import FINISHED, ROUNDS, RUN, STARTED


def plain_step(index: int, seconds: float = 0.0) -> Round:
    return Round(index, (), (), "", 0.0, seconds, 0.0, 1)


@pytest.fixture(scope="module")
def stats() -> Stats:
    return Stats.of(RUN)


def test_counts_of_a_run(stats):
    """Drafts behind a refusal count as drafted (vLLM's way), drafts behind the end of the text count nowhere."""
    assert (stats.prompt_tokens, stats.tokens, stats.rounds) == (2, 9, 4)
    assert (stats.drafted, stats.accepted, stats.rejected) == (3 + 3 + 0 + 2, 3 + 1 + 0 + 2, 1)
    assert stats.accepted_per_position == (3, 2, 1)
    assert stats.faults == 1


def test_times_of_a_run(stats):
    """Prefill is in the time to the first token, and in no rate."""
    assert (stats.prefill_s, stats.draft_s, stats.verify_s, stats.sample_s) == (1.0, 0.75, 1.75, 0.25)
    assert stats.ttft_s == 1.0 + 0.25 + 0.5 + 0.125
    assert stats.decode_s == 2.75
    assert stats.tokens_per_second == 9 / 2.75
    assert (stats.draft_share, stats.verify_share) == (0.75 / 2.75, 1.75 / 2.75)


def test_rates_of_a_run(stats):
    """Acceptance rate is accepted ÷ drafted, α accepted ÷ judged, τ tokens ÷ rounds."""
    assert stats.acceptance_rate == 6 / 8
    assert stats.alpha == 6 / 7
    assert stats.mean_acceptance_length == 9 / 4


def test_rounds_tell_their_own_counts():
    """Accepted, rejected, drafted, seconds of each round."""
    assert [(step.accepted, step.rejected, step.drafted) for step in ROUNDS] == [
        (3, 0, 3),
        (1, 1, 3),
        (0, 0, 0),
        (2, 0, 2),
    ]
    assert [step.seconds for step in ROUNDS] == [1.875, 0.875, 0.25, 0.75]


def test_nothing_drafted_is_no_division_by_zero():
    """Of nothing, every rate is 0; plain steps do not count as 0 % accepted."""
    for stats in (Stats(), Stats.of([]), Stats.of([STARTED, FINISHED]), Stats.of([STARTED, plain_step(0), FINISHED])):
        assert (stats.acceptance_rate, stats.alpha, stats.tokens_per_second) == (0.0, 0.0, 0.0)
    with_steps = Stats.of([STARTED, ROUNDS[0], plain_step(1), plain_step(2)])
    assert with_steps.acceptance_rate == Stats.of([STARTED, ROUNDS[0]]).acceptance_rate == 1.0
    assert ratio(1.0, 0) == ratio(0, 0) == 0.0


def test_no_time_is_too_short_for_a_figure():
    """Below what a float can divide by there is no speed: JSON has no infinity."""
    stats = Stats.of([*RUN[:1], dataclasses.replace(ROUNDS[2], verify_s=5e-324), FINISHED])
    assert stats.tokens_per_second == 0.0
    assert json.dumps(stats.to_dict(), allow_nan=False)


def test_the_histogram_counts_each_round_once():
    """Rounds by how many drafts they accepted; with no round there is nothing to count."""
    accepted = [step.accepted for step in ROUNDS]
    histogram = Stats.of(ROUNDS).acceptance_histogram
    assert histogram == tuple(accepted.count(number) for number in range(max(accepted) + 1))
    assert sum(histogram) == len(ROUNDS)
    assert Stats().acceptance_histogram == (0,)


def test_positions_never_accepted_stay_zero():
    """A round without acceptance adds no position; one with fewer leaves the later ones as they are."""
    folded = Stats().add(ROUNDS[2]).add(ROUNDS[1]).add(ROUNDS[0])
    assert folded.accepted_per_position == (2, 1, 1)
    assert Stats().add(ROUNDS[2]).accepted_per_position == ()


def test_time_to_first_token_is_the_first_round_even_where_it_took_none():
    """A first round of 0 s is not replaced by a later one."""
    assert Stats().add(plain_step(0)).add(plain_step(1, 2.0)).ttft_s == 0.0


def test_folding_in_steps_equals_folding_at_once(stats):
    """`of` is `add` repeated; a `Started` begins anew."""
    stepwise = Stats(prompt_tokens=2)
    for step in ROUNDS:
        stepwise = stepwise.add(step)
    assert stepwise == stats == Stats.of([*RUN, *RUN])


def test_dictionary_has_counts_and_rates(stats):
    """What JSON gets: every field and every derived figure, under its own name."""
    given = stats.to_dict()
    derived = {"acceptance_rate", "alpha", "mean_acceptance_length", "decode_s", "tokens_per_second"}
    assert given.keys() == {spec.name for spec in dataclasses.fields(Stats)} | derived
    assert given["acceptance_rate"] == 0.75


@pytest.mark.parametrize("record", [STARTED, ROUNDS[0], FINISHED, ROUNDS[0].tokens[0], ROUNDS[0].proposals[0]])
def test_records_cannot_be_changed(record):
    """A reader cannot alter what the next reader sees."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, dataclasses.fields(record)[0].name, None)
    assert isinstance(record, Started | Round | Finished) or record == dataclasses.replace(record)
