"""The tokenizer loses no text and has exactly the size asked for."""

import json
import random
from pathlib import Path

import pytest

from specdec.errors import ConfigError, NotFoundError
from specdec.training.tokenization import load_tokenizer, save_tokenizer, train_tokenizer
from tests.training.toys import VOCABULARY, documents, tokenizer


def random_text(rng: random.Random) -> str:
    """Up to 40 code points from all planes, surrogates (which are no characters) left out."""
    points = [
        rng.choice((rng.randrange(128), rng.randrange(0xD800), rng.randrange(0xE000, 0x110000))) for _ in range(40)
    ]
    return "".join(map(chr, points[: rng.randrange(41)]))


def test_any_text_survives() -> None:
    """Decoding what was encoded gives the same string, for 500 strings of random Unicode. No false alarms: seeded."""
    rng = random.Random(1)
    for _ in range(500):
        text = random_text(rng)
        assert tokenizer().decode(tokenizer().encode(text, add_special_tokens=False).ids) == text


def test_vocabulary_is_exact() -> None:
    """The special token is id 0, every byte has a token, and the size is the one asked for."""
    vocabulary = tokenizer().get_vocab()
    assert len(vocabulary) == VOCABULARY == tokenizer().get_vocab_size()
    assert vocabulary["<|endoftext|>"] == 0
    assert sorted(vocabulary.values()) == list(range(VOCABULARY))
    assert sum(len(token) == 1 for token in vocabulary) == 256


def test_texts_begin_with_the_special_token_and_digits_stand_alone() -> None:
    """`<|endoftext|>` comes before a text, never after it; no token joins two digits."""
    encoding = tokenizer().encode("12 cakes 12")
    assert encoding.tokens[:3] == ["<|endoftext|>", "1", "2"]
    assert encoding.ids.count(0) == 1


def test_too_small_a_corpus_is_refused() -> None:
    """A corpus that cannot fill the vocabulary is an error with both numbers, not a smaller vocabulary."""
    with pytest.raises(ConfigError, match=r"yields \d+ tokens, not the 5000"):
        train_tokenizer(documents(3), 5000)


def test_saved_tokenizer_is_the_same(tmp_path: Path) -> None:
    """A saved tokenizer encodes as before, and its configuration says how documents begin and end."""
    save_tokenizer(tokenizer(), tmp_path, 32)
    text = "Tim saw the moon. Ünï ☃"
    assert load_tokenizer(tmp_path).encode(text).ids == tokenizer().encode(text).ids
    config = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert (config["bos_token"], config["eos_token"], config["add_bos_token"]) == (
        "<|endoftext|>",
        "<|endoftext|>",
        True,
    )
    assert config["model_max_length"] == 32


def test_missing_tokenizer_is_named(tmp_path: Path) -> None:
    """A folder without a tokenizer is an error that names the folder."""
    with pytest.raises(NotFoundError, match=tmp_path.name):
        load_tokenizer(tmp_path)
