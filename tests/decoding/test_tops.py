"""Lists of the likeliest tokens: right where they were asked for, nowhere else, and never of any consequence."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.decoding import Engine, ModelDrafter, NgramDrafter
from specdec.decoding.drafting import Drafts
from specdec.decoding.tops import Tops, likeliest
from specdec.decoding.verification import residual
from specdec.records import Candidate, Proposal, Token
from specdec.trace import Trace
from tests.decoding.toys import Toy, ToyCodec, ToyDrafter, hashed, markov, noisy_copy

WORDS = [f" w{i}" for i in range(16)]
GREEDY = SamplingParams(max_tokens=48, seed=5)
SAMPLED = SamplingParams(temperature=0.9, top_p=0.95, max_tokens=48, seed=5)
PENALISED = replace(SAMPLED, repetition_penalty=1.3, frequency_penalty=0.4, logit_bias={5: 1.0}, logprobs=True)
P = np.array([[0.5, 0.3, 0.15, 0.05], [0.04, 0.7, 0.06, 0.2], [0.23, 0.24, 0.25, 0.28], [0.0, 0.3, 0.1, 0.6]])
Q = np.array([[0.25, 0.2, 0.45, 0.1], [0.4, 0.19, 0.3, 0.11], [0.6, 0.2, 0.12, 0.08], [0.52, 0.0, 0.2, 0.28]])


def target() -> Toy:
    return hashed(1, tokenizer=ToyCodec(WORDS))


def drafters() -> list[object]:
    return [None, ModelDrafter(noisy_copy(target(), 2, 0.7)), NgramDrafter(min_ngram=1)]


def run(drafter: object, params: SamplingParams, rule: str, top: int, model: Toy | None = None) -> Trace:
    speculation = SpeculativeConfig(3, rule, top=top)  # type: ignore[arg-type]
    return Engine(model or target(), drafter).generate([1, 2, 1], params, speculation)  # type: ignore[arg-type]


def bare(trace: Trace) -> list[object]:
    """What a run says, without times and lists."""
    return [
        (
            [replace(proposal, target_top=(), draft_top=()) for proposal in step.proposals],
            [replace(token, top=()) for token in step.tokens],
            step.text,
        )
        for step in trace.rounds
    ]


@pytest.mark.parametrize("drafter", drafters(), ids=["plain", "model", "ngram"])
@pytest.mark.parametrize("rule", ["rejection", "match"])
@pytest.mark.parametrize("params", [GREEDY, SAMPLED, PENALISED], ids=["greedy", "sampled", "penalised"])
def test_recording_changes_nothing(drafter: object, rule: str, params: SamplingParams) -> None:
    """The same seed with top 0, 1, 5 and 10: the same tokens, outcomes, numbers and text."""
    without = run(drafter, params, rule, 0)
    for top in (1, 5, 10):
        assert run(drafter, params, rule, top).ids == without.ids
        assert bare(run(drafter, params, rule, top)) == bare(without)


def test_nothing_is_recorded_unless_asked_for() -> None:
    """top 0: empty tuples everywhere, and neither a row partitioned nor a softmax made for greedy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("specdec.decoding.tops.likeliest", None)
        patch.setattr("specdec.decoding.processors.Processors.beliefs", None)
        for drafter, params in product(drafters(), (GREEDY, SAMPLED)):
            for _, lists in lists_of(run(drafter, params, "rejection", 0)):
                assert lists == ()


def lists_of(trace: Trace) -> Iterator[tuple[Proposal | Token, tuple[Candidate, ...]]]:
    """Every list of a run and whose it is."""
    for step in trace.rounds:
        for proposal in step.proposals:
            yield from ((proposal, top) for top in (proposal.target_top, proposal.draft_top))
        yield from ((token, token.top) for token in step.tokens)


@pytest.mark.parametrize("drafter", drafters(), ids=["plain", "model", "ngram"])
@pytest.mark.parametrize("params", [GREEDY, SAMPLED, PENALISED], ids=["greedy", "sampled", "penalised"])
@pytest.mark.parametrize("top", [1, 5])
def test_who_has_lists_and_what_they_look_like(drafter: object, params: SamplingParams, top: int) -> None:
    """Judged drafts have two, the target's own tokens one, others none: sorted, positive, of `top` entries at most."""
    for owner, entries in lists_of(run(drafter, params, "rejection", top)):
        silent = owner.outcome == "discarded" if isinstance(owner, Proposal) else owner.source == "accepted"
        assert bool(entries) != silent
        assert len(entries) <= top
        chances = [entry.probability for entry in entries]
        assert chances == sorted(chances, reverse=True) and sum(chances) <= 1 + 1e-5
        assert all(chance > 0 for chance in chances) and len({entry.id for entry in entries}) == len(entries)
        assert all(entry.text == WORDS[entry.id] for entry in entries)


