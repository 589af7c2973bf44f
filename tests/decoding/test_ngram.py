"""Drafts from the text's own repetitions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec.config import SamplingParams
from specdec.decoding import Engine, NgramDrafter
from specdec.decoding.drafters.ngram import NgramDraftSession
from specdec.errors import ConfigError
from tests.decoding.toys import scripted


def rescan(tokens: list[int], k: int, largest: int, smallest: int) -> tuple[int, ...]:
    """The same by searching the whole text each time."""
    for size in range(largest, smallest - 1, -1):
        for start in range(len(tokens) - 1, size - 1, -1):
            if len(tokens) >= size and tokens[start - size : start] == tokens[-size:]:
                period = len(tokens) - start
                return tuple(tokens[start + i % period] for i in range(k))
    return ()


text = st.lists(st.integers(0, 3), max_size=40)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("extend"), text),
        st.tuples(st.just("truncate"), st.integers(0, 60)),
        st.tuples(st.just("diverge"), st.tuples(st.integers(0, 60), text)),
        st.tuples(st.just("propose"), st.integers(1, 8)),
    ),
    max_size=12,
)


@given(text, actions, st.integers(1, 4), st.integers(0, 3))
@settings(max_examples=300, deadline=None)
def test_the_index_finds_what_a_rescan_finds(tokens: list[int], steps: list, smallest: int, more: int) -> None:
    """However the text grows, is cut or changes under it: the same drafts as a search of the whole text."""
    session = NgramDraftSession(smallest + more, smallest)
    session.prefill(tokens)
    for kind, value in steps:
        if kind == "extend":
            tokens = tokens + value
        elif kind == "truncate":
            tokens = tokens[:value]
            session.truncate(value)
        elif kind == "diverge":
            tokens = tokens[: value[0]] + value[1]
        else:
            assert session.propose(tokens, value).tokens == rescan(tokens, value, smallest + more, smallest)
    assert session.propose(tokens, 4).tokens == rescan(tokens, 4, smallest + more, smallest)


def test_the_longest_match_wins_over_a_later_shorter_one() -> None:
    """`1 2 3 → 9` beats the later `7 3 → 8`."""
    session = NgramDraftSession(3, 1)
    assert session.propose([1, 2, 3, 9, 7, 3, 8, 1, 2, 3], 1).tokens == (9,)


def test_the_latest_of_equal_matches_wins() -> None:
    """`1 2 → 5`, then `1 2 → 6`: 6."""
    assert NgramDraftSession(2, 2).propose([1, 2, 5, 1, 2, 6, 1, 2], 1).tokens == (6,)


def test_a_copy_that_reaches_the_end_goes_on_with_itself() -> None:
    """A text that repeats with period 2 is drafted in full."""
    assert NgramDraftSession(2, 1).propose([5, 6, 5, 6, 5], 6).tokens == (6, 5, 6, 5, 6, 5)


def test_nothing_known_nothing_drafted() -> None:
    """A text without repetition, one of a single token, an empty one: no drafts, no q."""
    for tokens in ([1, 2, 3], [1], []):
        drafted = NgramDraftSession(3, 1).propose(tokens, 4)
        assert drafted.tokens == () and drafted.q is None


def test_a_change_far_behind_costs_drafts_at_most() -> None:
    """A text that was changed without a word more than 64 tokens back: proposals stay legal, nothing raises."""
    session = NgramDraftSession(3, 1)
    session.propose(list(range(100)) * 2, 4)
    changed = [7] * 100 + list(range(100)) + [1, 2, 3]
    assert len(session.propose(changed, 4).tokens) == 4


def test_settings_are_checked() -> None:
    """min_ngram 0, min above max, lookahead beyond the limit: ConfigError."""
    for wrong in ({"min_ngram": 0}, {"min_ngram": 5, "max_ngram": 3}, {"num_speculative_tokens": 99}):
        with pytest.raises(ConfigError):
            NgramDrafter(**wrong)


def test_a_repeating_answer_is_drafted_by_the_engine() -> None:
    """A target that repeats with period 3: from the second period on all drafts stand, and few passes do the work."""
    target = scripted([0, *[1, 2, 3] * 20], 5)
    trace = Engine(target, NgramDrafter(5, min_ngram=2)).generate([0], SamplingParams(max_tokens=50))
    assert trace.ids == tuple(([1, 2, 3] * 20)[:50])
    assert trace.stats.acceptance_rate == 1 and trace.stats.rounds <= 5 + -(-45 // 6)
