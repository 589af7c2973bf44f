"""A prefix cache spares passes and changes no bit."""

import gc
import weakref
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from specdec.checkpoints import load_model
from specdec.errors import CacheError, RequestError
from specdec.model import KVCache, PrefixCache, Transformer
from specdec.model.window import PREFILL_CHUNK
from tests.decoding.tiny import tiny

CHUNK = PREFILL_CHUNK
PLENTY = 1_000_000_000
LENGTHS = {  # of the common beginning, and of what is behind it
    "tiny": list(product((0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 17), (1, 16, 17, CHUNK))),
    "bundled": [(CHUNK - 1, 17), (CHUNK, 1), (CHUNK + 1, 16), (200, 100), (2 * CHUNK, 30)],
}


@pytest.fixture(scope="module")
def networks() -> dict[str, Transformer]:
    """A tiny Llama, and the bundled target of 4 × 256 on both cores."""
    return {"tiny": tiny(1).network, "bundled": load_model("specdec-target-4x256", threads=2).network}


def ids(network: Transformer, count: int, seed: int = 0) -> list[int]:
    """A prompt at random."""
    return np.random.default_rng(seed).integers(0, network.vocab_size, count).tolist()


def after(network: Transformer, prompt: Sequence[int], prefixes: PrefixCache | None, exact: bool) -> list[np.ndarray]:
    """What a run begins from: keys and values of a prompt, and the logits of a lone row and of a window behind it."""
    cache = network.new_cache(len(prompt) + 8)
    if prefixes is None:
        network.forward(prompt, cache, logits=0, exact=exact)
    else:
        prefixes.read(network, prompt, cache, exact=exact)
    held = cache.copy(0, len(prompt))
    lone = network.forward([1], cache, exact=exact)
    return [*held, lone, network.forward([2, 3, 4, 5], cache, exact=exact)]