@pytest.mark.parametrize("rule", ["rejection", "match"])
def test_a_proposals_lists_hold_its_own_p_and_q(rule: str) -> None:
    """Where the draft is among the likeliest, with the very numbers it was judged by; with top = V it always is."""
    trace = run(drafters()[1], replace(SAMPLED, top_p=1.0, max_tokens=200), rule, 10)
    found = 0
    for step in trace.rounds:
        for proposal in step.proposals[: step.accepted + step.rejected]:
            for entries, value in ((proposal.target_top, proposal.p), (proposal.draft_top, proposal.q)):
                own = [entry.probability for entry in entries if entry.id == proposal.id]
                assert own == [value] or (not own and value <= entries[-1].probability)
                found += bool(own)
    assert found > 100


def law(row: np.ndarray, count: int) -> list[tuple[int, float]]:
    """The likeliest of a row of a law, worked out by sorting all of it."""
    order = sorted(range(len(row)), key=lambda token: (-row[token], token))[:count]
    return [(token, pytest.approx(row[token])) for token in order if row[token] > 0]


def pairs(entries: tuple[Candidate, ...]) -> list[tuple[int, float]]:
    return [(entry.id, entry.probability) for entry in entries]


@pytest.mark.parametrize("rule", ["rejection", "match"])
@pytest.mark.parametrize("soft", [True, False], ids=["soft q", "one-hot q"])
def test_lists_are_those_of_the_models_themselves(rule: str, soft: bool) -> None:
    """Two tables whose law is known: p, q, what was left of p, each beside a direct computation."""
    drafter = ModelDrafter(markov(Q)) if soft else ToyDrafter(lambda tokens, k: [1] * k)
    params = SamplingParams(temperature=1.0, max_tokens=300, seed=3)
    trace = run(drafter, params, rule, 3, markov(P))
    text = [1, 2, 1]
    sources = set()
    for step in trace.rounds:
        for proposal, before in zip(step.proposals, [text[-1], *(draft.id for draft in step.proposals)], strict=False):
            if proposal.outcome != "discarded":
                q = Q[before] if soft else np.eye(4)[proposal.id]
                assert pairs(proposal.target_top) == law(P[before], 3)
                assert pairs(proposal.draft_top) == law(q, 3)
        text += [token.id for token in step.tokens]
        own = step.tokens[-1]
        sources.add(own.source)
        row = P[text[-2]]
        if own.source == "recovered" and rule == "rejection":
            refused = step.proposals[step.accepted]
            row = residual(row, Q[text[-2]] if soft else np.eye(4)[refused.id])
            assert sum(entry.probability for entry in own.top) <= 1 + 1e-6
        if own.source != "accepted":
            assert pairs(own.top) == law(row, 3)
    assert {"recovered", "bonus"} <= sources


@pytest.mark.parametrize("rule", ["rejection", "match"])
def test_greedy_lists_tell_what_the_target_thought(rule: str) -> None:
    """p of a draft is 0 or 1, its list the softmax of the logits, of the draft its choice, and nothing is taken off."""
    trace = run(ModelDrafter(markov(Q)), SamplingParams(max_tokens=20), rule, 4, markov(P))
    path = [1, *trace.ids]
    at = 0
    for step in trace.rounds:
        for i, proposal in enumerate(step.proposals[: step.accepted + step.rejected]):
            assert pairs(proposal.target_top) == law(P[path[at + i]], 4)
            assert pairs(proposal.draft_top) == [(proposal.id, 1.0)]
            assert proposal.p in (0.0, 1.0)
        at += len(step.tokens)
        own = step.tokens[-1]
        if own.source != "accepted":
            assert pairs(own.top) == law(P[path[at - 1]], 4) and own.id == own.top[0].id


def test_greedy_lists_follow_penalties_and_bias() -> None:
    """The softmax is taken of what the arg max was taken of, for top_k 1 at any temperature too."""
    for params in (
        replace(GREEDY, logit_bias={7: 40.0}),
        replace(GREEDY, logit_bias={7: 40.0}, top_k=1, temperature=2.0),
    ):
        trace = run(None, params, "rejection", 2)
        assert {step.tokens[0].top[0].id for step in trace.rounds} == {7}
        assert all(step.tokens[0].top[0].probability == pytest.approx(1) for step in trace.rounds)


@given(
    arrays(np.float32, st.integers(1, 40), elements=st.sampled_from([0.0, 0.0, 0.125, 0.25, 0.5, 0.75])),
    st.integers(1, 10),
)
def test_the_likeliest_are_those_of_a_full_sort(row: np.ndarray, count: int) -> None:
    """Any row, ties and zeros included: what sorting all of it gives."""
    assert pairs(likeliest(row, count, str)) == law(row, count)


def test_without_rows_there_are_no_lists() -> None:
    """Nothing was recorded: every question is answered with nothing."""
    tops = Tops(None, Drafts((1,)), residual=True, count=0, piece=str)
    assert tops.target(0) == tops.draft(0) == tops.drawn(0, "recovered") == ()
