"""Conversations over a service that remembers what was read: as over one that does not, to the bit, with less work."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.decoding import Engine, ModelDrafter, NgramDrafter
from specdec.model import PrefixCache
from specdec.model.window import PREFILL_CHUNK
from specdec.records import Record, Round, Started
from specdec.serving import GenerationRequest, Service, Settings
from specdec.trace import Trace
from tests.serving.conversing import load_talker, turn
from tests.source_tree import ROOT

LONG = "Once upon a time there was a little girl who asked the same long question again and again. " * 2


def service_of(megabytes: int = 64, **changes: Any) -> Service:
    """Talkers behind a door."""
    return Service(Settings(prefix_cache_mb=megabytes, max_new_tokens=64, **changes), load_talker)


def run(service: Service, request: GenerationRequest) -> Trace:
    """All of a run."""
    return Trace.collect(service.stream(request))


def substance(records: tuple[Record, ...]) -> list[Record]:
    """What must not depend on what was read before: all but times, and how many tokens were spared."""
    timeless = {"draft_s": 0.0, "verify_s": 0.0, "sample_s": 0.0, "prefill_s": 0.0, "cached_tokens": 0}
    return [replace(record, **timeless) if isinstance(record, Round) else record for record in records]


def test_the_second_turn_reuses_the_first():
    """The whole chunks of what both turns begin with, told in the first round and in the statistics."""
    service = service_of()
    first = run(service, turn([LONG]))
    second = turn([LONG, first.text, "Why?"])
    warm, cold = run(service, second), run(service_of(), second)
    assert (first.stats.cached_tokens, cold.stats.cached_tokens) == (0, 0)
    assert warm.stats.cached_tokens == warm.rounds[0].cached_tokens == PREFILL_CHUNK
    assert not any(step.cached_tokens for step in warm.rounds[1:])
    assert substance(warm.records) == substance(cold.records)
    stats = service.prefixes.stats()
    assert (stats.queries, stats.hits) == (4, 2), "the target and the draft, each with keys and values of its own"


def test_fewer_rows_come_before_the_first_token(monkeypatch: pytest.MonkeyPatch):
    """What the time to the first token is made of: rows of target and draft until the first round."""
    service = service_of()
    rows: dict[int, int] = {1: 0, 2: 0}
    kind = type(load_talker("target").network)
    forward = kind.forward
    seen: list[int] = []

    def counting(self: Any, tokens: Any, *args: Any, **more: Any) -> Any:
        seen.append(len(tokens))
        return forward(self, tokens, *args, **more)

    monkeypatch.setattr(kind, "forward", counting)
    for turn_number in rows:
        seen.clear()
        with closing(service.stream(turn([LONG]))) as records:
            first = next(record for record in records if isinstance(record, Round))
        assert first.cached_tokens == (turn_number - 1) * PREFILL_CHUNK
        rows[turn_number] = sum(seen)
    assert rows[1] - rows[2] == 2 * PREFILL_CHUNK


@dataclass(frozen=True)
class Step:
    """One request of some conversation."""

    talk: int
    said: str
    target: str
    draft: str
    stop_after: int | None


STEPS = st.builds(
    Step,
    talk=st.integers(0, 2),
    said=st.sampled_from(["Why?", "Tell me. " * 12, LONG, "x" * 130]),
    target=st.sampled_from(["target", "other"]),
    draft=st.sampled_from(["none", "ngram", "draft"]),
    stop_after=st.sampled_from([None, None, 0, 1]),
)


@given(steps=st.lists(STEPS, min_size=2, max_size=7), chunks=st.integers(1, 6), exact=st.booleans())
@settings(max_examples=15)
def test_conversations_between_each_other_are_as_if_alone(steps: list[Step], chunks: int, exact: bool):
    """Turns of several talks with several models, some cut short, room for few chunks: every run has a cold one's bits.

    Log-probabilities are compared exactly, and they come from all logits of a row.
    """
    models = {name: load_talker(name) for name in ("target", "draft", "other")}
    budget = chunks * models["target"].network.new_cache(1).bytes_of(PREFILL_CHUNK)
    prefixes = PrefixCache(budget)
    drafters = {"none": None, "ngram": NgramDrafter(), "draft": ModelDrafter(models["draft"])}
    talks = [LONG, LONG + "!", "z" * 100]
    for seed, step in enumerate(steps):
        prompt = (talks[step.talk] + step.said)[:480]
        drafter = drafters[step.draft]
        asked = (
            prompt,
            SamplingParams(temperature=seed % 2, max_tokens=8, seed=seed, logprobs=True),
            SpeculativeConfig(3, exact=exact),
        )
        cold = [*Engine(models[step.target], drafter).stream(*asked)]
        with closing(Engine(models[step.target], drafter).stream(*asked, prefixes)) as records:
            warm = [*_first(records, step.stop_after)]
        assert substance(tuple(warm)) == substance(tuple(cold[: len(warm)]))
        assert prefixes.stats().bytes <= budget
        talks[step.talk] = prompt + cold[-1].text  # type: ignore[union-attr]


def _first(records: Iterator[Record], rounds: int | None) -> Iterator[Record]:
    """A run, or as much of it as somebody waits for."""
    for index, record in enumerate(records):
        yield record
        if rounds is not None and index >= rounds:
            return


def test_a_draft_that_fails_midway_spoils_nothing(monkeypatch: pytest.MonkeyPatch):
    """Its prefill breaks off between two chunks: that costs drafts, and the next run has a fresh one's bits."""
    service, request = service_of(), turn([LONG + LONG])
    service.warm_up("target", "draft")
    network: Any = service._store.get("draft").network
    run_pass, passes = network._pass, []

    def failing(*args: Any) -> Any:
        passes.append(1)
        if len(passes) == 2:
            raise MemoryError("no room")
        return run_pass(*args)

    monkeypatch.setattr(network, "_pass", failing)
    broken = run(service, request)
    assert "no room" in broken.rounds[0].fault
    cold = run(service_of(), request)
    again = run(service, request)
    assert substance(again.records) == substance(cold.records)
    assert again.stats.cached_tokens == 2 * PREFILL_CHUNK


