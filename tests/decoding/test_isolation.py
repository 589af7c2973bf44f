"""Nothing of one request is left for the next: closed early, failed inside, or run two hundred times."""

import gc
import tracemalloc
import weakref
from collections.abc import Callable
from itertools import islice

import pytest

from specdec.config import SamplingParams
from specdec.decoding import Engine, ModelDrafter, NgramDrafter, verification
from specdec.decoding.lookahead import Timings
from specdec.records import Round
from tests.decoding.toys import Toy, ToyCache, hashed, ids_of, noisy_copy

SAMPLED = SamplingParams(temperature=1.0, seed=7, max_tokens=40, repetition_penalty=1.2, presence_penalty=0.5)
PROMPT, OTHER = [1, 2, 3], [9, 9, 8, 7]
DRAFTERS: dict[str, Callable[[Toy], object]] = {
    "none": lambda target: None,
    "model": lambda target: ModelDrafter(noisy_copy(target, 1, 0.8), 3),
    "n-gram": lambda target: NgramDrafter(3, min_ngram=1),
}


def engine(drafter: str) -> Engine:
    target = hashed(1)
    return Engine(target, DRAFTERS[drafter](target))  # type: ignore[arg-type]


@pytest.mark.parametrize("drafter", DRAFTERS)
@pytest.mark.parametrize("pulls", range(5))
def test_closing_at_any_record_leaves_the_engine_as_new(drafter: str, pulls: int) -> None:
    """Close before Started, after it, after each of three rounds: the next run equals a fresh engine's."""
    used = engine(drafter)
    run = used.stream(OTHER, SAMPLED)
    list(islice(run, pulls))
    run.close()
    assert ids_of(used, PROMPT, SAMPLED) == ids_of(engine(drafter), PROMPT, SAMPLED)


class BrokenError(Exception):
    """What the tests raise."""


@pytest.mark.parametrize("place", ["target.forward", "draft.forward", "verify", "new_cache", "truncate"])
def test_a_failure_inside_leaves_the_engine_as_new(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise in the target's pass, the draft's, the verdict, an allocation, a truncation, in the third round."""
    target = hashed(1)
    draft = noisy_copy(target, 1, 0.8)
    used = Engine(target, ModelDrafter(draft, 3))
    with monkeypatch.context() as patch:
        calls = iter(range(100))

        def failing(original: Callable) -> Callable:
            def method(*args: object, **options: object) -> object:
                if next(calls) >= 5 * (place != "new_cache"):
                    raise BrokenError(place)
                return original(*args, **options)

            return method

        owner, name = {
            "target.forward": (target.network, "forward"), "draft.forward": (draft.network, "forward"),
            "new_cache": (target.network, "new_cache"), "truncate": (ToyCache, "truncate"),
            "verify": (verification, "draw"),
        }[place]  # fmt: skip
        patch.setattr(owner, name, failing(getattr(owner, name)))
        params = SamplingParams(temperature=1.0, seed=1, max_tokens=40)
        if place == "draft.forward":
            assert len(ids_of(used, OTHER, params)) == 40, "a draft's failure is no failure of the request"
        else:
            with pytest.raises(BrokenError):
                ids_of(used, OTHER, params)
    fresh = Engine(hashed(1), ModelDrafter(noisy_copy(hashed(1), 1, 0.8), 3))
    assert ids_of(used, PROMPT, SAMPLED) == ids_of(fresh, PROMPT, SAMPLED)


def test_two_runs_at_once_do_not_mix() -> None:
    """Two generators of one engine pulled in turn: each gives what it gives alone."""
    for drafter in DRAFTERS:
        used = engine(drafter)
        one, two = used.stream(PROMPT, SAMPLED), used.stream(OTHER, SAMPLED)
        pulled: tuple[list[int], list[int]] = ([], [])
        for pair in zip(one, two, strict=False):
            for ids, record in zip(pulled, pair, strict=True):
                ids += [token.id for token in record.tokens] if isinstance(record, Round) else []
        for prompt, ids in zip((PROMPT, OTHER), pulled, strict=True):
            assert tuple(ids) == ids_of(engine(drafter), prompt, SAMPLED)[: len(ids)] and len(ids) > 20


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_two_hundred_requests_grow_nothing(drafter: str) -> None:
    """200 requests, every third closed early: 1 MiB of growth at most (32 allowed), all of it known tables aside."""
    used = engine(drafter)
    ids_of(used, PROMPT, SAMPLED)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for i in range(200):
            run = used.stream(PROMPT, SamplingParams(temperature=1.0, seed=i, max_tokens=6))
            list(islice(run, 2 if i % 3 == 0 else None))
            run.close()
        gc.collect()
        for model in (used.target, getattr(used.drafter, "model", None)):
            if model is not None:
                model.network.feeds.clear()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown <= 2**20


def test_a_closed_runs_caches_are_collected() -> None:
    """Target's and draft's cache are gone as soon as the generator is closed, without waiting for the collector."""
    target, draft = hashed(1), hashed(2)
    caches = []
    for model in (target, draft):
        original = model.network.new_cache

        def remember(capacity: int, original: Callable = original) -> ToyCache:
            cache = original(capacity)
            caches.append(weakref.ref(cache))
            return cache

        object.__setattr__(model.network, "new_cache", remember)
    run = Engine(target, ModelDrafter(draft)).stream(PROMPT)
    list(islice(run, 3))
    assert len(caches) == 2 and all(ref() is not None for ref in caches)
    run.close()
    del run
    assert [ref() for ref in caches] == [None, None]


def test_between_requests_an_engine_remembers_times_and_nothing_else() -> None:
    """The engine's whole state: the two parts it was made of, and seconds."""
    used = engine("model")
    ids_of(used, PROMPT, SAMPLED)
    assert vars(used).keys() == {"target", "drafter", "_timings"}
    assert isinstance(used._timings, Timings)
