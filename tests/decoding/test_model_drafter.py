"""A smaller model as drafter: its cache, its q, its vocabulary."""

import numpy as np
import pytest

from specdec.config import SamplingParams
from specdec.decoding import Engine, ModelDrafter
from specdec.decoding.drafters import model as drafter_module
from specdec.decoding.sampling import draw
from specdec.errors import ConfigError, VocabularyError
from tests.decoding.toys import Toy, ToyCodec, hashed, noisy_copy, rounds_of

SAMPLED = SamplingParams(temperature=1.0, top_k=5, seed=2, max_tokens=60)


def session(draft: Toy, target: Toy | None = None, params: SamplingParams = SAMPLED, capacity: int = 200):
    return ModelDrafter(draft).start(target or draft, params, 2, capacity)


def test_q_is_the_very_array_the_drafts_were_drawn_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each draw reads a row of the array that is handed over, after temperature and top-k."""
    rows = []

    def spy(weights: np.ndarray, u: float) -> int:
        rows.append(weights)
        return draw(weights, u)

    monkeypatch.setattr(drafter_module, "draw", spy)
    drafted = session(hashed(1)).propose([1, 2, 3], 4)
    assert drafted.q is not None and drafted.q.shape == (4, 16) and drafted.q.dtype == np.float32
    assert all(row.base is drafted.q and np.array_equal(row, drafted.q[i]) for i, row in enumerate(rows))
    assert ((drafted.q > 0).sum(axis=1) == 5).all()
    assert all(drafted.q[i, token] > 0 for i, token in enumerate(drafted.tokens))


def test_greedy_drafts_have_no_q() -> None:
    """Chosen without chance: q is None."""
    assert session(hashed(1), params=SamplingParams()).propose([1, 2, 3], 4).q is None


def test_cache_lengths_and_feeds_after_every_round() -> None:
    """L tokens before, a of k accepted: target cache L + a, draft cache L + min(a, k − 1); next feed 2 iff a = k."""
    target = hashed(3)
    draft = noisy_copy(target, 1, 1.2)
    k = 3
    length, accepted_all = 4, False
    seen = set()
    for step in rounds_of(list(Engine(target, ModelDrafter(draft, k)).stream([1, 2, 3, 4], SAMPLED))):
        if len(step.proposals) < k or length + len(step.tokens) > 60:
            break
        assert step.target_cache == length + step.accepted
        assert step.draft_cache == length + min(step.accepted, k - 1)
        feeds = draft.network.feeds[: k + (step.index == 0)]
        del draft.network.feeds[: k + (step.index == 0)]
        assert feeds[step.index == 0] == (2 if accepted_all else 1)
        assert feeds[1 + (step.index == 0) :] == [1] * (k - 1)
        accepted_all = step.accepted == k
        length += len(step.tokens)
        seen.add(step.accepted)
    assert seen == {0, 1, 2, 3}, "every number of accepted drafts must have occurred"


def test_the_last_draft_is_not_fed() -> None:
    """k drafts take k passes, the prompt's own one aside."""
    draft = hashed(1)
    drafting = session(draft)
    drafting.prefill([1, 2, 3])
    assert draft.network.feeds == [2]
    drafting.propose([1, 2, 3], 4)
    assert draft.network.feeds == [2, 1, 1, 1, 1] and drafting.cache_length == 6


def test_a_drafter_left_behind_catches_up() -> None:
    """After rounds without drafts it reads what it missed, and drafts what a fresh one would."""
    draft = hashed(1)
    late, fresh = session(draft), session(draft)
    late.prefill([1, 2])
    late.propose([1, 2], 3)
    late.truncate(2)
    text = [1, 2, 5, 6, 7, 8, 9]
    assert late.propose(text, 3).tokens == fresh.propose(text, 3).tokens
    assert late.cache_length == len(text) + 2


def test_the_draft_runs_with_the_users_processors() -> None:
    """A forbidden token is never drafted, penalties count the output and not the prompt."""
    draft = hashed(1)
    params = SamplingParams(temperature=1.0, seed=2, logit_bias={3: -10_000.0}, presence_penalty=10.0)
    drafting = session(draft, params=params)
    drafting.prefill([4, 4, 4])
    drafted = drafting.propose([4, 4, 4, 5], 8)
    assert 3 not in drafted.tokens and (drafted.q[:, 3] == 0).all()
    assert drafted.q[:, 5].max() < 1e-2 < drafted.q[:, 4].max(), "what was said is avoided, the prompt is not"
    assert len(set(drafted.tokens)) == 8


def test_greedy_drafts_are_penalised_too() -> None:
    """Each draft counts for those behind it: eight different ones, none of them the output's."""
    drafting = session(hashed(1), params=SamplingParams(presence_penalty=10.0))
    drafting.prefill([4, 4, 4])
    tokens = drafting.propose([4, 4, 4, 5], 8).tokens
    assert len({5, *tokens}) == 9


def test_vocabularies_padded_to_different_sizes() -> None:
    """The draft's table larger or smaller than the target's: rows are of the target's size, ids within both."""
    target = hashed(1, vocab=16)
    for size in (12, 16, 24):
        draft = hashed(2, vocab=size)
        assert session(draft, target).propose([1, 2], 5).q.shape == (5, 16)
        trace = Engine(target, ModelDrafter(draft)).generate([15, 14, 13], SAMPLED)
        assert len(trace.ids) == 60 and trace.stats.faults == 0
    q = session(hashed(2, vocab=12), target, SamplingParams(temperature=1.0)).propose([15, 14], 5).q
    assert (q[:, 12:] == 0).all() and np.allclose(q.sum(axis=1), 1)


def test_ids_the_target_lacks_are_masked_before_the_cuts() -> None:
    """top_k 1 over a larger draft table: the draft is the best token that the target knows."""
    draft = hashed(2, vocab=24)
    draft.network.table[:, 16:] += 50
    drafted = session(draft, hashed(1), SamplingParams(temperature=1.0, top_k=2)).propose([1], 4)
    assert max(drafted.tokens) < 16 and ((drafted.q > 0).sum(axis=1) == 2).all()


def codec(*words: str) -> ToyCodec:
    return ToyCodec(words)


def test_unrelated_tokenizers_are_refused_with_both_names() -> None:
    """Same size, other words: VocabularyError before anything runs."""
    target = hashed(1, vocab=2, tokenizer=codec("a", "b"), name="big")
    draft = hashed(2, vocab=2, tokenizer=codec("a", "c"), name="small")
    with pytest.raises(VocabularyError, match=r"small cannot draft for big.*different meanings"):
        Engine(target, ModelDrafter(draft)).generate([0])
    assert target.network.passes == draft.network.passes == 0


def test_one_model_without_a_tokenizer_needs_the_same_size() -> None:
    """None and words: accepted at one size, refused at two; None and None: accepted."""
    words = codec(*"abcdefgh")
    named, plain, other = hashed(1, vocab=8, tokenizer=words), hashed(2, vocab=8), hashed(3, vocab=9)
    assert Engine(named, ModelDrafter(plain)).generate([0], SamplingParams(max_tokens=4)).stats.drafted
    assert Engine(plain, ModelDrafter(other)).generate([0], SamplingParams(max_tokens=4)).stats.rounds
    with pytest.raises(VocabularyError, match="9 and 8"):
        Engine(named, ModelDrafter(other)).generate([0])


def test_lookahead_is_checked() -> None:
    """Beyond the limit: ConfigError."""
    with pytest.raises(ConfigError):
        ModelDrafter(hashed(1), 16)
