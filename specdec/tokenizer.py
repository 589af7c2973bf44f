"""Text to token ids and back: `tokenizers` does the merging, this module what a streaming server needs beside it.

Text from a user is text: `encode` never turns `<|im_end|>` typed by somebody into the control token. Decoding works on
the bytes of the tokens, so that a character spread over several tokens appears once it is whole, at a constant cost per
token, and the deltas of a stream joined are the whole. Lone surrogates, which no tokenizer accepts, become U+FFFD.

Not supported: tokenizers that cannot be undone token by token (WordPiece and the like); UnsupportedError names them.
"""

import codecs
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Protocol

from specdec.errors import LoadError, MissingExtraError, RequestError, UnsupportedError

Messages = Sequence[Mapping[str, Any]]

_BYTE_TOKEN = re.compile(r"<0x[0-9A-Fa-f]{2}>")
_SPACE = "▁"  # U+2581, how sentencepiece writes a space


class Chat(Protocol):
    """A chat template."""

    def pieces(
        self, messages: Messages, specials: Mapping[str, Any], *, add_generation_prompt: bool
    ) -> Sequence[tuple[str, bool]]:
        """The prompt in order; True where special tokens in a piece are control, False where they are text.

        `specials`: the special tokens (`tokenizers.AddedToken`) by their text.
        """
        ...


class TokenDecoder:
    """Token ids to text, a token at a time, never half a character."""

    def __init__(self, token_bytes: Callable[[int], bytes], *, strip: bool = False) -> None:
        self._bytes = token_bytes
        self._strip = strip
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """Text that became complete with this token; may be empty."""
        data = self._bytes(token)
        if self._strip and data:
            data = data.removeprefix(b" ")
            self._strip = False
        return self._utf8.decode(data)

    def flush(self) -> str:
        """What is left, unfinished characters as U+FFFD."""
        return self._utf8.decode(b"", final=True)


class Tokenizer:
    """A `tokenizer.json` at work.

    `definition` is that file's text. `add_bos` None leaves it to the file whether a text begins with the BOS token.
    `chat` is the model's chat template.
    """

    def __init__(
        self,
        definition: str,
        *,
        bos_token: str | None = None,
        add_bos: bool | None = None,
        chat: Chat | None = None,
    ) -> None:
        self._definition = definition
        self._backend = _backend(definition, special_is_text=True)
        added = self._backend.get_added_tokens_decoder()
        self._specials: dict[str, Any] = {token.content: token for token in added.values() if token.special}
        self._special_ids = frozenset(index for index, token in added.items() if token.special)
        self._to_bytes, self._strips = _inverse(self._backend.decoder)
        self._known: dict[int, bytes] = {}
        self._chat = chat
        self.bos_id: int | None = None if bos_token is None else self._backend.token_to_id(bos_token)
        self._prefix = self._find_prefix(add_bos)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of what every id stands for: equal for tokenizers that give the same ids the same meaning."""
        digest = hashlib.sha256()
        for token, index in sorted(self._backend.get_vocab(True).items(), key=lambda item: item[1]):
            digest.update(f"{index}\0{token}\0".encode())
        return digest.hexdigest()

    @cached_property
    def vocab_size(self) -> int:
        """One more than the largest id that stands for something."""
        return 1 + max(self._backend.get_vocab(True).values(), default=-1)

    @property
    def has_chat_template(self) -> bool:
        """Whether `apply_chat_template` can be called."""
        return self._chat is not None

    def token_id(self, token: str) -> int | None:
        """The id of a token by its exact spelling in the vocabulary."""
        index: int | None = self._backend.token_to_id(token)
        return index

    def encode(self, text: str, *, add_bos: bool = True) -> list[int]:
        """Text to ids; special-token text typed by a user stays text, lone surrogates become U+FFFD."""
        ids = _ids(self._backend, text)
        return [*self._prefix, *ids] if add_bos else ids

    def decode(self, ids: Iterable[int], *, continuation: bool = False) -> str:
        """Ids to text; special tokens and unknown ids are skipped.

        `continuation`: the ids follow others, so that the space sentencepiece puts before a first word is kept.
        """
        decoder = self.decoder(continuation=continuation)
        return "".join(map(decoder.push, ids)) + decoder.flush()

    def decoder(self, *, continuation: bool = True) -> TokenDecoder:
        """A fresh incremental decoder; its deltas joined are `decode(ids, continuation=…)`."""
        return TokenDecoder(self._text_bytes, strip=self._strips and not continuation)

    def piece(self, token: int) -> str:
        r"""One token as readable text, by itself: special ones by name, bytes that are no characters as \x escapes."""
        name = self._backend.id_to_token(token) if 0 <= token < 1 << 32 else None
        if name is None:
            return f"[{token}]"
        return name if token in self._special_ids else self._text_bytes(token).decode("utf-8", "backslashreplace")

    def apply_chat_template(self, messages: Messages, *, add_generation_prompt: bool = True) -> list[int]:
        """Messages to the ids of a prompt.

        The template's own special tokens are control; what messages contain is text, even where it spells one.
        """
        if self._chat is None:
            raise RequestError("this model has no chat template")
        ids: list[int] = []
        for text, control in self._chat.pieces(messages, self._specials, add_generation_prompt=add_generation_prompt):
            ids += _ids(self._control if control else self._backend, text)
        return ids

    @cached_property
    def _control(self) -> Any:
        """The tokenizer that does recognise special tokens in text; only for what a chat template wrote."""
        return _backend(self._definition, special_is_text=False)

    def _text_bytes(self, token: int) -> bytes:
        """What a token adds to the text; nothing where it is special or unknown."""
        known = self._known.get(token)
        if known is None:
            hidden = token in self._special_ids or not 0 <= token < 1 << 32
            name = None if hidden else self._backend.id_to_token(token)
            known = self._known[token] = b"" if name is None else self._to_bytes(name)
        return known

    def _find_prefix(self, add_bos: bool | None) -> list[int]:
        """Ids that every text begins with: as told, else as the tokenizer's own post-processing does."""
        if add_bos is not None:
            return [] if not add_bos or self.bos_id is None else [self.bos_id]
        body, whole = _ids(self._backend, "a"), _ids(self._backend, "a", add_special_tokens=True)
        starts = [start for start in range(len(whole)) if body and whole[start : start + len(body)] == body]
        return whole[: starts[0]] if starts else []


