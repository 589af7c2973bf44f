"""The forward pass: T new tokens behind a cache, one way for plain decoding, verification and prefill.

T tokens fed, M rows run (T, or 2 where a lone token is run twice), C width, H query heads, G kv heads, D head dim,
V vocabulary.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from specdec.config import ModelConfig
from specdec.errors import ContextError, RequestError
from specdec.model import gpt2, llama
from specdec.model.attention import attend
from specdec.model.blocks import Block
from specdec.model.cache import KVCache
from specdec.model.kernels import lone_row_runs, touch_buffers
from specdec.model.operations import F32
from specdec.model.rotary import C64, rotate
from specdec.model.selftest import windows_equal_rows
from specdec.model.weights import Weights
from specdec.model.window import Window, passes, plan
from specdec.model.workers import Workers


class Transformer:
    """A decoder-only language model in float32; stateless, so that requests share it and each keeps its own cache.

    `threads` is the number of cores that big matrix products are split over; None takes all there are.
    """

    def __init__(self, config: ModelConfig, weights: Weights, *, threads: int | None = None) -> None:
        family = gpt2 if config.family == "gpt2" else llama
        self.config = config
        self._stack = family.build(config, weights, Workers(threads))
        touch_buffers(self._stack.workers.threads)
        self._eps = np.float32(config.norm_eps)

    @property
    def vocab_size(self) -> int:
        """V: number of logits a row has."""
        return self.config.vocab_size

    @property
    def context_length(self) -> int:
        """Most tokens a cache may hold."""
        return self.config.context_length

    @cached_property
    def bit_exact(self) -> bool:
        """Whether this machine's arithmetic gives a row the same bits in a window as alone."""
        block = self._stack.blocks[0]
        return windows_equal_rows(
            [block.qkv, block.output, block.up, block.down, self._stack.head], self.config.head_dim
        )

    def new_cache(self, capacity: int) -> KVCache:
        """An empty cache for `capacity` tokens; ContextError beyond the model's context."""
        if capacity > self.context_length:
            raise ContextError(f"{capacity} tokens do not fit the model's context of {self.context_length}")
        if self._stack.rotary is not None:
            self._stack.rotary.reserve(capacity)
        return KVCache(self.config, capacity)

    def forward(self, tokens: Sequence[int], cache: KVCache, *, logits: int | None = None, exact: bool = True) -> F32:
        """Feed T ≥ 1 tokens behind what `cache` holds and extend it by T.

        Returns the logits of the last `logits` rows, (logits, V); of all T where None; 0 skips the output layer.
        Up to 16 tokens are a window: with `exact` each of its rows has the bits it would have alone. More are
        prefilled in passes of bounded memory. RequestError on an id outside the vocabulary, CacheError where the
        cache is full; neither changes the cache.
        """
        ids = [int(token) for token in tokens]
        self._check(ids, cache)
        first_wanted = 0 if logits is None else max(0, len(ids) - logits)
        parts = []
        for part in passes(len(ids)):
            rows = max(0, part.stop - max(part.start, first_wanted))
            parts.append(self._pass(ids[part], cache, rows, exact))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _check(self, ids: list[int], cache: KVCache) -> None:
        if not ids:
            raise RequestError("a forward pass needs at least one token")
        if min(ids) < 0 or max(ids) >= self.vocab_size:
            wrong = next(i for i in ids if not 0 <= i < self.vocab_size)
            raise RequestError(f"token id {wrong} lies outside the vocabulary of {self.vocab_size}")
        cache.room_for(len(ids))

    def _pass(self, ids: list[int], cache: KVCache, rows: int, exact: bool) -> F32:
        """One pass over T tokens; logits of the last `rows`, (rows, V)."""
        window = plan(cache.length, len(ids), exact=exact)
        x = self._stack.embed(ids, window.positions)  # (T, C)
        if window.rows > window.tokens:
            x = np.repeat(x, window.rows, axis=0)
        rotary = self._stack.rotary
        factors = None if rotary is None else rotary.factors(window.positions)
        for layer, block in enumerate(self._stack.blocks):
            queries = self._project(x, block, layer, cache, window, factors)
            if rows == 0 and layer == self.config.num_layers - 1:
                break  # nobody reads the last layer's rows
            x += block.output(attend(queries, cache, layer, window, self._stack.workers))
            inner = block.up(self._stack.norm(x, self._eps))
            x += block.down(self._stack.activate(inner, block.down.inputs))
        cache.extend(window.tokens)
        return self._output(x, window, rows)

    def _project(self, x: F32, block: Block, layer: int, cache: KVCache, window: Window, factors: C64 | None) -> F32:
        """A layer's queries of the residual stream x, [M, C] -> [M, H, D]; its keys and values go into the cache."""
        config = self.config
        heads = block.qkv(self._stack.norm(x, self._eps)).reshape(window.rows, -1, config.head_dim)  # (M, H + 2G, D)
        rotated = config.num_heads + config.num_kv_heads
        if factors is not None:
            rotate(heads[:, :rotated], factors)
        new = heads[: window.tokens]
        cache.write(layer, new[:, config.num_heads : rotated], new[:, rotated:])
        queries: F32 = heads[:, : config.num_heads]
        return queries

    def _output(self, x: F32, window: Window, rows: int) -> F32:
        """Logits of the last `rows` tokens."""
        if rows == 0:
            return np.empty((0, self.vocab_size), np.float32)
        last = x[window.tokens - rows : window.tokens]
        if rows == 1:
            last = np.repeat(last, lone_row_runs(), axis=0)
        logits: F32 = self._stack.logits(last, self._eps)[:rows]
        return logits
