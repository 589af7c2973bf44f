"""The transformer in NumPy: float32, a preallocated KV cache, and windows of rows that equal single rows bit for bit.

Reading order: operations, linear, cache, rotary, window, attention, llama and gpt2 (checkpoint names to blocks),
transformer (the forward pass), prefixes (prompts read before), selftest.
"""

from specdec.model.cache import KVCache
from specdec.model.prefixes import PrefixCache, PrefixStats
from specdec.model.transformer import Transformer

__all__ = ["KVCache", "PrefixCache", "PrefixStats", "Transformer"]
