"""Models that are tables: small enough to know every answer, strict enough to notice every mistake.

A `ToyNetwork` looks up its logits by a state that folds the whole text (`hashed`), or is the last token (`markov`), or
the position (`scripted`). Its cache holds those states, so that a stale, missing or doubled token changes the answer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from specdec.config import SamplingParams
from specdec.decoding import Drafted, Engine
from specdec.errors import CacheError
from specdec.records import Finished, Record, Round

Step = Callable[[int, int, int], int]  # state before, token, position -> state


class ToyCache:
    """States of the tokens seen; refuses to hold more than its capacity."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.states: list[int] = []
        self.longest = 0

    @property
    def length(self) -> int:
        return len(self.states)

    def truncate(self, length: int) -> None:
        if length < 0:
            raise CacheError(f"cannot cut to {length}")
        del self.states[length:]


@dataclass
class ToyNetwork:
    """Logits from a table, (states, V). Counts its passes; `feeds` lists how many tokens each was given."""

    table: NDArray[np.floating]
    step: Step
    context_length: int = 1_000_000
    bit_exact: bool = True
    feeds: list[int] = field(default_factory=list)
    caches: list[ToyCache] = field(default_factory=list)
    keep_caches: bool = False

    @property
    def vocab_size(self) -> int:
        return self.table.shape[1]

    @property
    def passes(self) -> int:
        return len(self.feeds)

    def new_cache(self, capacity: int) -> ToyCache:
        assert 1 <= capacity <= self.context_length, "no cache beyond the context"
        cache = ToyCache(capacity)
        if self.keep_caches:
            self.caches.append(cache)
        return cache

    def forward(
        self, tokens: Sequence[int], cache: ToyCache, *, logits: int | None = None, exact: bool = True
    ) -> NDArray[np.floating]:
        assert len(tokens) > 0, "a pass over nothing"
        if cache.length + len(tokens) > cache.capacity:
            raise CacheError(f"{len(tokens)} more do not fit behind {cache.length} of {cache.capacity}")
        self.feeds.append(len(tokens))
        states = cache.states
        for token in tokens:
            assert 0 <= token < self.vocab_size, f"token {token} fed to a vocabulary of {self.vocab_size}"
            states.append(self.step(states[-1] if states else 0, token, len(states)))
        cache.longest = max(cache.longest, len(states))
        rows = len(tokens) if logits is None else min(logits, len(tokens))
        return self.table[states[len(states) - rows :]]


@dataclass(frozen=True)
class Toy:
    """A `Model` of toys."""

    network: ToyNetwork
    name: str = "toy"
    tokenizer: "ToyCodec | None" = None
    eos_ids: frozenset[int] = frozenset()


def hashed(seed: int, vocab: int = 16, states: int = 509, scale: float = 2.0, **options: object) -> Toy:
    """A random model whose answer depends on every token of the text."""
    table = np.random.default_rng(seed).normal(0, scale, (states, vocab)).astype(np.float32)
    return Toy(ToyNetwork(table, lambda state, token, _: (state * 31 + token + 7) % states), **options)


def noisy_copy(model: Toy, seed: int, noise: float) -> Toy:
    """A drafter for `model`: the same states, logits disturbed."""
    table = model.network.table
    disturbed = table + np.random.default_rng(seed).normal(0, noise, table.shape)
    return Toy(ToyNetwork(disturbed.astype(table.dtype), model.network.step), "noisy copy", model.tokenizer)


def markov(probabilities: NDArray[np.floating], **options: object) -> Toy:
    """Row `last token` of `probabilities`, (V, V), is the law of the next."""
    with np.errstate(divide="ignore"):
        table = np.log(probabilities)
    return Toy(ToyNetwork(table, lambda state, token, _: token), **options)


def scripted(script: Sequence[int], vocab: int, **options: object) -> Toy:
    """Says `script[i]` at position i of the text (a prompt's positions included), whatever was said before."""
    table = np.zeros((len(script), vocab), np.float32)
    table[np.arange(len(script) - 1), list(script[1:])] = 9
    return Toy(ToyNetwork(table, lambda state, token, position: position), **options)


class ToyCodec:
    """Token i is `words[i]`, bytes that need not be whole characters."""

    def __init__(self, words: Sequence[str | bytes], bos: int | None = None, hidden: Sequence[int] = ()) -> None:
        self.words = [word.encode() if isinstance(word, str) else word for word in words]
        self.bos = bos
        self.hidden = frozenset(hidden)

    @property
    def fingerprint(self) -> str:
        return repr(self.words)

    def encode(self, text: str, *, add_bos: bool = True) -> list[int]:
        ids, left = [] if self.bos is None or not add_bos else [self.bos], text.encode()
        while left:
            index = max((i for i, word in enumerate(self.words) if word and left.startswith(word)), key=self._size)
            ids.append(index)
            left = left[len(self.words[index]) :]
        return ids

    def piece(self, token: int) -> str:
        return self.words[token].decode("utf-8", "backslashreplace")

    def decoder(self) -> "ToyDecoder":
        return ToyDecoder(self)

    def _size(self, index: int) -> int:
        return len(self.words[index])


class ToyDecoder:
    """Text as soon as its last byte is there."""

    def __init__(self, codec: ToyCodec) -> None:
        import codecs

        self.codec = codec
        self.bytes = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        return "" if token in self.codec.hidden else self.bytes.decode(self.codec.words[token])

    def flush(self) -> str:
        return self.bytes.decode(b"", final=True)


@dataclass
class ToyDrafter:
    """Drafts by calling `proposal(tokens, k)`; drafter and session in one. Remembers what it was asked."""

    proposal: Callable[[list[int], int], object]
    num_speculative_tokens: int = 4
    name: str = "toy drafter"
    context_length: int | None = None
    cache_length: int | None = None
    asked: list[tuple[int, int]] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)

    def start(self, target: object, params: SamplingParams, seed: int, capacity: int) -> "ToyDrafter":
        return self

    def prefill(self, prompt: Sequence[int], reader: object = None) -> None:
        return None

    def propose(self, tokens: Sequence[int], k: int) -> Drafted:
        self.asked.append((len(tokens), k))
        drafted = self.proposal(list(tokens), k)
        return drafted if isinstance(drafted, Drafted) else Drafted(tuple(drafted))  # type: ignore[call-overload]

    def truncate(self, length: int) -> None:
        self.cuts.append(length)


def from_script(script: Sequence[int], k: int = 4, wrong: Sequence[int] = (), vocab: int = 0) -> ToyDrafter:
    """Drafts the script's own tokens, but for positions in `wrong`, where it is off by one."""

    def proposal(tokens: list[int], count: int) -> list[int]:
        positions = range(len(tokens), min(len(tokens) + count, len(script)))
        return [(script[i] + 1) % vocab if i in wrong else script[i] for i in positions]

    return ToyDrafter(proposal, k)


def rounds_of(records: Sequence[Record] | Iterator[Record]) -> list[Round]:
    return [record for record in records if isinstance(record, Round)]


def ids_of(engine: Engine, *args: object, **kwargs: object) -> tuple[int, ...]:
    """The tokens of a run."""
    *_, last = engine.stream(*args, **kwargs)  # type: ignore[arg-type]
    assert isinstance(last, Finished)
    return last.ids
