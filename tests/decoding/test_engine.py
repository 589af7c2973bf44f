"""The round loop: exact budgets, no pass too many, caches as they should be, records that add up."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.decoding import Engine, ModelDrafter, NgramDrafter
from specdec.errors import NumericalError
from specdec.records import Finished, Round, Started
from specdec.stats import Stats
from specdec.trace import Trace
from tests.decoding.toys import Toy, ToyDrafter, hashed, markov, noisy_copy, scripted

RULES = ("rejection", "match")


def run(target: Toy, drafter: object, prompt: list[int], k: int | str, **settings: object) -> Trace:
    speculation = SpeculativeConfig(num_speculative_tokens=k, acceptance=settings.pop("rule", "rejection"))
    return Engine(target, drafter).generate(prompt, SamplingParams(**settings), speculation)  # type: ignore[arg-type]


@given(
    st.integers(0, 8), st.integers(1, 40), st.integers(1, 5), st.sampled_from([0.0, 1.0]), st.sampled_from(RULES),
    st.sampled_from([0.0, 0.8, 5.0]),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_exactly_n_tokens(k: int, count: int, prompt: int, temperature: float, rule: str, noise: float) -> None:
    """For every (k, N), prompt length, rule and quality of the drafts: N tokens, reason length, no pass after them."""
    target = hashed(1)
    drafter = ModelDrafter(noisy_copy(target, 2, noise))
    trace = run(target, drafter, [1] * prompt, k, max_tokens=count, temperature=temperature, rule=rule, seed=k)
    assert len(trace.ids) == trace.stats.tokens == count and trace.finish_reason == "length"
    assert target.network.passes == len(trace.rounds) + (prompt > 1)
    assert sum(target.network.feeds) <= prompt + count - 1 + trace.stats.rejected + trace.stats.drafted
    assert all(len(step.proposals) <= k for step in trace.rounds)


@pytest.mark.parametrize("count", [1, 2, 4, 5, 6, 64])
def test_no_drafting_beyond_the_budget(count: int) -> None:
    """N in {1, 2, k, k + 1, k + 2, 64}, k = 4: no draft is asked for that could not be emitted; the cache holds N."""
    target = hashed(1)
    target.network.keep_caches = True
    drafter = ToyDrafter(lambda tokens, k: [1] * k, 4)
    trace = Engine(target, drafter).generate([1], SamplingParams(max_tokens=count))
    assert len(trace.ids) == count
    assert all(length + k <= count for length, k in drafter.asked)
    assert target.network.caches[0].longest <= count


def test_no_tokens_asked_for_no_pass_made() -> None:
    """max_tokens 0: Started and Finished, nothing else happens."""
    target, draft = hashed(1), hashed(2)
    records = list(Engine(target, ModelDrafter(draft)).stream([1, 2], SamplingParams(max_tokens=0)))
    assert [type(record) for record in records] == [Started, Finished]
    assert records[-1] == Finished("length", (), "")
    assert target.network.passes == draft.network.passes == 0


def test_one_token_takes_one_pass() -> None:
    """max_tokens 1 behind a prompt of one token: a single pass, a single round, no drafts."""
    target = hashed(1)
    trace = run(target, ModelDrafter(hashed(2)), [3], 4, max_tokens=1)
    assert len(trace.ids) == 1 and target.network.feeds == [1] and trace.rounds[0].proposals == ()


def test_prefill_feeds_all_but_the_last_token_and_skips_the_output_layer() -> None:
    """A prompt of 6: one pass over 5 with no logits; the round feeds the sixth with its drafts."""
    target = hashed(1)
    asked = []
    forward = target.network.forward

    def spy(tokens: list[int], cache: object, **options: object) -> np.ndarray:
        asked.append((len(tokens), options["logits"]))
        return forward(tokens, cache, **options)

    object.__setattr__(target.network, "forward", spy)
    run(target, ToyDrafter(lambda tokens, k: [1] * k), [1] * 6, 3, max_tokens=4)
    assert asked[:2] == [(5, 0), (4, 4)]


@pytest.mark.parametrize("exact", [True, False])
def test_the_target_is_told_whether_bits_matter(exact: bool) -> None:
    """speculation.exact reaches prefill and every verification."""
    target = hashed(1)
    asked = []
    forward = target.network.forward

    def spy(*args: object, **options: object) -> np.ndarray:
        asked.append(options["exact"])
        return forward(*args, **options)  # type: ignore[arg-type]

    object.__setattr__(target.network, "forward", spy)
    Engine(target).generate([1, 2], SamplingParams(max_tokens=3), SpeculativeConfig(exact=exact))
    assert asked == [exact] * 4


@pytest.mark.parametrize("k", [0, 3, 8])
@pytest.mark.parametrize("prompt", [1, 7, 14, 15])
def test_the_contexts_end_is_the_runs_end(k: int, prompt: int) -> None:
    """Context 16: prompt and answer fill it to the last slot, reason context, no position beyond it in any cache."""
    target = hashed(1)
    target.network.context_length = 16
    target.network.keep_caches = True
    trace = run(target, ModelDrafter(noisy_copy(target, 1, 0.5)), [1] * prompt, k, max_tokens=100)
    assert len(trace.ids) == 16 - prompt and trace.finish_reason == "context"
    assert target.network.caches[0].longest <= 16


def test_a_budget_that_just_fits_the_context_is_a_matter_of_length() -> None:
    """max_tokens = what is left: length, not context."""
    target = hashed(1)
    target.network.context_length = 16
    assert run(target, None, [1] * 6, 0, max_tokens=10).finish_reason == "length"


def test_rounds_without_drafts_are_plain_steps() -> None:
    """k = 0 and no drafter: one token a round, source plain, no rate to speak of and no division by zero."""
    for trace in (run(hashed(1), None, [1], 0), run(hashed(1), NgramDrafter(), [1], 0)):
        assert all(step.proposals == () and len(step.tokens) == 1 for step in trace.rounds)
        assert {token.source for step in trace.rounds for token in step.tokens} == {"plain"}
        stats = trace.stats
        assert (stats.acceptance_rate, stats.alpha, stats.mean_acceptance_length) == (0.0, 0.0, 1.0)


def test_an_empty_run_has_no_rates() -> None:
    """Nothing generated: all figures 0."""
    stats = Stats.of(Engine(hashed(1)).stream([1], SamplingParams(max_tokens=0)))
    assert (stats.tokens_per_second, stats.mean_acceptance_length, stats.acceptance_rate) == (0.0, 0.0, 0.0)


def test_a_repeating_phase_change_of_lookahead_is_legal() -> None:
    """Drafts now and then none: the drafter's cache catches up, greedy output stays plain output."""
    target = hashed(1)
    draft = noisy_copy(target, 1, 0.5)
    inner = ModelDrafter(draft).start(target, SamplingParams(), 0, 200)
    now_and_then = ToyDrafter(lambda tokens, k: inner.propose(tokens, k) if len(tokens) % 3 else [], 3)
    object.__setattr__(now_and_then, "truncate", inner.truncate)
    params = SamplingParams(max_tokens=60)
    trace = Engine(target, now_and_then).generate([1], params)
    assert trace.ids == Engine(target).generate([1], params).ids
    assert {len(step.proposals) for step in trace.rounds} >= {0, 3} and trace.stats.faults == 0


