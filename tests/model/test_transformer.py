"""What a pass returns, what it refuses, and that it stays in float32 and in bounded memory."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec.errors import ContextError, LoadError, RequestError
from specdec.model import Transformer
from specdec.model.kernels import MAX_WINDOW
from specdec.model.window import PREFILL_CHUNK, PREFILL_PASS, passes
from tests.model.random_models import RandomWeights, gpt2_reference, llama_config, random_model, weights_of
from tests.model.test_parity import gpt2_config

CONFIG = llama_config(300, 64, 2, 4, 2, 16, 96)
MODEL = random_model(CONFIG)
OBJECTS = 64  # bytes of what is no array's content, for each token fed


@pytest.mark.parametrize("count", [1, 5, 16, 17, 127, 128, 129, 300])
@pytest.mark.parametrize("wanted", [None, 0, 1, 3])
def test_only_the_rows_asked_for(count: int, wanted: int | None) -> None:
    """`logits` rows come back, the last ones, whatever the number of chunks."""
    ids = np.random.default_rng(count).integers(0, 300, count).tolist()
    everything = MODEL.forward(ids, MODEL.new_cache(count))
    cache = MODEL.new_cache(count)
    rows = MODEL.forward(ids, cache, logits=wanted)
    expected = count if wanted is None else min(wanted, count)
    assert cache.length == count
    assert rows.shape == (expected, 300)
    assert np.allclose(rows, everything[count - expected :], atol=1e-4)


def test_a_long_prompt_is_prefilled_in_bounded_memory() -> None:
    """Peak allocation of a prefill does not grow with the prompt: two passes cost what four cost."""
    model = random_model(replace(CONFIG, context_length=4 * PREFILL_PASS))
    peaks = []
    for count in (2, 4):
        ids = np.zeros(count * PREFILL_PASS - 1, np.int64).tolist()
        cache = model.new_cache(4 * PREFILL_PASS)
        tracemalloc.start()
        model.forward(ids, cache, logits=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    more_keys = 2 * PREFILL_CHUNK * 2 * PREFILL_PASS * 4  # of a head on each of two threads: rows x keys x bytes
    assert peaks[1] <= peaks[0] + more_keys + OBJECTS * len(ids)


@given(st.integers(1, 5_000))
def test_passes_cover_a_feed_in_whole_chunks(count: int) -> None:
    """In order, none too long, each but the last of whole chunks; what is left of them is a window alone if it can."""
    parts = passes(count)
    assert [row for part in parts for row in range(count)[part]] == list(range(count))
    assert all(0 < part.stop - part.start <= PREFILL_PASS for part in parts)
    assert all(part.start % PREFILL_CHUNK == 0 for part in parts)
    rest = count % PREFILL_CHUNK
    assert (0 < rest <= MAX_WINDOW) == (parts[-1].stop - parts[-1].start <= MAX_WINDOW)


@pytest.mark.parametrize("count", [1, 5, 40, 600])
def test_what_nobody_reads_changes_nothing_in_the_cache(count: int) -> None:
    """Without logits the last layer ends with its keys and values: the same as with logits, bit for bit."""
    model = random_model(replace(CONFIG, context_length=1024))
    ids = np.random.default_rng(count).integers(0, 300, count).tolist()
    read, unread = (model.new_cache(count) for _ in range(2))
    model.forward(ids, read, logits=1)
    assert model.forward(ids, unread, logits=0).shape == (0, 300)
    for one, other in zip(read.copy(0, count), unread.copy(0, count), strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("wrong", [-1, 300, 10**9])
def test_ids_outside_the_vocabulary_are_refused(wrong: int) -> None:
    """Negative ids do not wrap around, and the cache keeps its state."""
    cache = MODEL.new_cache(10)
    with pytest.raises(RequestError, match=str(wrong)):
        MODEL.forward([1, wrong], cache)
    assert cache.length == 0


def test_an_empty_feed_is_refused() -> None:
    """There is no pass over no tokens."""
    with pytest.raises(RequestError):
        MODEL.forward([], MODEL.new_cache(10))


def test_a_cache_beyond_the_context_is_refused() -> None:
    """Both numbers are in the message."""
    with pytest.raises(ContextError, match=r"513.*512"):
        MODEL.new_cache(513)


class FloatsOnly(np.ndarray):
    """An array that fails the test as soon as an operation on it makes a float64 or complex128 array."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        plain = [np.asarray(value) if isinstance(value, FloatsOnly) else value for value in inputs]
        target = None if out is None else tuple(np.asarray(value) for value in out)
        result = getattr(ufunc, method)(*plain, **({"out": target} if target else {}), **kwargs)
        assert result.dtype not in (np.float64, np.complex128), f"{ufunc.__name__} made {result.dtype}"
        return out[0] if out is not None else result.view(FloatsOnly)


@pytest.mark.parametrize("count", [1, 5, 40])
def test_no_float64_anywhere_in_a_pass(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every intermediate array of a pass, watched, is float32 or complex64; so are cache, tables and masks."""
    for model in (MODEL, Transformer(gpt2_config(), weights_of(gpt2_reference()), threads=1)):
        watched = []
        embed = model._stack.__class__.embed

        def spy(stack, tokens, positions, embed=embed, watched=watched):
            x = embed(stack, tokens, positions).view(FloatsOnly)
            watched.append(x)
            return x

        with monkeypatch.context() as patch:
            patch.setattr(model._stack.__class__, "embed", spy)
            cache = model.new_cache(64)
            logits = model.forward(list(range(count)), cache)
        assert watched
        assert logits.dtype == np.float32
        assert cache.keys.dtype == cache.values.dtype == np.float32
    assert MODEL._stack.rotary.factors(slice(0, 3)).dtype == np.complex64


def test_a_missing_tensor_is_named() -> None:
    """A checkpoint without a tensor says which."""

    class Holed(RandomWeights):
        def __contains__(self, name: str) -> bool:
            return name != "model.layers.1.mlp.up_proj.weight"

    with pytest.raises(LoadError, match=r"layers\.1\.mlp\.up_proj"):
        Transformer(CONFIG, Holed(CONFIG))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(value: float) -> None:
    """NaN weights are found when loading, not in the middle of an answer."""

    class Poisoned(RandomWeights):
        def __getitem__(self, name: str) -> np.ndarray:
            tensor = super().__getitem__(name)
            if name == "model.layers.0.self_attn.o_proj.weight":
                tensor[3, 4] = value
            return tensor

    with pytest.raises(LoadError, match=r"o_proj.*finite"):
        Transformer(CONFIG, Poisoned(CONFIG))


def test_a_tensor_of_another_shape_is_named() -> None:
    """Wrong shapes are refused with both shapes."""

    class Bent(RandomWeights):
        def __getitem__(self, name: str) -> np.ndarray:
            tensor = super().__getitem__(name)
            return tensor[:-1] if name == "model.embed_tokens.weight" else tensor

    with pytest.raises(LoadError, match=r"embed_tokens.*\[299, 64\].*\[300, 64\]"):
        Transformer(CONFIG, Bent(CONFIG))


def test_requests_do_not_share_state() -> None:
    """Two caches of one model, fed in turn, equal each fed alone."""
    left, right = MODEL.new_cache(20), MODEL.new_cache(20)
    rows = [(MODEL.forward([i], left), MODEL.forward([i + 50], right))[0] for i in range(10)]
    alone = MODEL.new_cache(20)
    expected = [MODEL.forward([i], alone) for i in range(10)]
    assert np.array_equal(np.concatenate(rows), np.concatenate(expected))
