"""Keys and values of prompts that were read before, so that a conversation's next turn reads only what is new.

Kept and reused are whole prefill chunks only, cut where every cold run cuts them: chunk i holds the tokens C·i …
C·(i + 1) − 1, was computed in a pass over exactly these behind exactly the same ones, and what follows is fed in the
very passes of a cold run. So a warm run has a cold one's bits by construction; what decoding wrote is never kept. See
docs/decisions/0007-prefix-cache.md.

C rows of a prefill chunk.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from specdec.model.cache import KVCache
from specdec.model.operations import F32
from specdec.model.window import PREFILL_CHUNK

Key = tuple[int, tuple[int, ...]]  # serial of the chunk before, or of the network; the chunk's own tokens


@dataclass(frozen=True, slots=True)
class Chunk:
    """What C tokens left in a cache, a copy that nobody writes to. `root` is the serial of their network."""

    serial: int
    root: int
    keys: F32  # (L, G, D, C)
    values: F32  # (L, G, C, E)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.keys.nbytes + self.values.nbytes


@dataclass(frozen=True, slots=True)
class PrefixStats:
    """Prompts looked up, those of which a beginning was found; their tokens; chunks let go; what is held now."""

    queries: int = 0
    hits: int = 0
    query_tokens: int = 0
    hit_tokens: int = 0
    evictions: int = 0
    chunks: int = 0
    bytes: int = 0


class PrefixCache:
    """Chunks of prompts, the most recently used ones, as far as they fit `budget` bytes. Safe between threads.

    Chunks are found by their network, the object itself, and every token from the first on; nothing is hashed alone.
    Each use counts as one of all chunks before it, so that the first to go is always an end, never a beginning.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._serials = count()
        self._roots: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # a network's serial; keeps no model alive
        self._chunks: OrderedDict[Key, Chunk] = OrderedDict()  # the least recently used first
        self._counts = {"queries": 0, "hits": 0, "query_tokens": 0, "hit_tokens": 0, "evictions": 0}
        self._bytes = 0

    def read(self, network: Any, tokens: Sequence[int], cache: Any, *, exact: bool = True) -> int:
        """Bring T ≥ 1 tokens into an empty `cache` of `network`: what is kept as copies, the rest by its passes.

        Returns how many tokens it was spared. A cache of another kind, or one that holds something, is fed as it is.
        Whatever `forward` raises; nothing is kept then.
        """
        if not isinstance(cache, KVCache) or cache.length:
            network.forward(tokens, cache, logits=0, exact=exact)
            return 0
        cache.room_for(len(tokens))
        ids = tuple(map(int, tokens))
        for chunk in self._find(network, ids):
            cache.append(chunk.keys, chunk.values)
        spared = cache.length
        if spared < len(ids):
            network.forward(ids[spared:], cache, logits=0, exact=exact)
        self._keep(network, ids, cache)
        return spared

    def forget(self, network: Any) -> None:
        """Drop all that belongs to a network whose model is let go."""
        with self._lock:
            root = self._roots.pop(network, None)
            for key in [key for key, chunk in self._chunks.items() if chunk.root == root]:
                self._drop(key)

    def stats(self) -> PrefixStats:
        """Counts since the beginning, and what is held."""
        with self._lock:
            return PrefixStats(**self._counts, chunks=len(self._chunks), bytes=self._bytes)

    def _find(self, network: Any, ids: tuple[int, ...]) -> list[Chunk]:
        """The longest run of kept chunks that the prompt begins with."""
        with self._lock:
            keys: list[Key] = []
            parent = self._root(network)
            for part in _whole_chunks(ids):
                if (parent, part) not in self._chunks:
                    break
                keys.append((parent, part))
                parent = self._chunks[parent, part].serial
            self._use(keys)
            found = len(keys) * PREFILL_CHUNK
            self._count(queries=1, hits=bool(keys), query_tokens=len(ids), hit_tokens=found)
            return [self._chunks[key] for key in keys]

    def _keep(self, network: Any, ids: tuple[int, ...], cache: KVCache) -> None:
        """Copy what is not there yet of a prompt that `cache` has just taken in, as far as it fits."""
        with self._lock:
            keys: list[Key] = []
            root = parent = self._root(network)
            for index, part in enumerate(_whole_chunks(ids)):
                key = (parent, part)
                if key not in self._chunks:
                    start = index * PREFILL_CHUNK
                    if not self._make_room(cache.bytes_of(PREFILL_CHUNK), keys):
                        break
                    copies = cache.copy(start, start + PREFILL_CHUNK)
                    self._chunks[key] = chunk = Chunk(next(self._serials), root, *copies)
                    self._bytes += chunk.nbytes
                keys.append(key)
                parent = self._chunks[key].serial
            self._use(keys)

    def _root(self, network: Any) -> int:
        if network not in self._roots:
            self._roots[network] = next(self._serials)
        return self._roots[network]

    def _use(self, keys: list[Key]) -> None:
        """Count a prompt's chunks as used, the first one last."""
        for key in reversed(keys):
            self._chunks.move_to_end(key)

    def _make_room(self, size: int, keep: list[Key]) -> bool:
        """Let the least recently used chunks go until `size` bytes fit; False where that would take one of `keep`."""
        while self._bytes + size > self._budget:
            oldest = next(iter(self._chunks), None)
            if oldest is None or oldest in keep:
                return False
            self._drop(oldest)
            self._count(evictions=1)
        return True

    def _drop(self, key: Key) -> None:
        self._bytes -= self._chunks.pop(key).nbytes

    def _count(self, **more: int) -> None:
        for name, number in more.items():
            self._counts[name] += number


def _whole_chunks(ids: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The prompt's chunks of C tokens, without a shorter one at its end."""
    ends = range(PREFILL_CHUNK, len(ids) + 1, PREFILL_CHUNK)
    return [ids[end - PREFILL_CHUNK : end] for end in ends]
