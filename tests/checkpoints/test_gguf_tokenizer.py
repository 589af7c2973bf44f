"""The tokenizer inside a GGUF file: the ids that the original tokenizer gives, for every splitting rule."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGUFReader, dequantize
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from specdec.checkpoints import fetch
from specdec.checkpoints.checkpoint import Checkpoint, open_checkpoint
from specdec.checkpoints.gguf_file import read_gguf
from specdec.checkpoints.gguf_tokenizer import tokenizer_from_gguf
from specdec.errors import LoadError, UnsupportedError
from tests.checkpoints.files import CHAT_TEMPLATE, TEXT, bpe, tokenizer_metadata, write_gguf

# The patterns as they stand in the original tokenizer.json files of Llama 3 and Qwen2.
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def split(pattern: str) -> list[Any]:
    """GPT-4's way: a pattern, then bytes."""
    return [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]


ORIGINALS = {
    "gpt-2": bpe(),
    "smollm": bpe([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)]),
    "llama-bpe": bpe(split(LLAMA3), ignore_merges=True),
    "qwen2": bpe(split(QWEN2), nfc=True),
}
WORDS = ["I'M", "we'LL", "x1234567", "a  b", "\r\n\r\n x", "e\u0301", "٣٤٥", "½ⅷ", "  \t\n", "🙂👩‍👩‍👧", "don't", "'S"]


def in_gguf(folder: Path, pre: str, **extra: Any) -> Any:
    """A tokenizer read back from a GGUF file with its parts."""
    metadata = tokenizer_metadata(ORIGINALS[pre], pre) | {f"tokenizer.{key}": value for key, value in extra.items()}
    path = write_gguf(folder / f"{pre}.gguf", metadata, {"x": np.zeros(1, np.float32)})
    return tokenizer_from_gguf(read_gguf(path))


@pytest.mark.parametrize("pre", ORIGINALS)
def test_ids_are_those_of_the_original(tmp_path: Path, pre: str) -> None:
    """Contractions, digits, spaces, line ends, accents, emoji: the same ids under every rule."""
    ours, original = in_gguf(tmp_path, pre), ORIGINALS[pre]
    original.encode_special_tokens = True
    for text in [TEXT, *WORDS, " ".join(WORDS), "<|im_end|>"]:
        assert ours.encode(text, add_bos=False) == original.encode(text, add_special_tokens=False).ids, text


def test_the_rules_differ() -> None:
    """A control: each rule gives some word ids that no other does, so that the test above can fail."""
    ids = {
        pre: tuple(tuple(original.encode(word).ids) for word in [TEXT, *WORDS]) for pre, original in ORIGINALS.items()
    }
    assert len(set(ids.values())) == len(ids)


def test_bos_is_added_where_the_file_or_the_rule_says_so(tmp_path: Path) -> None:
    """Llama 3 begins every text with BOS, also where the file does not mention it; others where it does."""
    bos = {"ggml.bos_token_id": 1}
    assert in_gguf(tmp_path, "llama-bpe", **bos).encode("a")[0] == 1
    assert in_gguf(tmp_path, "llama-bpe", **bos, **{"ggml.add_bos_token": False}).encode("a")[0] != 1
    assert in_gguf(tmp_path, "smollm", **bos).encode("a")[0] != 1
    assert in_gguf(tmp_path, "smollm", **bos, **{"ggml.add_bos_token": True}).encode("a")[0] == 1


