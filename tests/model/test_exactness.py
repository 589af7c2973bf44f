"""A row of logits has the same bits alone, in any window, on any number of threads: the ground of losslessness."""

import os
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from specdec.config import ModelConfig
from specdec.model import PrefixCache, Transformer, kernels
from specdec.model.linear import Linear
from specdec.model.selftest import windows_equal_rows
from specdec.model.workers import Workers
from tests.model.random_models import gpt2_reference, llama_config, random_model, weights_of
from tests.model.test_parity import gpt2_config

SHAPES = {
    "draft 2 x 64": llama_config(4096, 64, 2, 2, 2, 32, 176),
    "target 4 x 256": llama_config(4096, 256, 4, 4, 4, 64, 688),
    "target 8 x 384": llama_config(4096, 384, 2, 6, 6, 64, 1024),
    "smollm2's matrices": llama_config(5000, 576, 2, 9, 3, 64, 1536),
    "wide: windows run in parts": llama_config(257, 1280, 1, 10, 2, 128, 640),
    "very wide inside: narrow panels": llama_config(257, 320, 1, 5, 1, 64, 5120),
    "odd sizes": llama_config(301, 72, 3, 6, 2, 12, 100),
}


@pytest.fixture(params=sorted({True, kernels.row_by_row}), autouse=True, scope="module")
def row_by_row(request: pytest.FixtureRequest) -> Iterator[None]:
    """Row by row, which any BLAS does, and the way this machine's takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "row_by_row", request.param)
        yield


@pytest.fixture(params=SHAPES, scope="module")
def model(request: pytest.FixtureRequest, row_by_row: None) -> Transformer:
    """Made anew for each way of multiplying: it remembers what its self-test found."""
    return random_model(SHAPES[request.param])


def one_at_a_time(model: Transformer, ids: list[int], prefix: int) -> np.ndarray:
    cache = model.new_cache(len(ids))
    model.forward(ids[:prefix], cache, logits=0)
    return np.concatenate([model.forward([token], cache) for token in ids[prefix:]])


def in_windows(model: Transformer, ids: list[int], prefix: int, size: int) -> np.ndarray:
    cache = model.new_cache(len(ids))
    model.forward(ids[:prefix], cache, logits=0)
    return np.concatenate([model.forward(ids[i : i + size], cache) for i in range(prefix, len(ids), size)])


@pytest.mark.parametrize("size", [2, 3, 5, 7, 9, 13, 16])
def test_windows_equal_single_rows_bit_for_bit(model: Transformer, size: int) -> None:
    """100 rows from position 40, across a border between key buckets: no bit differs."""
    assert model.bit_exact, "this machine's BLAS breaks the property: the promise would fall back to near-ties"
    ids = np.random.default_rng(size).integers(0, model.vocab_size, 140).tolist()
    assert np.array_equal(one_at_a_time(model, ids, 40), in_windows(model, ids, 40, size))


def test_rejected_rows_leave_no_trace(model: Transformer) -> None:
    """Windows whose tail is cut away again, as verification does, give the bits of plain decoding."""
    rng = np.random.default_rng(3)
    ids = rng.integers(0, model.vocab_size, 120).tolist()
    cache = model.new_cache(160)
    model.forward(ids[:50], cache, logits=0)
    rows, position = [], 50
    while position < 110:
        keep, extra = int(rng.integers(1, 6)), int(rng.integers(0, 6))
        junk = rng.integers(0, model.vocab_size, extra).tolist()
        rows.append(model.forward(ids[position : position + keep] + junk, cache)[:keep])
        position += keep
        cache.truncate(position)
    assert np.array_equal(np.concatenate(rows), one_at_a_time(model, ids, 50)[: position - 50])


def test_threads_do_not_change_a_bit() -> None:
    """Splitting panels over two threads gives the bits of one."""
    config = llama_config(20_000, 256, 2, 4, 4, 64, 4096)
    ids = np.random.default_rng(0).integers(0, config.vocab_size, 60).tolist()
    one, two = (in_windows(random_model(config, threads=threads), ids, 1, 5) for threads in (1, 2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize("head_dim", [2, 6, 18, 22, 34, 54, 72, 256, 512])
def test_heads_of_any_size_keep_the_promise(head_dim: int) -> None:
    """Also where a BLAS would take another kernel for the last columns of the values."""
    model = random_model(llama_config(70, 64, 2, 4, 2, head_dim, 96))
    assert model.bit_exact
    ids = np.random.default_rng(head_dim).integers(0, model.vocab_size, 140).tolist()
    assert np.array_equal(one_at_a_time(model, ids, 20), in_windows(model, ids, 20, 16))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_has_helpers_too() -> None:
    """Work shared in a child of a process that had shared work is done, not waited for."""
    workers = Workers(2)
    child = os.fork()
    if child == 0:
        seen: list[slice] = []
        workers.run(seen.append, 8)
        os._exit(len(seen))
    deadline = time.monotonic() + 20
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    if ended == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(ended[1]) == 2


def test_gpt2_windows_equal_single_rows() -> None:
    """The other family keeps the promise too."""
    model = Transformer(gpt2_config(), weights_of(gpt2_reference()), threads=1)
    ids = np.random.default_rng(5).integers(0, 300, 200).tolist()
    assert np.array_equal(one_at_a_time(model, ids, 20), in_windows(model, ids, 20, 5))


def test_gpt2_may_read_a_prompt_once() -> None:
    """Its positions lie in its embeddings: kept keys and values are at the right ones, to the bit."""
    model = Transformer(gpt2_config(), weights_of(gpt2_reference()), threads=1)
    ids = np.random.default_rng(6).integers(0, 300, 300).tolist()
    prefixes, ends = PrefixCache(1_000_000_000), []
    for spared in (0, 256):
        cache = model.new_cache(301)
        assert prefixes.read(model, ids, cache) == spared
        ends.append(model.forward([1], cache))
    assert np.array_equal(*ends)


def test_long_contexts_are_attended_in_runs_of_keys() -> None:
    """Beyond the keys that one small product takes, sums over runs of keys still give equal bits."""
    config = ModelConfig("llama", 300, 128, 1, 2, 1, 128, 128, 2048)
    model = random_model(config)
    ids = np.random.default_rng(6).integers(0, 300, 1300).tolist()
    assert np.array_equal(one_at_a_time(model, ids, 1200), in_windows(model, ids, 1200, 9))


def test_the_self_test_sees_a_broken_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product whose rows depend on their number is caught."""
    layer = random_model(llama_config(64, 64, 1, 2, 2, 32, 64))._stack.head
    assert windows_equal_rows([layer], 32)
    honest = kernels.product

    def rounding_with_rows(x: np.ndarray, matrix: np.ndarray, out: np.ndarray) -> None:
        honest(x, matrix, out)
        out *= np.float32(1 + 1e-7 * len(x))

    monkeypatch.setattr(kernels, "product", rounding_with_rows)
    assert not windows_equal_rows([layer], 32)


