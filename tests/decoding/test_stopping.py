"""Where runs end and what of their text is shown: the same cut however text falls into tokens and rounds."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.decoding import Engine
from specdec.decoding.stopping import Stopping, StopStrings
from specdec.records import Finished
from specdec.trace import Trace
from tests.decoding.toys import ToyCodec, ToyDrafter, from_script, rounds_of, scripted


def expected_cut(text: str, stops: tuple[str, ...]) -> str | None:
    """By definition: read a character at a time; the first stop string to be complete ends the text before it."""
    for end in range(len(text) + 1):
        found = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
        if found:
            return text[: min(found)]
    return None


def split(text: str, places: list[int]) -> list[str]:
    points = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[a:b] for a, b in pairwise(points)]


letters = st.text("abc", max_size=30)
stop_strings = st.lists(st.text("abc", min_size=1, max_size=4), max_size=3).map(tuple)


@given(letters, stop_strings, st.lists(st.integers(0, 99), max_size=12))
def test_any_split_of_a_text_gives_the_same_cut(text: str, stops: tuple[str, ...], places: list[int]) -> None:
    """Pieces of any size: what was released is the text up to the first completed stop string, or all of it."""
    watcher, said, hit = StopStrings(stops), "", False
    for piece in split(text, places):
        released, hit = watcher.push(piece)
        said += released
        assert text.startswith(said)
        if hit:
            break
    cut = expected_cut(text, stops)
    assert hit == (cut is not None)
    assert said + ("" if hit else watcher.flush()) == (text if cut is None else cut)


@given(
    letters.filter(bool), stop_strings, st.lists(st.integers(0, 99), max_size=12), st.integers(0, 5),
    st.lists(st.integers(0, 99), max_size=3),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_any_split_into_tokens_and_rounds_gives_the_same_run(
    text: str, stops: tuple[str, ...], places: list[int], k: int, wrong: list[int]
) -> None:
    """Through the engine: tokens and rounds of any size, drafts wrong anywhere: same text, ids and reason."""
    words = split(text, places)
    vocab = len(words) + 1
    script = [0, *range(1, vocab)]
    target = scripted(script, vocab, tokenizer=ToyCodec(["?", *words]))
    params = SamplingParams(max_tokens=len(words), stop=stops)
    drafter = from_script(script, k, [1 + place % len(words) for place in wrong], vocab)
    trace = Engine(target, drafter).generate([0], params, SpeculativeConfig(num_speculative_tokens=k))
    plain = Engine(target).generate([0], params)
    cut = expected_cut(text, stops)
    assert trace.text == plain.text == (text if cut is None else cut)
    assert trace.ids == plain.ids
    assert trace.finish_reason == plain.finish_reason == ("length" if cut is None else "stop")
    assert "".join(step.text for step in trace.rounds) + trace.finished.tail == trace.text
    joined = "".join(words[token - 1] for token in trace.ids)
    assert expected_cut(joined, stops) == cut, "the token that completes the stop string is the last"


WORDS = ["<s>", "a", "b", "c", "STOP", "ST", "OP", "</s>", b"\xf0\x9f", b"\x99\x82", b"STOP\xf0\x9f"]
CODEC = ToyCodec(WORDS, hidden=[0, 7])


def run(answer: list[int], k: int = 3, wrong: tuple[int, ...] = (), **settings: object) -> Trace:
    """A target that says `answer`, drafted k at a time."""
    script = [0, *answer, *[1] * 8]
    target = scripted(script, len(WORDS), tokenizer=CODEC, eos_ids=frozenset({7}))
    params = SamplingParams(**{"max_tokens": len(answer) + 4, "logprobs": True, **settings})
    return Engine(target, from_script(script, k, wrong, len(WORDS))).generate([0], params)


def sources(trace: Trace) -> list[str]:
    return [token.source for step in trace.rounds for token in step.tokens]


@pytest.mark.parametrize(
    "before, k, wrong, source",
    [
        (1, 3, (), "accepted"),  # inside the accepted run
        (2, 3, (), "accepted"),  # its last draft
        (3, 3, (), "bonus"),
        (1, 3, (2,), "recovered"),
        (4, 3, (), "accepted"),  # first draft of the second round
    ],
)
def test_eos_wherever_it_falls_in_a_round(before: int, k: int, wrong: tuple[int, ...], source: str) -> None:
    """EOS inside the accepted drafts, as the last of them, as bonus, as recovered token, in the next round."""
    trace = run([*[1] * before, 7, 2, 2, 2], k, wrong)
    assert trace.finish_reason == "eos"
    assert trace.ids == (*[1] * before, 7)
    assert trace.text == "a" * before and trace.finished.tail == ""
    assert sources(trace)[-1] == source
    assert trace.stats.tokens == before + 1
    assert sum(len(step.tokens) for step in trace.rounds) == before + 1


def test_drafts_behind_the_end_are_discarded_and_counted_nowhere() -> None:
    """EOS is the second of four drafts: two accepted, two discarded, none rejected; drafted counts 2."""
    trace = run([1, 7, 1, 1, 1], k=4)
    (step,) = trace.rounds
    assert [proposal.outcome for proposal in step.proposals] == ["accepted", "accepted", "discarded", "discarded"]
    assert all(p.p is None and p.u is None and p.acceptance is None for p in step.proposals[2:])
    stats = trace.stats
    assert (stats.drafted, stats.accepted, stats.rejected, stats.tokens) == (2, 2, 0, 2)
    assert stats.mean_acceptance_length == 2 and stats.acceptance_rate == 1
    assert stats.accepted_per_position == (1, 1)


def test_a_draft_refused_behind_the_end_is_discarded_too() -> None:
    """EOS accepted, the draft behind it wrong: it was never judged."""
    trace = run([1, 7, 1, 1, 1], k=4, wrong=(3,))
    assert [p.outcome for p in trace.rounds[0].proposals] == ["accepted", "accepted", "discarded", "discarded"]
    assert trace.stats.rejected == 0


def test_eos_drafted_but_refused_does_not_end_the_run() -> None:
    """The draft says EOS where the target goes on."""
    script = [0, 1, 2, 3, 1, 2, 3]
    target = scripted(script, len(WORDS), tokenizer=CODEC, eos_ids=frozenset({7}))
    trace = Engine(target, ToyDrafter(lambda tokens, k: [7] * k, 3)).generate([0], SamplingParams(max_tokens=5))
    assert trace.ids == (1, 2, 3, 1, 2) and trace.finish_reason == "length" and trace.stats.accepted == 0


def test_ignore_eos_goes_on() -> None:
    """ignore_eos: EOS is a token like any other, invisible in the text."""
    trace = run([1, 7, 2], ignore_eos=True, max_tokens=3)
    assert trace.ids == (1, 7, 2) and trace.text == "ab" and trace.finish_reason == "length"


def test_a_stop_id_ends_the_text_before_it() -> None:
    """Stop id 3 (`c`): last id, no text of it, reason stop."""
    trace = run([1, 2, 3, 1], stop_token_ids=(3,))
    assert trace.ids == (1, 2, 3) and trace.text == "ab" and trace.finish_reason == "stop"


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4])
def test_a_stop_string_over_two_tokens_and_two_rounds(k: int) -> None:
    """`ST` + `OP`, for each k: held back, cut, and ids, log-probabilities and statistics end at the same token."""
    trace = run([1, 2, 5, 6, 3, 3], k, stop=("STOP",))
    assert trace.text == "ab" and trace.finished.tail == "" and trace.finish_reason == "stop"
    assert trace.ids == (1, 2, 5, 6)
    tokens = [token for step in trace.rounds for token in step.tokens]
    assert len(tokens) == trace.stats.tokens == 4 and all(token.logprob is not None for token in tokens)
    assert "S" not in "".join(step.text for step in trace.rounds)


def test_held_back_text_is_released_once_and_in_order() -> None:
    """`ST` might have become `STOP`: it appears when `a` shows that it did not, or as the tail at the end."""
    trace = run([1, 5, 1, 5], max_tokens=4, stop=("STOP",), k=0)
    assert [step.text for step in trace.rounds] == ["a", "", "STa", ""]
    assert trace.finished.tail == "ST" and trace.text == "aSTaST"


def test_unfinished_characters_are_flushed_at_the_end() -> None:
    """Half of 🙂 at the end of the budget becomes U+FFFD, once, in the tail; the whole of it is one character."""
    assert run([8, 9], max_tokens=2).text == "🙂"
    half = run([1, 8], max_tokens=2)
    assert half.text == "a�" and half.finished.tail == "�"


def test_a_stop_string_of_the_flushed_text_is_cut_as_well() -> None:
    """The replacement of half a character completes a stop string: it does not reach the reader."""
    assert run([1, 8], max_tokens=2, stop=("�",)).text == "a"


def test_half_a_character_behind_a_stop_string_is_not_flushed() -> None:
    """The token that completes the stop string also begins a character: nothing of it is said."""
    trace = run([1, 10], max_tokens=2, stop=("STOP",))
    assert (trace.text, trace.finished.tail, trace.finish_reason) == ("a", "", "stop")


def test_held_back_text_comes_before_eos() -> None:
    """`ST` then EOS: the text is released at the end, in order."""
    trace = run([1, 5, 7], stop=("STOP",))
    assert trace.text == "aST" and trace.finish_reason == "eos" and trace.finished.tail == "ST"


def test_of_length_and_stop_in_one_round_the_earlier_is_the_reason() -> None:
    """Stop at the last allowed token: stop. Stop one behind it: length, and the token is not emitted."""
    at_the_end, behind = run([1, 1, 4], max_tokens=3, stop=("STOP",)), run([1, 1, 4], max_tokens=2, stop=("STOP",))
    assert at_the_end.finish_reason == "stop" and at_the_end.text == "aa" and len(at_the_end.ids) == 3
    assert behind.finish_reason == "length" and behind.text == "aa" and len(behind.ids) == 2
    assert run([1, 7], max_tokens=2).finish_reason == "eos"


def test_the_earliest_completed_stop_string_wins_whatever_the_order() -> None:
    """`ab` completes before `abc`, though listed behind it; of two completed together the longer cuts more."""
    for stops in (("abc", "b"), ("b", "abc")):
        assert run([1, 2, 3], stop=stops).text == "a"
    assert run([1, 2, 3], stop=("c", "bc")).text == "a"


def test_without_a_tokenizer_there_is_no_text() -> None:
    """Ids in, ids out."""
    trace = Engine(scripted([0, 1, 2, 3], 5)).generate([0], SamplingParams(max_tokens=3))
    assert trace.text == "" and trace.ids == (1, 2, 3)
    assert isinstance(trace.records[-1], Finished) and len(rounds_of(trace.records)) == 3


def test_stopping_counts_down_to_its_limit() -> None:
    """The budget's end has the name it was given."""
    stopping = Stopping(SamplingParams(), frozenset(), None, 3, "context")
    assert stopping.cut([1, 2]).reason is None and stopping.left == 1
    assert stopping.cut([3, 4]) == type(stopping.cut(()))((3,), "", "context")
