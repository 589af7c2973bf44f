"""The tokenizer inside a GGUF file, written out as the `tokenizer.json` it was made from.

Byte-level BPE only (`tokenizer.ggml.model` gpt2). How text is split before merging is not in the file: the file gives
a name, and the rule behind each name is llama.cpp's and the original tokenizers'. Unknown names are refused.
"""

import json
from dataclasses import dataclass
from typing import Any

from specdec.checkpoints.chat_template import ChatTemplate
from specdec.checkpoints.gguf_file import GGUFFile
from specdec.errors import LoadError, UnsupportedError
from specdec.tokenizer import Tokenizer

Json = dict[str, Any]

_CONTROL, _USER_DEFINED, _UNUSED, _UNKNOWN = 3, 4, 5, 2
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"


def tokenizer_from_gguf(file: GGUFFile) -> Tokenizer | None:
    """The file's tokenizer with its chat template; None where it has none."""
    kind = file.value("tokenizer.ggml.model")
    if kind is None or kind == "none":
        return None
    if kind != "gpt2":
        raise UnsupportedError(f"{file.path}: tokenizer.ggml.model {kind!r:.60} is not supported; gpt2 is")
    tokens = _strings(file, "tokenizer.ggml.tokens")
    if len(set(tokens)) != len(tokens):
        raise LoadError(f"{file.path}: a token appears twice in tokenizer.ggml.tokens")
    specials = {
        f"{role}_token": tokens[index]
        for role, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
        if type(index := file.value(f"tokenizer.ggml.{key}_token_id")) is int and 0 <= index < len(tokens)
    }
    rule = _splitting(file)
    template = file.value("tokenizer.chat_template")
    return Tokenizer(
        json.dumps(_definition(file, tokens, rule)),
        bos_token=specials.get("bos_token"),
        add_bos=bool(file.value("tokenizer.ggml.add_bos_token", rule.llama3)) and "bos_token" in specials,
        chat=ChatTemplate(template, specials) if isinstance(template, str) else None,
    )


@dataclass(frozen=True, slots=True)
class _Rule:
    """How one named pre-tokenizer splits text; `llama3`: whole words are looked up first, and texts begin with BOS."""

    steps: tuple[Json, ...]
    normalizer: Json | None = None
    llama3: bool = False


def _byte_level(*, use_regex: bool) -> Json:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def _split(digits: str) -> Json:
    """The splitting that GPT-4 brought, `digits` at a time."""
    regex = rf"{_CONTRACTIONS}|{_WORDS}|{digits}|{_REST}"
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


_GPT2 = _Rule((_byte_level(use_regex=True),))
_SMOLLM = _Rule(({"type": "Digits", "individual_digits": True}, _byte_level(use_regex=True)))
_LLAMA3 = _Rule((_split(r"\p{N}{1,3}"), _byte_level(use_regex=False)), llama3=True)
_QWEN2 = _Rule((_split(r"\p{N}"), _byte_level(use_regex=False)), normalizer={"type": "NFC"})
_RULES = {"gpt-2": _GPT2, "smollm": _SMOLLM, "llama-bpe": _LLAMA3, "llama3": _LLAMA3, "llama-v3": _LLAMA3} | {
    "qwen2": _QWEN2
}


def _splitting(file: GGUFFile) -> _Rule:
    """The rule the file names. GPT-2 files older than the name split as GPT-2 does."""
    architecture = file.value("general.architecture")
    name = file.value("tokenizer.ggml.pre", "gpt-2" if architecture == "gpt2" else None)
    if name == "default" and architecture == "gpt2":
        name = "gpt-2"
    if not isinstance(name, str) or name not in _RULES:
        raise UnsupportedError(
            f"{file.path}: pre-tokenizer (tokenizer.ggml.pre) {name!r:.60} is not supported; {', '.join(_RULES)} are"
        )
    return _RULES[name]


def _definition(file: GGUFFile, tokens: list[str], rule: _Rule) -> Json:
    """A tokenizer.json."""
    types = _token_types(file, len(tokens))
    kept = {token: index for index, token in enumerate(tokens) if not _is_padding(token, types[index])}
    added = [
        {"id": index, "content": token, "special": types[index] != _USER_DEFINED}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for token, index in kept.items()
        if types[index] in (_CONTROL, _USER_DEFINED, _UNKNOWN)
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": rule.normalizer,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": list(rule.steps)},
        "post_processor": None,
        "decoder": _byte_level(use_regex=True),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": rule.llama3,
            "vocab": kept,
            "merges": _strings(file, "tokenizer.ggml.merges"),
        },
    }


def _is_padding(token: str, kind: int) -> bool:
    """Rows that exist only to round the table up; without them the ids mean what the original's do."""
    return kind == _UNUSED and token.startswith("[PAD") and token.endswith("]")


def _token_types(file: GGUFFile, count: int) -> list[int]:
    types = file.metadata.get("tokenizer.ggml.token_type")
    if types is None:
        return [1] * count
    values: list[int] = types.tolist() if hasattr(types, "tolist") else []
    if len(values) != count:
        raise LoadError(f"{file.path}: tokenizer.ggml.token_type does not fit {count:,} tokens")
    return values


def _strings(file: GGUFFile, key: str) -> list[str]:
    values = file.metadata.get(key)
    if not isinstance(values, list):
        raise LoadError(f"{file.path} has no list of strings {key}")
    return values
