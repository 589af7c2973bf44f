"""Drafting that is measured to lose is paused, for whoever left the lookahead to the service, and for nobody else."""

import time
from collections.abc import Sequence

import pytest

from specdec.config import Lookahead, SamplingParams, SpeculativeConfig
from specdec.records import Record, Round, Started
from specdec.serving import GenerationRequest, Service
from tests.decoding.toys import ToyDrafter
from tests.serving.faults import TARGET, V, plainly, rounds, run, service_of
from tests.serving.test_breaker import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def passes_of_one_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many tokens they read: speculation pays here, if only the drafts are right."""
    quick = TARGET.network.forward

    def forward(*values: object, **options: object) -> object:
        time.sleep(0.001)
        return quick(*values, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(TARGET.network, "forward", forward)


def slow_and_wrong(tokens: list[int], k: int) -> list[int]:
    """A draft that takes longer than the target's pass, and is never what the target says."""
    time.sleep(0.002)
    state = 0
    for position, token in enumerate(tokens):
        state = TARGET.network.step(state, token, position)
    return [(int(TARGET.network.table[state].argmax()) + 1) % V] * k


def ask(k: Lookahead | None = None, tokens: int = 50) -> GenerationRequest:
    params = SamplingParams(max_tokens=tokens)
    return GenerationRequest("abc", "target", "ngram", params=params, speculation=SpeculativeConfig(k))


def drafted(records: Sequence[Record]) -> bool:
    return any(step.proposals for step in rounds(records))


@pytest.fixture
def losing(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A service whose drafter is of no use, as it has found out by now."""
    monkeypatch.setattr("specdec.serving.service._drafter", lambda *_: ToyDrafter(slow_and_wrong))
    service = service_of(clock)
    paused = [step.paused for _ in range(2) for step in rounds(run(service, ask())[0]) if step.paused]
    assert len(paused) == 1
    assert paused[0].startswith("drafting is paused for 30 s, because it was 0.")
    assert paused[0].endswith(" times as fast as plain decoding")
    return service


def test_what_loses_is_paused_in_the_midst_of_a_run(losing: Service):
    """Within two runs of 50 rounds; the next one is plain, says why, and its words are the same."""
    (state,) = losing.drafting
    assert (state.losses.state, state.faults.state) == ("open", "closed")
    records, ids = run(losing, ask())
    assert isinstance(records[0], Started)
    assert records[0].breaker == "open"
    assert "times as fast as plain decoding" in records[0].note
    assert not drafted(records)
    assert ids == plainly(ask())


def test_whoever_names_a_lookahead_gets_it(losing: Service):
    """A comparison must be able to measure a loss; `auto` finds out by itself."""
    for k in (3, "auto"):
        records, _ = run(losing, ask(k))  # type: ignore[arg-type]
        assert isinstance(records[0], Started)
        assert records[0].breaker == "closed"
        assert drafted(records)


def test_a_trial_is_judged_by_itself(losing: Service, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    """A drafter that still loses is paused again; one that has become good comes back for good."""
    clock.now += 30
    records, _ = run(losing, ask())
    assert isinstance(records[0], Started)
    assert records[0].breaker == "half-open"
    assert drafted(records)
    assert any(step.paused for step in rounds(records))
    assert losing.drafting[0].losses.opened == 2
    clock.now += 30
    _make_good(monkeypatch)
    for _ in range(20):
        records, _ = run(losing, ask())
        assert not any(step.paused for step in rounds(records))
    assert losing.drafting[0].losses.state == "closed"


def _make_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """A drafter that always knows, at no cost."""
    said = (*TARGET.tokenizer.encode("abc"), *plainly(ask()))  # type: ignore[union-attr]
    knowing = ToyDrafter(lambda tokens, k: list(said[len(tokens) : len(tokens) + k]))
    monkeypatch.setattr("specdec.serving.service._drafter", lambda *_: knowing)


def test_what_pays_is_left_alone(clock: Clock, monkeypatch: pytest.MonkeyPatch):
    """Twenty runs of a drafter that knows all: never paused."""
    _make_good(monkeypatch)
    service = service_of(clock)
    for _ in range(20):
        records, _ = run(service, ask())
        assert all(not step.paused for step in records if isinstance(step, Round))
    (state,) = service.drafting
    assert (state.losses.state, state.losses.opened) == ("closed", 0)
