"""What a race says at its end."""

from typing import Any

import pytest

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.records import Finished, Round, Started, Token
from specdec.serving import GenerationRequest
from specdec.stats import Stats
from specdec.trace import Trace
from specdec.ui.verdict import account, cause, headline, reason, sameness, verdict

PLAIN = Stats(tokens=100, rounds=100, verify_s=0.95, sample_s=0.05)
GREEDY = GenerationRequest("Once", "big", "small")
SAMPLED = GenerationRequest("Once", "big", "small", params=SamplingParams(temperature=1.0))
MATCHED = GenerationRequest(
    "Once", "big", "small", params=SamplingParams(temperature=1.0), speculation=SpeculativeConfig(4, "match")
)


def speculative(**changes: Any) -> Stats:
    """100 tokens in 25 rounds of 4 drafts: 75 accepted, 25 refused, in half of the time."""
    values = {"tokens": 100, "rounds": 25, "drafted": 100, "accepted": 75, "rejected": 25}
    return Stats(**values | {"draft_s": 0.1, "verify_s": 0.375, "sample_s": 0.025} | changes)


def trace(*ids: int, exactness: Any = "bitwise", seconds: float = 0.01) -> Trace:
    rounds = tuple(Round(i, (), (Token(id, "x", "plain"),), "x", 0.0, seconds, 0.0, 1) for i, id in enumerate(ids))
    return Trace(Started("big", "small", (1,), 0, exactness, {}), rounds, Finished("length", ids, "x" * len(ids)))


@pytest.mark.parametrize(
    ("times", "outcome", "said"),
    [
        (2.13, "faster", "Speculative: 2.1 × faster"),
        (0.9, "slower", "Speculative: 0.9 ×, slower than plain here"),
        (1.02, "even", "Speculative: 1.02 ×, as fast as plain here"),
    ],
)
def test_headlines(times: float, outcome: str, said: str):
    """In few words, and honest where it lost."""
    assert headline(times, outcome) == said


def test_the_account_multiplies_to_the_result():
    """4 tokens a round at the cost of 2 plain steps: 2 × faster, as the headline says."""
    said = account(PLAIN, speculative())
    assert "τ = 4.00 tokens and cost as much as 2.00 plain steps" in said
    assert "α = 75 %" in said
    assert "drafting took 20 % of the time, checking 75 %" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tokens": 30, "accepted": 5, "rejected": 25}, "Too few drafts were accepted"),
        ({"draft_s": 2.0}, "The target is too small for drafting to pay"),
        ({"verify_s": 2.0}, "Checking several tokens in a pass costs this target too much"),
        ({"drafted": 0, "accepted": 0, "rejected": 0}, "Looking for drafts took time and found none"),
    ],
)
def test_a_loss_has_its_reason(changes: dict[str, Any], said: str):
    """Whichever would have helped most, had it been ideal."""
    assert cause(PLAIN, speculative(**changes)) == said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tokens": 30, "accepted": 5, "rejected": 25}, "Too few drafts were accepted, α = 17 %."),
        ({"draft_s": 1.2}, "The target is too small for drafting to pay: drafts took 75 % of the time."),
        (
            {"verify_s": 0.95},
            "Checking several tokens in a pass costs this target too much: 5.0 tokens, 4.0 × the cost of one.",
        ),
        ({"drafted": 0, "accepted": 0, "rejected": 0}, "Looking for drafts took time and found none."),
    ],
)
def test_a_reason_shows_the_number_that_is_to_blame(changes: dict[str, Any], said: str):
    """α, the draft's share of the time, or the measured cost of a pass over a round's tokens in passes over one."""
    assert reason(PLAIN, speculative(**changes)) == said


def test_verdicts():
    """Faster, slower with its cause, even; nobody where nothing was generated."""
    for seconds, outcome in ((0.005, "faster"), (0.02, "slower"), (0.01, "even")):
        assert verdict(trace(1, 2), trace(1, 2, seconds=seconds), GREEDY)["outcome"] == outcome
    assert verdict(trace(), trace(), GREEDY)["headline"] == "No token was generated: nobody wins."


def test_texts_are_compared_where_equality_was_promised():
    """Greedy and match promise it; what splits is said with its place."""
    for request in (GREEDY, MATCHED):
        assert sameness(trace(1, 2, 3), trace(1, 2, 3), request) == "Both lanes: the same 3 tokens, token for token."
        assert "the same 2 tokens" in sameness(trace(1, 2, 3), trace(1, 2), request)
        assert "as far as the shorter one went" in sameness(trace(1, 2, 3), trace(1, 2), request)
        assert "differ from token 2 on (which must not happen" in sameness(trace(1, 2), trace(1, 3), request)
    assert "near-ties" in sameness(trace(1, 2), trace(1, 3, exactness="near-ties"), GREEDY)
    assert "same distribution" in sameness(trace(1, 2), trace(1, 2), SAMPLED)
