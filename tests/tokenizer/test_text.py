"""Text to ids and back: nothing is lost, nothing a user types is control."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from specdec.errors import LoadError, RequestError, UnsupportedError
from specdec.tokenizer import Tokenizer, clean
from tests.checkpoints.files import SPECIALS, TEXT, bpe

BACKEND = bpe()
OURS = Tokenizer(BACKEND.to_str())
UNICODE = st.text(st.characters(exclude_categories=("Cs",)), max_size=80)


@settings(max_examples=500, deadline=None)
@given(UNICODE)
def test_any_text_comes_back(text: str) -> None:
    """500 generated strings: decoding the ids gives the text."""
    assert OURS.decode(OURS.encode(text)) == text


@settings(max_examples=300, deadline=None)
@given(UNICODE)
def test_ids_are_those_of_transformers(text: str) -> None:
    """Ordinary text has the ids that transformers gives it."""
    if not any(special in text for special in SPECIALS):
        assert OURS.encode(text) == reference()(text)["input_ids"]


def reference(**settings_: Any) -> PreTrainedTokenizerFast:
    """The same tokenizer in transformers."""
    key = json.dumps(settings_)
    if key not in _MADE:
        _MADE[key] = PreTrainedTokenizerFast(tokenizer_object=Backend.from_str(BACKEND.to_str()), **settings_)
    return _MADE[key]


_MADE: dict[str, PreTrainedTokenizerFast] = {}


@pytest.mark.parametrize(
    "text",
    ["", " ", "\n\n\t  ", "\x00", "🙂", "👩‍👩‍👧", "e\u0301a\u0308\u0304", "\u202e\ufeff", "x" * 5000, "ﷺ", "𝔘𝔫𝔦", TEXT],
)
def test_awkward_texts_come_back(text: str) -> None:
    """Empty, only white space, NUL, joined emoji, combining marks, direction marks, long."""
    assert OURS.decode(OURS.encode(text)) == text


@pytest.mark.parametrize("special", SPECIALS)
def test_special_token_text_typed_by_a_user_is_text(special: str) -> None:
    """`<|im_end|>` in a prompt is ten characters, not the end of a turn; and comes back as typed."""
    control = BACKEND.token_to_id(special)
    for text in (special, f"a{special}b", special * 3, special[:-1] + special):
        ids = OURS.encode(text)
        assert control not in ids
        assert OURS.decode(ids) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\ud800b", "a\ufffdb"), ("\udfff", "\ufffd"), ("\ud83d\ude42", "🙂"), ("\ude42\ud83d", "\ufffd\ufffd")],
)
def test_lone_surrogates_become_replacement_characters(text: str, expected: str) -> None:
    """A prompt cut inside an emoji by some browser is no crash: halves become U+FFFD, pairs the character."""
    assert clean(text) == expected
    assert OURS.decode(OURS.encode(text)) == expected


@pytest.mark.parametrize("value", [None, 3, b"bytes", ["list"]])
def test_what_is_no_text_is_refused(value: Any) -> None:
    """One clear error, not the tokenizer library's."""
    with pytest.raises(RequestError, match="must be text"):
        OURS.encode(value)


def test_a_word_of_100_000_characters_is_encoded() -> None:
    """One endless word, and one of random letters, come back whole."""
    for word in ("x" * 100_000, "".join(chr(97 + i * i * 7919 % 26) for i in range(100_000))):
        assert OURS.decode(OURS.encode(word)) == word


@pytest.mark.load
def test_a_word_of_100_000_characters_is_encoded_within_two_seconds() -> None:
    """Merging is not quadratic in the length of a word."""
    word = "".join(chr(97 + i * i * 7919 % 26) for i in range(100_000))
    start = time.perf_counter()
    OURS.encode(word)
    assert time.perf_counter() - start <= 2.0


def test_pieces_are_readable() -> None:
    """Words as text, special tokens by name, half characters as escapes, unknown ids as numbers."""
    assert [OURS.piece(i) for i in OURS.encode(" large")] == [" large"]
    assert OURS.piece(BACKEND.token_to_id("<|im_end|>")) == "<|im_end|>"
    assert OURS.piece(BACKEND.token_to_id("ð")) == r"\xf0"
    assert OURS.piece(10_000) == "[10000]"
    assert OURS.piece(-1) == "[-1]"