def clean(text: str) -> str:
    """Valid Unicode: surrogate pairs joined, lone surrogates replaced by U+FFFD; RequestError where it is no text."""
    if not isinstance(text, str):
        raise RequestError(f"a prompt must be text, not {type(text).__name__}")
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _ids(backend: Any, text: str, *, add_special_tokens: bool = False) -> list[int]:
    text = clean(text)
    with _failing("the tokenizer cannot encode this text"):
        return list(backend.encode(text, add_special_tokens=add_special_tokens).ids)


@contextmanager
def _failing(what: str) -> Iterator[None]:
    """LoadError for whatever the Rust library raises; its panics are no Exceptions."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise LoadError(f"{what}: {str(error)[:200]}") from error


def _backend(definition: str, *, special_is_text: bool) -> Any:
    try:
        from tokenizers import Tokenizer as Backend
    except ImportError as error:
        raise MissingExtraError("tokenizers", "models") from error
    with _failing("the tokenizer cannot be read"):
        backend = Backend.from_str(definition)
    backend.no_truncation()
    backend.no_padding()
    backend.encode_special_tokens = special_is_text
    return backend


def _inverse(decoder: Any) -> tuple[Callable[[str], bytes], bool]:
    """How a token's spelling becomes bytes, and whether a text's first space is sentencepiece's own."""
    whole: Any = {"type": "none"} if decoder is None else json.loads(decoder.__getstate__())
    steps = whole["decoders"] if whole["type"] == "Sequence" else [whole]
    kinds = [step["type"] for step in steps]
    if kinds == ["ByteLevel"]:
        return _from_byte_level, False
    spaced = any(step.get("replacement") == _SPACE or step.get("pattern") == {"String": _SPACE} for step in steps)
    if spaced and set(kinds) <= {"Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"}:
        strips = "Strip" in kinds or any(step.get("prepend_scheme", "never") != "never" for step in steps)
        return _from_sentencepiece, strips
    raise UnsupportedError(f"a tokenizer whose decoder is {', '.join(kinds)} is not supported")


def _from_byte_level(name: str) -> bytes:
    try:
        return bytes(_BYTE_OF[char] for char in name)
    except KeyError:
        return name.encode()


def _from_sentencepiece(name: str) -> bytes:
    if _BYTE_TOKEN.fullmatch(name):
        return bytes([int(name[3:5], 16)])
    return name.replace(_SPACE, " ").encode()


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's letters for the 256 bytes: printable ones stand for themselves, the others for U+0100 and up."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


_BYTE_OF = _byte_alphabet()