def test_padding_rows_are_no_tokens(tmp_path: Path) -> None:
    """Rows that round the table up do not change the fingerprint: draft and target of one family stay compatible."""
    plain = tokenizer_metadata(ORIGINALS["gpt-2"], "gpt-2")
    count = len(plain["tokenizer.ggml.tokens"])
    padded = plain | {
        "tokenizer.ggml.tokens": plain["tokenizer.ggml.tokens"] + [f"[PAD{count + i}]" for i in range(5)],
        "tokenizer.ggml.token_type": plain["tokenizer.ggml.token_type"] + [5] * 5,
    }
    one, two = (
        tokenizer_from_gguf(read_gguf(write_gguf(tmp_path / f"{i}.gguf", metadata, {"x": np.zeros(1, np.float32)})))
        for i, metadata in enumerate([plain, padded])
    )
    assert one is not None
    assert two is not None
    assert one.fingerprint == two.fingerprint
    assert two.decode([count]) == ""


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"ggml.pre": "tekken"}, UnsupportedError, "'tekken'"),
        ({"ggml.pre": "default"}, UnsupportedError, "'default'"),
        ({"ggml.model": "llama"}, UnsupportedError, "'llama'"),
        ({"ggml.model": "t5"}, UnsupportedError, "'t5'"),
        ({"ggml.tokens": ["a", "a"]}, LoadError, "twice"),
        ({"ggml.token_type": [1]}, LoadError, "token_type"),
        ({"ggml.merges": "a b"}, LoadError, "merges"),
        ({"ggml.merges": ["qq zz"]}, LoadError, "tokenizer"),
    ],
)
def test_what_cannot_be_right_is_refused(
    tmp_path: Path, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    """An unknown rule or kind by name; lists that do not fit each other."""
    with pytest.raises(error, match=message):
        in_gguf(tmp_path, "gpt-2", **changes)


@pytest.fixture(scope="session")
def real() -> Checkpoint:
    """The real SmolLM2."""
    return open_checkpoint(fetch("smollm2-135m-instruct"))


@pytest.fixture(scope="session")
def library(real: Checkpoint) -> GGUFReader:
    """The same file by the gguf library's own reader."""
    if real.path.suffix != ".gguf":
        pytest.skip("the Hub's copy is no GGUF file")
    return GGUFReader(real.path)


@pytest.fixture(scope="session")
def transformers_tokenizer(library: GGUFReader) -> PreTrainedTokenizerFast:
    """SmolLM2's tokenizer as transformers has it, from the file's parts by the gguf library's reader."""
    fields = library.fields
    tokens, merges, types = (fields[f"tokenizer.ggml.{key}"].contents() for key in ("tokens", "merges", "token_type"))
    backend = Tokenizer(
        models.BPE({token: i for i, token in enumerate(tokens)}, [tuple(merge.split(" ")) for merge in merges])
    )
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)])
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(
        [
            AddedToken(token, normalized=False, special=True)
            for token, kind in zip(tokens, types, strict=True)
            if kind == 3
        ]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        chat_template=fields["tokenizer.chat_template"].contents(),
    )


@pytest.mark.real
def test_smollm2_ids_equal_transformers(real: Checkpoint, transformers_tokenizer: PreTrainedTokenizerFast) -> None:
    """300 generated texts and the words above: the same ids, with and without BOS, and the same text back."""
    ours = real.tokenizer
    assert ours is not None

    @settings(max_examples=300, deadline=None)
    @given(st.text(st.characters(exclude_categories=("Cs",)), max_size=60))
    def check(text: str) -> None:
        if any(special in text for special in transformers_tokenizer.all_special_tokens):
            return
        expected = transformers_tokenizer(text)["input_ids"]
        assert ours.encode(text) == expected
        assert ours.decode(expected) == transformers_tokenizer.decode(expected, skip_special_tokens=True)

    check()
    for word in [TEXT, *WORDS]:
        assert ours.encode(word) == transformers_tokenizer(word)["input_ids"]


@pytest.mark.real
def test_smollm2_chat_equals_transformers(real: Checkpoint, transformers_tokenizer: PreTrainedTokenizerFast) -> None:
    """Its own template, with and without a system message, with and without the generation prompt."""
    ours = real.tokenizer
    assert ours is not None
    user = [{"role": "user", "content": "What is 12 + 34? 🙂\n\n```py\nprint(1)\n```"}]
    for messages in (
        user,
        [{"role": "system", "content": "Be brief."}, *user, {"role": "assistant", "content": "46."}],
    ):
        for prompt in (True, False):
            expected = transformers_tokenizer.apply_chat_template(messages, add_generation_prompt=prompt)
            ids = expected if isinstance(expected, list) else expected["input_ids"]
            assert ours.apply_chat_template(messages, add_generation_prompt=prompt) == ids


@pytest.mark.real
def test_the_real_file_reads_as_the_gguf_library_reads_it(real: Checkpoint, library: GGUFReader) -> None:
    """Metadata, shapes, and a matrix number by number equal those of the gguf library's reader."""
    ours = read_gguf(real.path)
    assert len(ours.tensors) == len(library.tensors) == 272
    for tensor in library.tensors:
        assert list(ours.tensors[tensor.name].shape) == tensor.shape.tolist()[::-1]
    for key, value in ours.metadata.items():
        theirs = library.fields[key].contents()
        assert (value.tolist() if isinstance(value, np.ndarray) else value) == theirs, key
    name = "blk.7.ffn_up.weight"
    tensor = next(tensor for tensor in library.tensors if tensor.name == name)
    assert np.array_equal(ours.tensors[name].read(), dequantize(tensor.data, tensor.tensor_type))


def test_the_chat_template_of_a_file_is_used(tmp_path: Path) -> None:
    """`tokenizer.chat_template` is rendered with the file's own special tokens."""
    ours = in_gguf(tmp_path, "gpt-2", chat_template=CHAT_TEMPLATE)
    ids = ours.apply_chat_template([{"role": "user", "content": "large model"}])
    pieces = [ours.piece(i) for i in ids]
    assert "".join(pieces) == "<|im_start|>user\nlarge model<|im_end|>\n<|im_start|>assistant\n"
    assert pieces[0] == "<|im_start|>"
    assert pieces.count("<|im_end|>") == 1
    assert not in_gguf(tmp_path, "smollm").has_chat_template
