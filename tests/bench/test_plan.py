"""What the suite measures: every question has its contests, and plain decoding is in all of them."""

from dataclasses import replace

import pytest

from specdec.bench.plan import FULL, INSTRUCT, PLAIN, QUICK, SUITES, Scope, Way, plan
from specdec.bench.prompts import PROMPTS
from specdec.checkpoints.bundled import DEFAULT_DRAFT, DEFAULT_TARGET, DRAFTS, TARGETS


class Facts:
    """Models with 512 tokens of context, all here but those named."""

    def __init__(self, *missing: str) -> None:
        self.missing = missing

    def here(self, name: str) -> bool:
        return name not in self.missing

    def context_length(self, name: str) -> int:
        return 512


def contests(suite, scope: Scope = FULL, *missing: str):
    return plan(replace(scope, suites=(suite,)), Facts(*missing)).contests


@pytest.mark.parametrize("scope", [FULL, QUICK], ids=["full", "quick"])
def test_plain_decoding_is_in_every_contest(scope):
    """Both of its paths, first; no way twice; each suite has contests."""
    planned = plan(scope, Facts()).contests
    assert {contest.suite for contest in planned} == set(SUITES)
    for contest in planned:
        assert contest.ways[:2] == PLAIN
        assert len(set(contest.ways)) == len(contest.ways) > 2


def test_lookaheads_go_from_none_to_twelve_and_auto():
    """Greedy and sampled; k = 0 is plain decoding itself."""
    found = contests("k")
    assert [contest.work.temperature for contest in found] == [0.0, 0.8]
    for contest in found:
        assert [way.k for way in contest.ways[2:]] == [*range(1, 13), "auto"]
        assert {way.draft for way in contest.ways[2:]} == {DEFAULT_DRAFT}


def test_every_draft_meets_every_target():
    """A contest for each bundled target, in which all bundled drafts take part."""
    found = contests("sizes")
    assert tuple(contest.work.target for contest in found) == TARGETS
    assert all(tuple(way.draft for way in contest.ways[2:]) == DRAFTS for contest in found)


def test_prompts_beyond_the_context_are_left_out_with_a_note():
    """Of 16 … 1024 those that leave 128 tokens of 512."""
    planned = plan(replace(FULL, suites=("prompt-length",)), Facts())
    assert [contest.work.prompt_tokens for contest in planned.contests] == [16, 32, 64, 128, 256, 384]
    assert len(planned.notes) == 1
    assert "512, 1024" in planned.notes[0]


def test_kinds_are_told_by_a_model_that_follows_instructions():
    """Stories by the bundled pair, the rest by the instruct model and n-grams."""
    found = {contest.work.kind: contest for contest in contests("kinds")}
    assert list(found) == list(PROMPTS) == ["story", "chat", "code", "list", "summary"]
    assert found["story"].work.target == DEFAULT_TARGET
    assert {(found[kind].work.target, found[kind].ways[2].draft) for kind in list(PROMPTS)[1:]} == {(INSTRUCT, "ngram")}


def test_kinds_without_their_model_are_one_sentence():
    """Where it is not on the machine stories are left, and a note says how to get it."""
    planned = plan(replace(FULL, suites=("kinds",)), Facts(INSTRUCT))
    assert [contest.work.kind for contest in planned.contests] == ["story"]
    assert len(planned.notes) == 1
    assert f"fetch {INSTRUCT}" in planned.notes[0]


def test_a_named_target_is_used_everywhere():
    """With n-grams, because no bundled draft has its vocabulary; the named k, where k does not vary."""
    scope = replace(FULL, suites=(*SUITES, "peers"), targets=("other",), drafts=("ngram",), k=4)
    planned = plan(scope, Facts()).contests
    assert {contest.work.target for contest in planned} == {"other"}
    assert {way.draft for contest in planned for way in contest.ways} == {"none", "ngram"}
    assert {way.k for contest in planned if contest.suite != "k" for way in contest.ways} == {0, 4}


def test_peers_read_prompts_of_all_lengths():
    """Plain, beside ours, and only where they were asked for."""
    asked = plan(replace(FULL, suites=("prompt-length", "peers")), Facts()).contests
    lengths = [contest for contest in asked if contest.suite == "prompt-length"]
    assert len(lengths) > 1
    for contest in lengths:
        assert contest.ways[-2:] == (Way("transformers"), Way("llama.cpp"))
    assert {way.engine for contest in contests("prompt-length") for way in contest.ways} == {"specdec"}


def test_peers_do_what_the_pair_does():
    """transformers plain, with the same draft and k, and with its lookup; llama.cpp plain and with its lookup."""
    (contest,) = contests("peers")
    theirs = [way for way in contest.ways if way.engine != "specdec"]
    assert theirs == [
        Way("transformers"),
        Way("transformers", DEFAULT_DRAFT, 3),
        Way("transformers", "ngram", 5),
        Way("llama.cpp"),
        Way("llama.cpp", "ngram", 5),
    ]
