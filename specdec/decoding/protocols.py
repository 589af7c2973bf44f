"""What decoding asks of the parts it is given. Tests satisfy these with tables; the real parts live further down.

T tokens fed, V vocabulary.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from specdec.config import Lookahead, SamplingParams

Floats = NDArray[np.floating]


class Cache(Protocol):
    """Keys and values of the tokens a network has seen."""

    @property
    def length(self) -> int:
        """Tokens held."""
        ...

    def truncate(self, length: int) -> None:
        """Forget all behind `length` (absolute); no-op where it is shorter; CacheError where negative. O(1)."""
        ...


class Network(Protocol):
    """A causal language model over token ids."""

    @property
    def vocab_size(self) -> int:
        """V: number of logits a row has."""
        ...

    @property
    def context_length(self) -> int:
        """Most tokens a cache may hold."""
        ...

    @property
    def bit_exact(self) -> bool:
        """Whether this machine's arithmetic passed the self-test of bitwise equal windows."""
        ...

    def new_cache(self, capacity: int) -> Cache:
        """An empty cache for `capacity` tokens."""
        ...

    def forward(
        self, tokens: Sequence[int], cache: Any, *, logits: int | None = None, exact: bool = True
    ) -> NDArray[np.float32]:
        """Feed T ≥ 1 tokens behind what `cache`, one of this network's own, holds and extend it by T.

        Returns logits of the last `logits` rows, (logits, V); all T where None; 0 skips the output layer.
        """
        ...


class Reader(Protocol):
    """How a network takes in a prompt: by passes alone, or with the help of what it has read before."""

    def read(self, network: Network, tokens: Sequence[int], cache: Any, *, exact: bool = True) -> int:
        """Feed T ≥ 1 tokens to an empty `cache`; how many of them needed no pass. Bits are those of passes alone."""
        ...


class ColdReader:
    """Reads everything, and remembers nothing."""

    def read(self, network: Network, tokens: Sequence[int], cache: Any, *, exact: bool = True) -> int:
        """One call of `forward`."""
        network.forward(tokens, cache, logits=0, exact=exact)
        return 0


COLD = ColdReader()


class TextDecoder(Protocol):
    """Token ids to text, a token at a time, never half a character."""

    def push(self, token: int) -> str:
        """Text that became complete with this token; may be empty."""
        ...

    def flush(self) -> str:
        """What is left, unfinished characters as U+FFFD."""
        ...


class Codec(Protocol):
    """The part of a tokenizer that decoding needs."""

    @property
    def fingerprint(self) -> str:
        """Equal for tokenizers that give the same ids the same meaning."""
        ...

    def encode(self, text: str, *, add_bos: bool = True) -> list[int]:
        """Text to ids; special-token text typed by a user stays text."""
        ...

    def piece(self, token: int) -> str:
        """One token as readable text, by itself."""
        ...

    def decoder(self) -> TextDecoder:
        """A fresh incremental decoder."""
        ...


class Model(Protocol):
    """A network with its tokenizer and the ids that end a text; `specdec.load_model` returns one."""

    @property
    def name(self) -> str:
        """What a user calls it."""
        ...

    @property
    def network(self) -> Network:
        """The numbers."""
        ...

    @property
    def tokenizer(self) -> Codec | None:
        """The words; None where only ids go in and out."""
        ...

    @property
    def eos_ids(self) -> frozenset[int]:
        """Ids that end a text."""
        ...


@runtime_checkable
class Draft(Protocol):
    """Tokens proposed for the next positions. `q` None means that each was chosen without chance (one-hot q)."""

    @property
    def tokens(self) -> tuple[int, ...]:
        """At most k proposals, in order; empty is legal."""
        ...

    @property
    def q(self) -> Floats | None:
        """(k, V) rows the tokens were drawn from, after all processing."""
        ...


class DraftSession(Protocol):
    """A drafter at work on one request; holds whatever state that needs."""

    @property
    def cache_length(self) -> int | None:
        """Tokens in the draft's cache; None where there is no cache."""
        ...

    @property
    def context_length(self) -> int | None:
        """Longest text it can propose for; None where it does not care."""
        ...

    def prefill(self, prompt: Sequence[int], reader: Reader) -> None:
        """Take in the prompt before the first round, so that the first draft costs no more than the others.

        A session with a network of its own reads by `reader`, which may know the prompt's beginning already.
        """
        ...

    def propose(self, tokens: Sequence[int], k: int) -> Draft:
        """Propose at most `k` ≥ 1 tokens to follow `tokens` (prompt and output so far)."""
        ...

    def truncate(self, length: int) -> None:
        """Forget all behind `length`; no-op where it is shorter."""
        ...


class Drafter(Protocol):
    """Whatever proposes tokens; shared by requests, holds no state of any."""

    @property
    def name(self) -> str:
        """What a user calls it."""
        ...

    @property
    def num_speculative_tokens(self) -> Lookahead:
        """Default lookahead k."""
        ...

    def start(self, target: Model, params: SamplingParams, seed: int, capacity: int) -> DraftSession:
        """Begin a request; VocabularyError where the two models do not share tokens."""
        ...
