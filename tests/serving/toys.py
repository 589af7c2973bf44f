"""Models of a few words that count: after word i they say word i + 1. Small enough to know every answer by heart."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

WORDS = ("zero", " one", " two", " three", " four", " five", " six", " seven")


class ToyCache:
    """Remembers the tokens themselves."""

    def __init__(self) -> None:
        self.tokens: list[int] = []

    @property
    def length(self) -> int:
        return len(self.tokens)

    def truncate(self, length: int) -> None:
        del self.tokens[length:]


@dataclass
class ToyNetwork:
    """Logit 8 for the following word, 0 elsewhere. `errs` makes it name the word after that on every errs-th token.

    `gate`, where given, must be set for each pass to go on; `passes` counts them.
    """

    vocab_size: int
    errs: int = 0
    context_length: int = 4_096
    bit_exact: bool = True
    gate: threading.Event | None = None
    passes: int = 0
    entered: threading.Event = field(default_factory=threading.Event)

    def new_cache(self, capacity: int) -> ToyCache:
        return ToyCache()

    def forward(
        self, tokens: Sequence[int], cache: ToyCache, *, logits: int | None = None, exact: bool = True
    ) -> NDArray[np.float32]:
        self.passes += 1
        self.entered.set()
        if self.gate is not None and not self.gate.wait(30):
            raise TimeoutError("the test forgot to open the gate")
        cache.tokens.extend(tokens)
        first = cache.length - len(tokens)
        rows = np.zeros((len(tokens), self.vocab_size), np.float32)
        for row, token in enumerate(tokens):
            step = 2 if self.errs and (first + row) % self.errs == 0 else 1
            rows[row, (token + step) % self.vocab_size] = 8.0
        return rows[len(tokens) - (len(tokens) if logits is None else logits) :]


class ToyDecoder:
    """Every token is whole text."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words

    def push(self, token: int) -> str:
        return self.words[token]

    def flush(self) -> str:
        return ""


@dataclass
class ToyCodec:
    """Reads any prompt as word 0, and `#i` at its end as word i; says the words of its list."""

    words: Sequence[str] = WORDS
    has_chat_template: bool = False

    @property
    def fingerprint(self) -> str:
        return f"toy {self.words}"

    @property
    def vocab_size(self) -> int:
        return len(self.words)

    @property
    def bos_id(self) -> int | None:
        return None

    def encode(self, text: str, *, add_bos: bool = True) -> list[int]:
        return [int(text.rpartition("#")[2]) if "#" in text[-2:] else 0]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.words[token] for token in ids)

    def piece(self, token: int) -> str:
        return self.words[token]

    def decoder(self) -> ToyDecoder:
        return ToyDecoder(self.words)

    def apply_chat_template(
        self, messages: Sequence[dict[str, str]], *, add_generation_prompt: bool = True
    ) -> list[int]:
        return [len(messages)]


@dataclass
class Toy:
    """A `Model` of toys."""

    name: str
    network: ToyNetwork
    tokenizer: ToyCodec
    eos_ids: frozenset[int] = frozenset()


def toy(name: str, errs: int = 0, words: Sequence[str] = WORDS, gate: threading.Event | None = None) -> Toy:
    """A counting model; `errs` as in ToyNetwork."""
    return Toy(name, ToyNetwork(len(words), errs, gate=gate), ToyCodec(words))


def load_toy(name: str) -> Toy:
    """The loader of a service of toys: `draft…` errs on every third token."""
    return toy(name, errs=3 if name.startswith("draft") else 0)