def equal(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    """Bit for bit."""
    return all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", ["tiny", "bundled"])
def test_a_warm_prompt_has_the_bits_of_a_cold_one(networks: dict[str, Transformer], name: str, exact: bool):
    """Keys, values and logits, with common beginnings and ends of lengths around every border."""
    network = networks[name]
    known, prefixes = ids(network, 2 * CHUNK + 40), PrefixCache(PLENTY)
    after(network, known, prefixes, exact)
    for common, behind in LENGTHS[name]:
        prompt = known[:common] + ids(network, behind, seed=1_000 * common + behind)
        spared = prefixes.stats().hit_tokens
        assert equal(after(network, prompt, prefixes, exact), after(network, prompt, None, exact)), (common, behind)
        assert prefixes.stats().hit_tokens - spared == common // CHUNK * CHUNK, (common, behind)


@pytest.mark.parametrize("threads", [1, 2])
def test_passes_of_several_chunks_have_the_bits_of_shorter_ones(threads: int):
    """A warm prompt's passes begin and end elsewhere than a cold one's; with matrices that threads share, too."""
    network = tiny(1, context=2048, width=256, threads=threads).network
    known = ids(network, 11 * CHUNK)
    for common, behind in ((CHUNK, 600), (3 * CHUNK, 5 * CHUNK), (4 * CHUNK, 17), (5 * CHUNK, 4 * CHUNK + 16)):
        prefixes, prompt = PrefixCache(PLENTY), known[:common] + ids(network, behind, seed=common)
        after(network, known[:common], prefixes, exact=True)
        assert equal(after(network, prompt, prefixes, exact=True), after(network, prompt, None, exact=True)), common
        assert prefixes.stats().hit_tokens == common


def test_exact_or_not_reads_the_same_chunks(networks: dict[str, Transformer]):
    """A chunk kept by a run without the promise serves one with it, to the bit."""
    network = networks["bundled"]
    prefixes, prompt = PrefixCache(PLENTY), ids(network, CHUNK + 30)
    after(network, prompt, prefixes, exact=False)
    assert equal(after(network, prompt, prefixes, exact=True), after(network, prompt, None, exact=True))
    assert prefixes.stats().hits == 1


def test_only_what_is_new_is_computed(monkeypatch: pytest.MonkeyPatch):
    """Rows that go through the network: all of a prompt at first, then those behind the kept chunks."""
    network, rows = tiny(1).network, []
    forward = network.forward
    monkeypatch.setattr(
        network, "forward", lambda tokens, *a, **kw: rows.append(len(tokens)) or forward(tokens, *a, **kw)
    )
    prefixes, prompt = PrefixCache(PLENTY), ids(network, 3 * CHUNK + 9)
    for length in (2 * CHUNK + 50, 3 * CHUNK + 9, 3 * CHUNK):
        prefixes.read(network, prompt[:length], network.new_cache(length))
    assert rows == [2 * CHUNK + 50, CHUNK + 9], "the third prompt needs no pass at all"


def test_models_do_not_share():
    """Same tokens, same shapes, other weights: nothing is found."""
    one, other = tiny(1).network, tiny(2).network
    prefixes, prompt = PrefixCache(PLENTY), ids(one, CHUNK + 1)
    after(one, prompt, prefixes, exact=True)
    assert equal(after(other, prompt, prefixes, exact=True), after(other, prompt, None, exact=True))
    assert prefixes.stats().hits == 0
    assert prefixes.stats().chunks == 2


def test_a_chunk_is_found_behind_its_own_beginning_only():
    """The same 128 tokens behind other ones are other keys and values."""
    network = tiny(1).network
    first, second, third = (ids(network, CHUNK, seed) for seed in range(3))
    prefixes = PrefixCache(PLENTY)
    after(network, first + second, prefixes, exact=True)
    for prompt in (third + second, second + first, second):
        assert equal(after(network, prompt, prefixes, exact=True), after(network, prompt, None, exact=True))
    assert prefixes.stats().hit_tokens == CHUNK, "`second` alone, which `second + first` had left"


def test_bytes_are_bounded_and_counted():
    """At every moment no more than the budget; a prompt that does not fit is kept as far as it does."""
    network = tiny(1).network
    size = network.new_cache(1).bytes_of(CHUNK)
    prefixes = PrefixCache(3 * size + size // 2)
    for seed in range(6):
        prefixes.read(network, ids(network, CHUNK * (seed % 4 + 1), seed), network.new_cache(512))
        stats = prefixes.stats()
        assert stats.bytes == stats.chunks * size == sum(chunk.nbytes for chunk in prefixes._chunks.values())
        assert stats.bytes <= 3 * size
    long = ids(network, 4 * CHUNK)
    prefixes.read(network, long, network.new_cache(512))
    assert prefixes.read(network, long, network.new_cache(512)) == 3 * CHUNK
    assert PrefixCache(size - 1).read(network, long, network.new_cache(512)) == 0


def test_ends_go_before_beginnings_and_old_before_new():
    """The least recently used prompt loses its last chunk first."""
    network = tiny(1).network
    prefixes = PrefixCache(4 * network.new_cache(1).bytes_of(CHUNK))
    old, new, third = (ids(network, 2 * CHUNK, seed) for seed in range(3))

    def spared(prompt: list[int]) -> int:
        return prefixes.read(network, prompt, network.new_cache(512))

    assert [spared(old), spared(new), spared(old), spared(third[:CHUNK])] == [0, 0, 2 * CHUNK, 0]
    assert prefixes.stats().evictions == 1
    assert [spared(old), spared(new[: CHUNK + 5])] == [2 * CHUNK, CHUNK], "`new` lost its end"


def test_what_is_kept_cannot_be_written_to_and_is_nobodys_cache():
    """A run's later tokens, and its cuts, stay its own."""
    network = tiny(1).network
    prefixes, prompt = PrefixCache(PLENTY), ids(network, CHUNK + 3)
    cache = network.new_cache(512)
    prefixes.read(network, prompt, cache)
    chunk = next(iter(prefixes._chunks.values()))
    assert not np.shares_memory(chunk.keys, cache.keys)
    assert not np.shares_memory(chunk.values, cache.values)
    with pytest.raises(ValueError, match="read-only"):
        chunk.keys[:] = 0
    cache.truncate(0)
    network.forward(ids(network, 40, seed=9), cache)
    assert equal(after(network, prompt, prefixes, exact=True), after(network, prompt, None, exact=True))


def test_what_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch):
    """A pass that raises half-way through a prompt, a token that does not exist, a prompt that does not fit."""
    network = tiny(1).network
    prefixes, prompt = PrefixCache(PLENTY), ids(network, 3 * CHUNK + 9)
    run_pass, calls = network._pass, []

    def failing(*args: object) -> np.ndarray:
        calls.append(1)
        if len(calls) == 2:
            raise MemoryError
        return run_pass(*args)

    monkeypatch.setattr(network, "_pass", failing)
    with pytest.raises(MemoryError):
        prefixes.read(network, prompt, network.new_cache(512))
    with pytest.raises(RequestError):
        prefixes.read(network, [*prompt, network.vocab_size], network.new_cache(512))
    with pytest.raises(CacheError):
        prefixes.read(network, prompt, network.new_cache(2 * CHUNK))
    assert prefixes.stats().chunks == 0
    assert equal(after(network, prompt, prefixes, exact=True), after(network, prompt, None, exact=True))


def test_a_cache_that_holds_something_is_only_fed():
    """What lies behind other tokens is no beginning."""
    network = tiny(1).network
    prefixes, prompt = PrefixCache(PLENTY), ids(network, CHUNK)
    cache = network.new_cache(512)
    network.forward([1], cache)
    assert prefixes.read(network, prompt, cache) == 0
    assert cache.length == CHUNK + 1
    assert prefixes.stats().chunks == prefixes.stats().queries == 0


def test_a_model_that_goes_takes_its_chunks_along():
    """Told so, at once; and nothing here keeps a model alive."""
    gone, stays = tiny(1).network, tiny(2).network
    prefixes, prompt = PrefixCache(PLENTY), ids(stays, CHUNK)
    for network in (gone, stays):
        prefixes.read(network, prompt, network.new_cache(512))
    alive = weakref.ref(gone)
    prefixes.forget(gone)
    assert prefixes.stats().chunks == 1
    assert prefixes.read(stays, prompt, stays.new_cache(512)) == CHUNK
    prefixes.read(gone, prompt, gone.new_cache(512))
    del gone, network
    gc.collect()
    assert alive() is None


def test_copies_are_bounded_by_the_cache():
    """`append` refuses what does not fit, and changes nothing then."""
    network = tiny(1).network
    full = network.new_cache(64)
    network.forward(ids(network, 40), full)
    small = network.new_cache(30)
    with pytest.raises(CacheError):
        small.append(*full.copy(0, 40))
    assert isinstance(small, KVCache)
    assert small.length == 0
    assert not small.keys.any()
