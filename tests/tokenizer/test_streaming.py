"""Streaming: the deltas joined are the whole text, and no delta is ever half a character."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers
from tokenizers import Tokenizer as Backend

from specdec.tokenizer import Tokenizer
from tests.checkpoints.files import TEXT, bpe

BACKEND = bpe()
OURS = Tokenizer(BACKEND.to_str())


def sentencepiece() -> Backend:
    """A tokenizer as Llama 2's: spaces as ▁, unknown characters as bytes, a space before the first word."""
    words = ["▁Once", "▁upon", "▁a", "▁time", "▁c", "é", "b"]
    prefixes = dict.fromkeys(word[: end + 1] for word in words for end in range(1, len(word)))
    names = dict.fromkeys(
        ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *"".join(words), *prefixes]
    )
    merges = [(prefix[:-1], prefix[-1]) for prefix in prefixes]
    vocab = {name: i for i, name in enumerate(names)}
    backend = Backend(models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    backend.decoder = decoders.Sequence(steps)
    backend.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in ("<s>", "</s>")])
    return backend


SPM_BACKEND = sentencepiece()
SPM = Tokenizer(SPM_BACKEND.to_str())


def streamed(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    """Deltas, the flush last."""
    decoder = tokenizer.decoder()
    return [*map(decoder.push, ids), decoder.flush()]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.integers(-1, BACKEND.get_vocab_size() + 3), max_size=60))
def test_any_ids_streamed_are_the_whole(ids: list[int]) -> None:
    """500 random lists of ids, mostly broken UTF-8: deltas joined = full decode = the tokenizers library's decode."""
    whole = OURS.decode(ids)
    assert "".join(streamed(OURS, ids)) == whole
    assert whole == BACKEND.decode([i for i in ids if i >= 0], skip_special_tokens=True)


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=60))
def test_no_delta_is_half_a_character(text: str) -> None:
    """Streaming real text never shows U+FFFD that is not in the text, and holds back at most three bytes."""
    ids = OURS.encode(text)
    deltas = streamed(OURS, ids)
    assert "".join(deltas) == text
    if "\ufffd" not in text:
        assert not any("\ufffd" in delta for delta in deltas)
    decoder = OURS.decoder()
    for count, token in enumerate(ids, 1):
        decoder.push(token)
        shown = "".join(deltas[:count])
        assert text.startswith(shown)


def test_an_emoji_appears_with_its_last_byte() -> None:
    """Four byte tokens: nothing, nothing, nothing, 🙂."""
    ids = [BACKEND.token_to_id(piece) for piece in "ðŁĻĤ"]
    assert streamed(OURS, ids) == ["", "", "", "🙂", ""]


def test_an_unfinished_character_is_flushed_once() -> None:
    """What is held back at the end becomes U+FFFD; a second flush has nothing."""
    decoder = OURS.decoder()
    assert [decoder.push(BACKEND.token_to_id(piece)) for piece in "ðŁ"] == ["", ""]
    assert decoder.flush() == "\ufffd"
    assert decoder.flush() == ""


def test_a_broken_character_does_not_swallow_what_follows() -> None:
    """Half an emoji, then a word: replaced, and the word is whole."""
    ids = [BACKEND.token_to_id("ð"), BACKEND.token_to_id("Ł"), *OURS.encode(" large")]
    assert "".join(streamed(OURS, ids)) == "\ufffd large"


def test_decoders_do_not_share_state() -> None:
    """Two streams at once do not mix."""
    one, two = OURS.decoder(), OURS.decoder()
    halves = [BACKEND.token_to_id(piece) for piece in "ðŁĻĤ"]
    for token in halves:
        assert two.push(OURS.encode("a")[0]) == "a"
        last = one.push(token)
    assert last == "🙂"


@pytest.mark.parametrize("text", ["Once upon a time", "a", "", " Once", "é🙂\n", "  a  b", "你好 c", "▁"])
def test_sentencepiece_text_comes_back(text: str) -> None:
    """Llama 2's kind: whole texts come back without the space it puts first; as the library decodes them."""
    ids = SPM.encode(text)
    assert ids == SPM_BACKEND.encode(text).ids
    assert SPM.decode(ids) == SPM_BACKEND.decode(ids)


def test_a_sentencepiece_continuation_keeps_its_space() -> None:
    """A stream that follows a prompt: the space before its first word is a real one."""
    ids = SPM.encode("Once upon a time")
    text = SPM.decode(ids[:2]) + "".join(streamed(SPM, ids[2:]))
    assert text == "Once upon a time"
    assert SPM.decode(ids[2:]) == "a time"
    assert SPM.decode(ids[2:], continuation=True) == " a time" == "".join(streamed(SPM, ids[2:]))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, SPM_BACKEND.get_vocab_size() - 1), max_size=40))
def test_any_sentencepiece_ids_streamed_are_the_whole(ids: list[int]) -> None:
    """Also for byte tokens that are no characters: deltas joined = full decode."""
    assert "".join(streamed(SPM, ids)) == SPM.decode(ids, continuation=True)


def test_metaspace_decoders_are_sentencepiece_too() -> None:
    """The newer spelling of the same thing."""
    parts = json.loads(SPM_BACKEND.to_str())
    parts["decoder"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
    ours = Tokenizer(json.dumps(parts))
    ids = ours.encode("Once upon a time")
    assert [ours.piece(i) for i in ids] == [" Once", " upon", " a", " time"]
    assert ours.decode(ids) == "Once upon a time" == Backend.from_str(json.dumps(parts)).decode(ids)


@pytest.mark.load
def test_the_cost_per_token_does_not_grow() -> None:
    """The last thousand of 50,000 tokens are not slower than the first (generous factor of 5)."""
    import time

    ids = OURS.encode(TEXT) * 500
    random.Random(0).shuffle(ids)
    decoder = OURS.decoder()
    seconds = []
    for start in range(0, 50_000, 1000):
        began = time.perf_counter()
        for token in ids[start : start + 1000]:
            decoder.push(token)
        seconds.append(time.perf_counter() - began)
    assert min(seconds[-5:]) < 5 * min(seconds[1:6])
