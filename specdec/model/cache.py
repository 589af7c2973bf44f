"""Keys and values of the tokens seen so far, in arrays allocated once; forgetting is a change of `length`.

L layers, G kv heads, D head dim, E head dim rounded up, S capacity. What lies behind `length` is stale but finite:
attention gives it the weight 0, and finite · 0 = 0.
"""

import numpy as np

from specdec.config import ModelConfig
from specdec.errors import CacheError
from specdec.model.operations import F32

KEY_BUCKET = 64  # attention runs over key counts rounded up to this
VALUE_BUCKET = 4  # ... and gives values of a width rounded up to this, for the sake of equal bits


class KVCache:
    """A cache for `capacity` tokens: `keys` (L, G, D, S), as queries need them, `values` (L, G, S, E)."""

    def __init__(self, config: ModelConfig, capacity: int) -> None:
        if capacity < 1:
            raise CacheError(f"a KV cache needs room for at least one token, not {capacity}")
        layers, heads, dim = config.num_layers, config.num_kv_heads, config.head_dim
        padded, wide = (-(-size // unit) * unit for size, unit in ((capacity, KEY_BUCKET), (dim, VALUE_BUCKET)))
        self.capacity = capacity
        self.keys: F32 = np.zeros((layers, heads, dim, padded), np.float32)
        self.values: F32 = np.zeros((layers, heads, padded, wide), np.float32)
        self._length = 0

    @property
    def length(self) -> int:
        """Tokens held."""
        return self._length

    def room_for(self, count: int) -> None:
        """Raise CacheError unless `count` more tokens fit."""
        if self._length + count > self.capacity:
            raise CacheError(f"the KV cache holds {self._length} of {self.capacity} tokens: {count} more do not fit")

    def write(self, layer: int, keys: F32, values: F32) -> None:
        """Store a layer's keys and values, (T, G, D) each, behind `length`, which `extend` then moves."""
        end = self._length + keys.shape[0]
        self.keys[layer, :, :, self._length : end] = keys.transpose(1, 2, 0)
        self.values[layer, :, self._length : end, : values.shape[-1]] = values.transpose(1, 0, 2)

    def extend(self, count: int) -> None:
        """Count `count` tokens, written in all layers, as held."""
        self.room_for(count)
        self._length += count

    def copy(self, start: int, end: int) -> tuple[F32, F32]:
        """Keys, (L, G, D, T), and values, (L, G, T, E), of tokens `start` … `end` − 1, as copies to be read only."""
        copies = self.keys[..., start:end].copy(), self.values[:, :, start:end].copy()
        for array in copies:
            array.setflags(write=False)
        return copies

    def bytes_of(self, count: int) -> int:
        """Bytes of a copy of `count` tokens."""
        layers, heads, dim, _ = self.keys.shape
        return int(layers * heads * (dim + self.values.shape[-1]) * count * self.keys.itemsize)

    def append(self, keys: F32, values: F32) -> None:
        """Take in what `copy` gave, behind what is held; CacheError where it does not fit."""
        start, count = self._length, keys.shape[-1]
        self.extend(count)
        self.keys[..., start : start + count] = keys
        self.values[:, :, start : start + count] = values

    def truncate(self, length: int) -> None:
        """Forget all behind `length` (absolute); no-op where it is shorter. O(1)."""
        if length < 0:
            raise CacheError(f"a KV cache cannot be cut to {length} tokens")
        self._length = min(self._length, length)