@pytest.mark.parametrize("inputs", [14_336, 21_000, 28_672, 40_000, 65_536])
def test_the_widest_matrices_keep_the_promise(inputs: int) -> None:
    """Up to the widest matrix that a configuration may ask for, every window has the bits of single rows."""
    weight = np.random.default_rng(inputs).standard_normal((8, inputs), dtype=np.float32)
    assert windows_equal_rows([Linear(weight, None, Workers(1))], 64)


@pytest.mark.parametrize("threads", [2, 9, 16])
def test_more_threads_than_panels_still_share_the_work(threads: int) -> None:
    """Work is cut into as many slices as there are threads or panels, whichever is less, and all of it is done."""
    seen: list[slice] = []
    Workers(threads).run(seen.append, 9)
    assert len(seen) == min(threads, 9)
    assert sorted(i for part in seen for i in range(part.start, part.stop)) == list(range(9))


@pytest.mark.parametrize(("length", "lead"), [(2, 5), (3, 1), (9, 2), (9, 40), (48, 3)])
def test_the_calling_thread_leads_and_nothing_is_left_out(length: int, lead: int) -> None:
    """It does up to `lead` items more than a helper, and leaves each helper at least one."""
    seen: list[slice] = []
    Workers(2).run(seen.append, length, lead)
    mine, other = sorted((part.start, part.stop) for part in seen)
    assert (mine[0], mine[1], other[1]) == (0, other[0], length)
    shares = mine[1], length - mine[1]
    assert shares[1] >= 1
    assert shares[0] - shares[1] in {min(lead, length - 2), min(lead, length - 2) - 1}


def test_without_the_promise_logits_stay_within_rounding(model: Transformer) -> None:
    """`exact=False` changes logits by rounding at most."""
    ids = np.random.default_rng(8).integers(0, model.vocab_size, 30).tolist()
    cache = model.new_cache(30)
    model.forward(ids[:1], cache, logits=0)
    loose = np.concatenate([model.forward([token], cache, exact=False) for token in ids[1:]])
    assert np.abs(loose - in_windows(model, ids, 1, 5)).max() < 1e-3


def test_a_helper_threads_error_reaches_the_caller() -> None:
    """What goes wrong in a helper is raised where the work was asked for, and the helper lives on."""
    workers = Workers(2)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            workers.run(lambda part: 1 // (part.start == 0), 4)


def test_helper_threads_leave_with_their_model() -> None:
    """Dropping the workers ends their threads."""
    before = set(threading.enumerate())
    workers = Workers(3)
    helpers = set(threading.enumerate()) - before
    assert len(helpers) == 2
    del workers
    for helper in helpers:
        helper.join(timeout=5)
        assert not helper.is_alive()
