"""Causal attention with grouped query heads (Vaswani et al. 2017; Ainslie et al. 2023), without copying keys or values.

M rows, H query heads in G groups that share a kv head, D head dim, E the values' padded one, S keys.
"""

from functools import cache

import numpy as np

from specdec.model import kernels
from specdec.model.cache import KVCache
from specdec.model.kernels import MAX_WINDOW, SMALL_PRODUCT, lone_row_runs
from specdec.model.operations import F32, softmax_unnormalised
from specdec.model.window import Segment, Window
from specdec.model.workers import Workers


def attend(queries: F32, kv: KVCache, layer: int, window: Window, workers: Workers) -> F32:
    """Attention of M scaled queries over the cache, the window's own keys included. [M, H, D] -> [M, H·D]"""
    rows, heads, dim = queries.shape
    out = np.empty((rows, heads, kv.values.shape[-1]), np.float32)  # (M, H, E)
    if rows > MAX_WINDOW:
        workers.run(lambda part: _attend_heads(queries, out, kv, layer, window, part), heads)
    else:
        _attend_rows(queries, out, kv, layer, window)
    return out[:, :, :dim].reshape(rows, heads * dim)


def _attend_heads(queries: F32, out: F32, kv: KVCache, layer: int, window: Window, part: slice) -> None:
    """Fill some heads of `out` for the many rows of a prefill, as ordinary products."""
    shared = queries.shape[1] // kv.keys.shape[1]
    for head in range(part.start, part.stop):
        keys, values = kv.keys[layer, head // shared], kv.values[layer, head // shared]  # (D, S), (S, E)
        for segment in window.segments:
            scores = queries[segment.rows, head] @ keys[:, : segment.keys]
            scores[:, segment.mask_from :] += segment.mask
            sums = softmax_unnormalised(scores)
            result = np.matmul(scores, values[: segment.keys], out=out[segment.rows, head])
            result /= sums


def _attend_rows(queries: F32, out: F32, kv: KVCache, layer: int, window: Window) -> None:
    """Fill `out` for the few rows of a window, each with the bits it has alone."""
    for segment in window.segments:
        part = segment.rows
        if part.stop - part.start == 1 and len(out) > 1:  # a lone row among others: run it as any lone row
            same = np.repeat(queries[part], lone_row_runs(), axis=0)
            out[part] = _attend_segment(same, np.empty((len(same), *out.shape[1:]), np.float32), kv, layer, segment)[:1]
        else:
            _attend_segment(queries[part], out[part], kv, layer, segment)


def _attend_segment(queries: F32, out: F32, kv: KVCache, layer: int, segment: Segment) -> F32:
    """Fill `out`, (M, H, E), with the attention of `queries`, (M, H, D)."""
    keys, values = kv.keys[layer][:, None], kv.values[layer][:, None]  # (G, 1, D, S), (G, 1, S, E)
    by_head = _by_head(queries, keys.shape[0])  # (G, H/G, M, D)
    result = _by_head(out, keys.shape[0])  # a view of `out`
    chunks = key_chunks(segment.keys, queries.shape[-1])
    scores = np.empty((*by_head.shape[:-1], segment.keys), np.float32)  # (G, H/G, M, S)
    for chunk in chunks:
        kernels.product(by_head, keys[..., chunk], scores[..., chunk])
    scores[..., segment.mask_from :] += segment.mask
    sums = softmax_unnormalised(scores)
    kernels.product(scores[..., chunks[0]], values[:, :, chunks[0]], result)
    for chunk in chunks[1:]:
        more = np.empty_like(result)
        kernels.product(scores[..., chunk], values[:, :, chunk], more)
        result += more
    result /= sums
    return out


def _by_head(rows: F32, groups: int) -> F32:
    """(M, H, …) -> (G, H/G, M, …), a view."""
    count, heads, width = rows.shape
    return rows.reshape(count, groups, heads // groups, width).transpose(1, 2, 0, 3)


@cache
def key_chunks(keys: int, head_dim: int) -> list[slice]:
    """Runs of keys short enough for the small-matrix kernels with any window of rows."""
    size = max(64, SMALL_PRODUCT // (MAX_WINDOW * head_dim) // 64 * 64)
    return [slice(start, min(start + size, keys)) for start in range(0, keys, size)]
