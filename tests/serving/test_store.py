"""Which models stay in memory: promises of the store."""

import threading
import time

import pytest

from specdec.errors import MemoryLimitError, NotFoundError
from specdec.serving import ModelStore
from tests.serving.toys import Toy, toy


class Loads:
    """A loader that counts, and may be slow or short of memory."""

    def __init__(self, seconds: float = 0.0, room: int = 100) -> None:
        self.names: list[str] = []
        self.seconds = seconds
        self.room = room

    def __call__(self, name: str) -> Toy:
        time.sleep(self.seconds)
        self.names.append(name)
        if name == "missing":
            raise NotFoundError("there is no model 'missing'")
        return toy(name)


def test_a_model_is_loaded_once():
    """The second request for a name gets the very same object."""
    loads = Loads()
    store = ModelStore(loads, 10, lambda model: 1)
    assert store.get("a") is store.get("a")
    assert loads.names == ["a"]


def test_the_least_recently_used_goes_first():
    """With room for two, a third pushes out the one that was used longest ago, not the oldest."""
    loads = Loads()
    store = ModelStore(loads, 2, lambda model: 1)
    for name in ("a", "b", "a", "c"):
        store.get(name)
    assert store.names == ("a", "c")
    store.get("b")
    assert loads.names == ["a", "b", "c", "b"]


def test_bytes_decide_not_counts():
    """One large model pushes out as many small ones as it takes."""
    sizes = {"small": 1, "other": 1, "large": 9}
    store = ModelStore(Loads(), 10, lambda model: sizes[model.name])
    for name in ("small", "other", "large"):
        store.get(name)
    assert store.names == ("other", "large")


def test_a_model_larger_than_the_budget_is_still_served():
    """The one that was asked for stays, alone."""
    store = ModelStore(Loads(), 1, lambda model: 5)
    store.get("a")
    assert store.get("b").name == "b"
    assert store.names == ("b",)


def test_threads_that_ask_at_once_share_one_load():
    """Eight threads, one slow load, one object."""
    loads = Loads(seconds=0.05)
    store = ModelStore(loads, 10, lambda model: 1)
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(store.get("a"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert loads.names == ["a"]
    assert len(found) == 8
    assert len({id(model) for model in found}) == 1


def test_a_failed_load_leaves_no_trace():
    """The error is the loader's own, and what was kept is still there."""
    store = ModelStore(Loads(), 10, lambda model: 1)
    store.get("a")
    with pytest.raises(NotFoundError, match="missing"):
        store.get("missing")
    assert store.names == ("a",)


def test_memory_is_made_where_it_is_short():
    """A load that would not fit is tried once more with nothing else in memory; alone and too large, it fails."""

    def loader(name: str) -> Toy:
        if name == "large" and store.names:
            raise MemoryLimitError("large needs 8 GB, 4 GB are free")
        if name == "huge":
            raise MemoryLimitError("huge needs 80 GB, 8 GB are free")
        return toy(name)

    store = ModelStore(loader, 10, lambda model: 1)
    store.get("a")
    store.get("large")
    assert store.names == ("large",)
    with pytest.raises(MemoryLimitError, match="80 GB"):
        store.get("huge")


def test_models_asked_for_together_stay_together():
    """A pair beyond the budget is loaded once, not for every request, and neither pushes the other out."""
    loads = Loads()
    store = ModelStore(loads, 3, lambda model: 2)
    for _ in range(3):
        assert [model.name for model in store.get_all("target", "draft")] == ["target", "draft"]
    assert loads.names == ["target", "draft"]
    store.get("other")
    assert store.names == ("other",)


def test_who_holds_on_to_a_model_is_told_before_it_goes():
    """`on_evict` comes before the loader is asked once more, so that memory is free by then."""
    told: list[str] = []
    tries: list[str] = []

    def load(name: str) -> Toy:
        tries.append(name)
        if name == "b" and not told:
            raise MemoryLimitError("too little memory for b")
        return toy(name)

    store = ModelStore(load, 10, lambda model: 1, lambda model: told.append(model.name))
    store.get("a")
    store.get("b")
    assert told == ["a"]
    assert tries == ["a", "b", "b"]
    assert store.names == ("b",)
