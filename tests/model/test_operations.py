"""How many operations and bytes a pass takes: what would make it slower on any machine, found without timing it."""

import gc
import resource
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from specdec import Engine, ModelDrafter, SamplingParams
from specdec.config import ModelConfig
from specdec.records import Round
from tests.decoding.tiny import tiny
from tests.model.random_models import llama_config, random_model

HELD = 40  # tokens in the cache before a pass
UFUNCS_OF_A_LAYER, CALLS_OF_A_LAYER = 20, 60
VECTORS = 5  # of a layer's width that a row may need at once
OBJECTS = 8_000  # bytes of what is no array's content
make_empty = np.empty


class Counting(np.ndarray):
    """An array that counts the ufuncs called on it and on all that comes of it."""

    ufuncs = 0

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        Counting.ufuncs += 1
        plain = [value.view(np.ndarray) if isinstance(value, Counting) else value for value in inputs]
        target = {} if out is None else {"out": tuple(value.view(np.ndarray) for value in out)}
        result = getattr(ufunc, method)(*plain, **target, **kwargs)
        return out[0] if out is not None else result.view(Counting)


def resident_bytes() -> int:
    """Memory of this process that is in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def ready(config: ModelConfig, rows: int) -> Callable[[], object]:
    """A pass over `rows` tokens behind others; one like it has been made before."""
    model, ids = random_model(config), list(range(rows))
    cache = model.new_cache(128)
    model.forward(list(range(HELD)), cache, logits=0)
    model.forward(ids, cache)
    cache.truncate(HELD)
    return lambda: model.forward(ids, cache)


def ufuncs(config: ModelConfig, rows: int) -> int:
    """Array operations of a pass: every array that it makes counts what is done to it."""
    act, before = ready(config, rows), Counting.ufuncs
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "empty", lambda *args, **kwargs: make_empty(*args, **kwargs).view(Counting))
        act()
    return Counting.ufuncs - before


def calls(config: ModelConfig, rows: int) -> int:
    """Calls of compiled functions and methods in a pass: views, copies, new arrays; ufuncs are not among them."""
    act, seen = ready(config, rows), []

    def see(frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call":
            seen.append(function.__name__)

    sys.setprofile(see)
    try:
        act()
    finally:
        sys.setprofile(None)
    return len(seen)


def shape(layers: int = 2, heads: int = 4, kv: int = 2) -> ModelConfig:
    """A small Llama."""
    return llama_config(300, 64, layers, heads, kv, 16, 96)


@pytest.mark.parametrize("count", [ufuncs, calls])
def test_no_loop_over_rows_or_heads(count: Callable[[ModelConfig, int], int]) -> None:
    """A window of 16 tokens takes as many operations as one of 2, and 16 heads as many as 2; a lone token no more."""
    assert count(shape(), 2) == count(shape(), 5) == count(shape(), 16) <= count(shape(), 1)
    assert count(shape(heads=2, kv=1), 5) == count(shape(heads=16, kv=4), 5)


def test_a_layer_takes_few_operations() -> None:
    """In a pass, by the difference that a third layer makes: 19 array operations and 54 calls when this was written."""
    for rows in (1, 5):
        assert ufuncs(shape(3), rows) - ufuncs(shape(2), rows) <= UFUNCS_OF_A_LAYER
        assert calls(shape(3), rows) - calls(shape(2), rows) <= CALLS_OF_A_LAYER


def test_a_pass_allocates_no_more_than_its_widest_layer_and_its_logits() -> None:
    """Nothing of the size of a weight matrix or of the cache; more layers need no more, each frees what it made."""
    peaks = []
    for layers in (2, 6):
        act = ready(shape(layers), 5)
        tracemalloc.start()
        try:
            act()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    widest = max((4 + 2 * 2) * 16, 2 * 96, 64)  # qkv, gate and up, residual stream
    assert max(peaks) <= 5 * 4 * (VECTORS * widest + 300) + OBJECTS
    assert abs(peaks[1] - peaks[0]) <= OBJECTS


def test_ten_thousand_tokens_grow_nothing() -> None:
    """After requests of 10,000 tokens in all as many objects are alive as after the first, to 100, and no more memory
    is in use, to 1 MB."""
    engine = Engine(tiny(1), ModelDrafter(tiny(2), 3))
    params = SamplingParams(temperature=0.8, seed=1, max_tokens=400, ignore_eos=True)
    objects, emitted = [], 0
    for _ in range(25):
        for record in engine.stream([1, 2, 3], params):
            emitted += len(record.tokens) if isinstance(record, Round) else 0
        gc.collect()
        objects.append(sys.getallocatedblocks())
        if len(objects) == 1:
            before = resident_bytes()
    assert emitted == 10_000
    assert objects[-1] - objects[1] <= 100
    assert resident_bytes() - before <= 1_000_000
