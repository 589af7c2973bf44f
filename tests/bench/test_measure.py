"""Who is measured when, and what the figures mean."""

import dataclasses

import pytest

from specdec.bench.figures import Spread, fold, gaps, rows
from specdec.bench.measure import rotated, take_turns
from specdec.bench.peers import as_rounds
from specdec.bench.plan import PLAIN, Way
from specdec.decoding import expected_tokens
from specdec.records import Round, Token
from specdec.stats import Stats
from tests.bench.toys import DRAFT, TARGET, contest, shelf

WAYS = (*PLAIN, Way(draft=DRAFT, k=2), Way(draft="ngram", k=3))


def turns_of(asked, toys=None):
    toys = toys or shelf()
    players = {way: toys.player(TARGET, way) for way in asked.ways}
    return list(take_turns(asked, players, toys.prompts(asked.work)))


def step(seconds: float, tokens: int, prefill: float = 0.0) -> Round:
    return Round(0, (), (Token(1, "", "plain"),) * tokens, "", 0.0, seconds, 0.0, 0, prefill_s=prefill)


def test_all_continue_a_prompt_before_any_is_given_the_next():
    """Blocks of one prompt each, in which every way appears once; each block begins with another way."""
    turns = turns_of(contest(*WAYS))
    blocks = [turns[i : i + len(WAYS)] for i in range(0, len(turns), len(WAYS))]
    assert len(blocks) == 4
    assert [(block[0].repetition, block[0].prompt) for block in blocks] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for block in blocks:
        assert len({(turn.repetition, turn.prompt) for turn in block}) == 1
        assert {turn.way for turn in block} == set(WAYS)
    assert [block[0].way for block in blocks] == list(WAYS)


def test_nobody_runs_cold():
    """Before the first turn every player has been called once, in order."""
    asked, called = contest(*WAYS), []

    def player(way):
        return lambda prompt, params: called.append((way, params.max_tokens)) or (step(1.0, 1),)

    first = next(take_turns(asked, {way: player(way) for way in WAYS}, [[0], [0]]))
    assert [way for way, _ in called] == [*WAYS, first.way]


def test_rotation_keeps_everyone():
    """The same items, beginning elsewhere."""
    assert [rotated([1, 2, 3], by) for by in range(4)] == [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 2, 3]]


def test_tokens_of_a_round_arrive_together():
    """A round's seconds lie before its first token, 0 before the others; the first token of all has TTFT, no gap."""
    assert gaps([step(0.5, 3, prefill=9.0), step(0.2, 1), step(0.4, 2)]) == [0.0, 0.0, 0.2, 0.4, 0.0]
    assert gaps([step(1.0, 1), step(0.1, 0), step(0.2, 1)]) == [pytest.approx(0.3)]
    assert gaps([step(1.0, 1)]) == []


def test_a_spread_is_a_median_between_its_ends():
    """Of an odd and of an even number of values."""
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
    assert Spread.of([1.0, 2.0]) == Spread(1.5, 1.0, 2.0)


def test_percentiles_and_ratios_of_made_up_turns():
    """Gaps of 1 … 100 ms have p50 50.5 and p95 95.05 ms; speed-ups are against the faster plain way."""
    (turn,) = turns_of(contest(PLAIN[0], repeat=1))[:1]
    slow = [dataclasses.replace(turn, way=PLAIN[0], rounds=(step(4.0, 4),))]
    fast = [dataclasses.replace(turn, way=PLAIN[1], rounds=(step(2.0, 4),))]
    steps = (step(0.0, 1), *(step(i / 1000, 1) for i in range(1, 101)))
    other = [dataclasses.replace(turn, way=Way(draft="ngram", k=2), rounds=steps)]
    found = rows("k", contest().work, [*slow, *fast, *other])
    assert [row.baseline for row in found] == [False, True, False]
    assert [row.figures.speed_up.median for row in found[:2]] == [0.5, 1.0]
    assert found[2].figures.itl_p50_s == pytest.approx(0.0505)
    assert found[2].figures.itl_p95_s == pytest.approx(0.09505)
    assert found[2].figures.speed_up.median == pytest.approx(101 / 5.05 / 2)


def test_figures_are_those_of_the_records():
    """Acceptance, τ and shares equal a fold of all rounds; greedy text is plain decoding's; the theory fits itself."""
    turns = turns_of(contest(*WAYS))
    way = WAYS[2]
    row = next(row for row in rows("k", contest().work, turns) if row.way == way)
    stats, figures = fold(turn for turn in turns if turn.way == way), row.figures
    assert isinstance(stats, Stats)
    assert figures.tokens == stats.tokens == 48
    assert figures.alpha == stats.alpha
    assert 0 < figures.alpha < 1
    assert figures.acceptance_rate == stats.acceptance_rate
    assert figures.mean_acceptance_length == stats.mean_acceptance_length
    assert figures.accepted_by_position[0] == stats.accepted_per_position[0] / stats.rounds
    assert sum(figures.shares) == pytest.approx(1)
    assert figures.same_text is True
    theory = figures.theory
    assert theory is not None
    assert theory.speed_up == pytest.approx(expected_tokens(figures.alpha, 2) / (theory.v + 2 * theory.c))


def test_where_tokens_are_sampled_no_text_is_promised():
    """And lookups have no theory."""
    found = rows("k", contest().work, turns_of(contest(*WAYS)))
    assert found[3].figures.theory is None
    asked = contest(*WAYS, temperature=0.8)
    assert {row.figures.same_text for row in rows("k", asked.work, turns_of(asked))} == {None}


def test_other_engines_tokens_become_rounds():
    """A token in the first pass: what a later pass takes counts as decoding, the rest as reading the prompt."""
    found = as_rounds(10.0, [(15.0, [1]), (16.0, [2, 3]), (17.0, [4])])
    stats = Stats.of(found)
    assert [token.id for step in found for token in step.tokens] == [1, 2, 3, 4]
    assert (stats.ttft_s, stats.prefill_s, stats.decode_s) == (5.0, 4.0, 3.0)
    assert stats.tokens_per_second == pytest.approx(4 / 3)
    assert gaps(found) == [1.0, 0.0, 1.0]