def test_a_cancelled_run_spoils_nothing():
    """Before its first round, and after it."""
    service, request = service_of(), turn([LONG])
    for rounds in (0, 1):
        asked = iter([False] * rounds + [True] * 9)
        assert [*service.stream(request, cancelled=lambda asked=asked: next(asked))]
        assert substance(run(service, request).records) == substance(run(service_of(), request).records)


def test_who_does_not_ask_reads_everything():
    """What measures (the page, the command line, the benchmark) finds nothing kept and leaves nothing."""
    service, request = service_of(), turn([LONG], reuse=False)
    run(service, turn([LONG]))
    before = service.prefixes.stats()
    assert run(service, request).stats.cached_tokens == 0
    engine, prompt = service.engine(turn([LONG]))
    assert engine.generate(prompt, SamplingParams(max_tokens=2)).stats.cached_tokens == 0
    assert service.prefixes.stats() == before
    assert not GenerationRequest("", "target").reuse
    asking = [path for path in (ROOT / "specdec").rglob("*.py") if "reuse=True" in path.read_text(encoding="utf-8")]
    assert asking == [ROOT / "specdec" / "serving" / "http" / "requests.py"]


def test_it_can_be_switched_off():
    """With 0 nothing is looked up or kept."""
    service = service_of(0)
    assert [run(service, turn([LONG])).stats.cached_tokens for _ in range(2)] == [0, 0]
    assert service.prefixes.stats().queries == service.prefixes.stats().bytes == 0


def test_a_model_that_leaves_memory_takes_what_it_read_along():
    """And when it comes back it reads anew: its weights may be others."""
    service = service_of(model_memory_mb=1)
    service._store._size_of = lambda model: 600_000
    run(service, turn([LONG], draft="none"))
    assert service.prefixes.stats().chunks == 1
    run(service, turn([LONG], target="other", draft="none"))
    assert service.prefixes.stats().chunks == 1, "that of the other model"
    assert run(service, turn([LONG], draft="none")).stats.cached_tokens == 0


def test_what_a_run_says_of_itself_stays():
    """A trace with spared tokens goes to JSON and back; one without does not mention them."""
    service = service_of()
    cold, warm = (run(service, turn([LONG])) for _ in range(2))
    assert Trace.from_json(warm.to_json()).rounds[0].cached_tokens == PREFILL_CHUNK
    assert "cached_tokens" not in cold.to_dict()["rounds"][0]
    assert isinstance(warm.started, Started)
    assert np.isfinite(warm.stats.ttft_s)