def test_records_add_up() -> None:
    """Tokens, texts, caches and outcomes of each round agree with each other and with Finished."""
    target = hashed(2)
    draft = noisy_copy(target, 1, 1.0)
    records = list(Engine(target, ModelDrafter(draft)).stream([1, 2, 3], SamplingParams(temperature=1, seed=1)))
    length, ids = 3, []
    for index, step in enumerate(records[1:-1]):
        assert isinstance(step, Round) and step.index == index
        outcomes = [proposal.outcome for proposal in step.proposals]
        assert outcomes == ["accepted"] * step.accepted + ["rejected"] * step.rejected + ["discarded"] * (
            len(outcomes) - step.accepted - step.rejected
        )
        emitted = [token.id for token in step.tokens]
        assert emitted[: step.accepted] == [proposal.id for proposal in step.proposals[: step.accepted]]
        assert step.target_cache == length + len(emitted) - 1
        for proposal in step.proposals:
            if proposal.outcome != "discarded":
                assert proposal.acceptance == pytest.approx(min(1, proposal.p / proposal.q))
                assert (proposal.u * proposal.q < proposal.p) == (proposal.outcome == "accepted")
        length += len(emitted)
        ids += emitted
    assert records[-1].ids == tuple(ids) and len(ids) == 128


def test_times_are_engine_times() -> None:
    """Prefill in the first round only, all parts non-negative, what the reader does in between not counted."""
    import time

    steps = []
    for record in Engine(hashed(1), ModelDrafter(hashed(2))).stream([1, 2, 3], SamplingParams(max_tokens=12)):
        time.sleep(0.02)
        steps += [record] if isinstance(record, Round) else []
    assert steps[0].prefill_s > 0 and all(step.prefill_s == 0 for step in steps[1:])
    assert all(min(step.draft_s, step.verify_s, step.sample_s) > 0 for step in steps)
    assert Stats.of(steps).ttft_s == steps[0].seconds
    assert sorted(step.seconds for step in steps)[len(steps) // 2] < 0.02


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_target_without_numbers_is_an_error(value: float, temperature: float) -> None:
    """NaN, or no possible token: NumericalError, whatever the drafter."""
    target = hashed(1)
    target.network.table[:] = value
    for drafter in (None, NgramDrafter(), ModelDrafter(hashed(2))):
        with pytest.raises(NumericalError, match="NaN"):
            run(target, drafter, [1, 1, 1], 2, temperature=temperature)


def test_logprobs_are_reported_when_asked_for_only() -> None:
    """Off: None. On: log p of the raw logits, of accepted and recovered tokens alike."""
    law = np.array([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    target = markov(law)
    off = run(target, None, [0], 0, max_tokens=3)
    assert all(token.logprob is None for step in off.rounds for token in step.tokens)
    drafter = ModelDrafter(markov(law[::-1]), 3)
    on = run(target, drafter, [0], 3, max_tokens=40, temperature=2.0, top_k=2, logprobs=True, seed=0)
    path = [0, *on.ids]
    values = [token.logprob for step in on.rounds for token in step.tokens]
    assert values == pytest.approx([np.log(law[a, b]) for a, b in pairwise(path)])


def test_the_engine_runs_in_float32() -> None:
    """No float64 on the way from logits to probabilities and q."""
    from specdec.decoding.processors import Processors

    target = hashed(1)
    seen = []
    original = Processors.probabilities

    def spy(self: Processors, *args: object) -> np.ndarray:
        seen.append(original(self, *args))  # type: ignore[arg-type]
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Processors, "probabilities", spy)
        run(target, ModelDrafter(hashed(2)), [1], 3, temperature=0.7, top_p=0.9, logit_bias={1: 0.5}, max_tokens=20)
    assert {p.dtype for p in seen} == {np.dtype(np.float32)}


def test_a_script_is_followed_to_the_letter() -> None:
    """Drafts wrong at known places: the rounds are known in advance."""
    script = list(range(1, 13))
    target = scripted([0, *script], 13)
    wrong = {3, 8}
    drafter = ToyDrafter(
        lambda tokens, k: [(i + (i in wrong)) % 13 for i in range(len(tokens), min(len(tokens) + k, 13))], 3
    )
    trace = Engine(target, drafter).generate([0], SamplingParams(max_tokens=12))
    assert [step.accepted for step in trace.rounds] == [2, 3, 0, 3]
    assert [step.tokens[-1].source for step in trace.rounds] == ["recovered", "bonus", "recovered", "bonus"]
    assert list(trace.ids) == script
