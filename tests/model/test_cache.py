"""The KV cache is a list that can be cut: checks 13 to 15."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from specdec.errors import CacheError
from specdec.model import KVCache
from tests.model.random_models import llama_config, random_model

CONFIG = llama_config(50, 32, 2, 4, 2, 8, 32)
CAPACITY = 40
MODEL = random_model(llama_config(300, 64, 2, 4, 2, 16, 96))


class CacheMachine(RuleBasedStateMachine):
    """Random appends, cuts and resets against a Python list: equal bit for bit after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = KVCache(CONFIG, CAPACITY)
        self.model: list[np.ndarray] = []  # one (L, 2, G, D) entry for each token
        self.rng = np.random.default_rng(0)

    @rule(count=st.integers(1, 8))
    @precondition(lambda self: len(self.model) + 8 <= CAPACITY)
    def append(self, count: int) -> None:
        fresh = self.rng.standard_normal((count, 2, 2, 2, 8), dtype=np.float32)  # T, L, key or value, G, D
        for layer in range(2):
            self.cache.write(layer, fresh[:, layer, 0], fresh[:, layer, 1])
        self.cache.extend(count)
        self.model.extend(fresh)

    @rule(length=st.integers(0, CAPACITY + 5))
    def truncate(self, length: int) -> None:
        self.cache.truncate(length)
        del self.model[length:]

    @rule()
    def reset(self) -> None:
        self.cache.truncate(0)
        self.model.clear()

    @rule()
    @precondition(lambda self: len(self.model) + 8 > CAPACITY)
    def overfill(self) -> None:
        before = self.cache.keys.copy()
        with pytest.raises(CacheError):
            self.cache.room_for(CAPACITY + 1 - len(self.model))
        with pytest.raises(CacheError):
            self.cache.extend(CAPACITY + 1 - len(self.model))
        assert np.array_equal(before, self.cache.keys)

    @invariant()
    def holds_what_the_list_holds(self) -> None:
        length = len(self.model)
        assert self.cache.length == length
        if length:
            expected = np.stack(self.model)  # T, L, 2, G, D
            assert np.array_equal(self.cache.keys[..., :length], expected[:, :, 0].transpose(1, 2, 3, 0))
            assert np.array_equal(self.cache.values[:, :, :length], expected[:, :, 1].transpose(1, 2, 0, 3))


CacheMachine.TestCase.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
TestCacheAsAList = CacheMachine.TestCase


@pytest.mark.parametrize("length", [1, 63, 64, 65, 504])
def test_appending_and_cutting_back_leaves_no_trace(length: int) -> None:
    """k tokens appended and cut again, k = 0 … 8: the next logits equal a fresh cache's, bit for bit."""
    ids = np.random.default_rng(length).integers(0, 300, 512).tolist()
    fresh = MODEL.new_cache(512)
    MODEL.forward(ids[:length], fresh, logits=0)
    expected = MODEL.forward([7], fresh)
    cache = MODEL.new_cache(512)
    MODEL.forward(ids[:length], cache, logits=0)
    for count in range(1, 9):
        MODEL.forward(ids[-count:], cache)
        cache.truncate(length)
        assert np.array_equal(MODEL.forward([7], cache), expected)
        cache.truncate(length)


def test_cutting_at_or_beyond_the_length_does_nothing() -> None:
    """`truncate` is absolute and never grows a cache."""
    cache = MODEL.new_cache(20)
    MODEL.forward([1, 2, 3], cache)
    for length in (3, 4, 1000):
        cache.truncate(length)
        assert cache.length == 3


def test_a_negative_cut_is_an_error() -> None:
    """`truncate(-1)` must not mean "all but one"."""
    with pytest.raises(CacheError, match="-1"):
        MODEL.new_cache(20).truncate(-1)


def test_a_pass_that_does_not_fit_changes_nothing() -> None:
    """Appending past the capacity raises before it writes."""
    cache = MODEL.new_cache(4)
    MODEL.forward([1, 2, 3], cache)
    keys, values = cache.keys.copy(), cache.values.copy()
    with pytest.raises(CacheError, match="3 of 4"):
        MODEL.forward([4, 5], cache)
    assert cache.length == 3
    assert np.array_equal(keys, cache.keys)
    assert np.array_equal(values, cache.values)


def test_an_empty_cache_is_refused() -> None:
    """A cache without room cannot serve any pass; one with room for a single token can, in float32."""
    with pytest.raises(CacheError, match="not 0"):
        KVCache(CONFIG, 0)
    cache = KVCache(CONFIG, 1)
    assert cache.keys.dtype == cache.values.dtype == np.float32