def test_special_and_unknown_ids_are_no_text() -> None:
    """They are skipped, wherever they stand, also inside a character."""
    ids = OURS.encode("a🙂b")
    end = BACKEND.token_to_id("<|im_end|>")
    mixed = [end] + [i for pair in zip(ids, [end, 9999, -5, 1 << 40] * 9, strict=False) for i in pair]
    assert OURS.decode(mixed) == "a🙂b"


def test_fingerprints_tell_vocabularies_apart() -> None:
    """Equal for equal tables of ids, whatever else differs; different where one id means something else."""
    assert OURS.fingerprint == Tokenizer(BACKEND.to_str(), bos_token="<|im_start|>", add_bos=True).fingerprint
    parts = json.loads(BACKEND.to_str())
    vocab = parts["model"]["vocab"]
    vocab["!"], vocab['"'] = vocab['"'], vocab["!"]
    assert Tokenizer(json.dumps(parts)).fingerprint != OURS.fingerprint
    assert OURS.vocab_size == BACKEND.get_vocab_size()


def with_post_processor(single: str) -> Backend:
    """A tokenizer whose post-processing adds tokens."""
    backend = Backend.from_str(BACKEND.to_str())
    pairs = [(token, backend.token_to_id(token)) for token in SPECIALS]
    backend.post_processor = processors.TemplateProcessing(single=single, pair="$A $B", special_tokens=pairs)
    return backend


def test_bos_comes_from_post_processing() -> None:
    """Llama's way; an EOS that a tokenizer would append is left out, it would end the prompt."""
    start = BACKEND.token_to_id("<|im_start|>")
    for single in ("<|im_start|> $A", "<|im_start|> $A <|im_end|>"):
        ours = Tokenizer(with_post_processor(single).to_str())
        assert ours.encode("hello") == [start, *OURS.encode("hello")]
        assert ours.encode("") == [start]
        assert ours.encode("hello", add_bos=False) == OURS.encode("hello")


@pytest.mark.parametrize("add_bos", [True, False])
def test_bos_as_the_settings_say(add_bos: bool) -> None:
    """`add_bos_token` goes over the post-processing, as in transformers."""
    backend = with_post_processor("<|im_start|> $A")
    ours = Tokenizer(backend.to_str(), bos_token="<|endoftext|>", add_bos=add_bos)
    theirs = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<|endoftext|>", add_bos_token=add_bos)
    assert ours.encode("hello") == theirs("hello")["input_ids"]
    assert ours.bos_id == BACKEND.token_to_id("<|endoftext|>")


def test_a_tokenizer_without_bos_has_none() -> None:
    """GPT-2's way: the first id is the first word."""
    assert OURS.bos_id is None
    assert OURS.encode("hello") == OURS.encode("hello", add_bos=False)


def test_truncation_and_padding_of_the_file_are_off() -> None:
    """Settings left over from training would cut prompts silently."""
    backend = Backend.from_str(BACKEND.to_str())
    backend.enable_truncation(4)
    backend.enable_padding(length=64)
    assert Tokenizer(backend.to_str()).encode(TEXT) == OURS.encode(TEXT)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"model": {}}', '{"version": "9", "model": null}', "null"])
def test_what_is_no_tokenizer_is_refused(text: str) -> None:
    """LoadError, whatever the library raises."""
    with pytest.raises(LoadError):
        Tokenizer(text)


def test_a_tokenizer_that_fails_at_a_text_is_an_error_of_ours() -> None:
    """A vocabulary of whole words without an unknown one cannot encode others."""
    backend = Backend(models.WordLevel({"a": 0}, "[UNK]"))
    backend.decoder = decoders.ByteLevel()
    ours = Tokenizer(backend.to_str())
    assert ours.encode("a") == [0]
    with pytest.raises(LoadError, match="cannot encode"):
        ours.encode("b")


def test_decoders_that_cannot_be_undone_token_by_token_are_refused_by_name() -> None:
    """WordPiece's, or none at all."""
    for decoder, name in ((decoders.WordPiece(), "WordPiece"), (None, "none")):
        backend = Backend(models.WordLevel({"a": 0, "[UNK]": 1}, "[UNK]"))
        backend.pre_tokenizer = pre_tokenizers.Whitespace()
        if decoder is not None:
            backend.decoder = decoder
        with pytest.raises(UnsupportedError, match=name):
            Tokenizer(backend.to_str())
