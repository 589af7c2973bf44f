"""A drafter that fails, in every state of a round, in every way: nothing is lost, and the words are the target's."""

import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.decoding.losslessness import Tally
from specdec.errors import ContextError, RequestError
from specdec.records import Started
from specdec.serving import GenerationRequest
from specdec.serving.guard import CHUNK
from tests.decoding.toys import ToyDrafter
from tests.serving.faults import (
    CASES,
    LATE_S,
    MODES,
    PROPOSALS,
    TARGET,
    FaultyDrafter,
    Plan,
    V,
    ask,
    plainly,
    rounds,
    run,
    service_of,
)
from tests.serving.test_breaker import Clock

Put = Callable[[Plan], Plan]
LATE = {"breaker_call_seconds": LATE_S / 4}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Put:
    """Put a faulty drafter into the place of every drafter."""

    def put(plan: Plan) -> Plan:
        monkeypatch.setattr("specdec.serving.service._drafter", lambda name, *_: _faulty(name, plan))
        return plan

    return put


def _faulty(name: str, plan: Plan) -> FaultyDrafter | None:
    return None if name == "none" else FaultyDrafter(plan)


@pytest.mark.parametrize("mode", MODES)
def test_every_fault_in_every_state_of_a_round_costs_no_word(mode: str, put: Put, clock: Clock):
    """All places × all faults, always and now and then, on through open and half-open: greedy and `match` say what
    the target says alone; under `rejection`, whose tokens may differ, all that was asked for is there."""
    for place, fault in CASES:
        service = service_of(clock, **LATE if fault == "hangs" else {})
        chance = random.Random(f"{place} {fault}")
        plan = put(Plan(place, fault))
        plan.due = lambda: not plan.misdeeds or chance.random() < 0.4  # noqa: B023
        for seed in range(4):
            request = ask(mode, seed)
            _, ids = run(service, request)
            assert len(ids) == 16
            assert mode == "rejection" or ids == plainly(request), (place, fault, seed)
            clock.now += 20
        assert plan.misdeeds > 0, (place, fault)


@pytest.mark.parametrize("fault", ["q of NaN", "always wrong"])
def test_under_rejection_the_law_stays_the_targets(fault: str, put: Put, clock: Clock):
    """Second and third token of 1,000 runs, the drafter failing in half of its calls: their exact law is the one
    drawn from, so that no fault and no breaker bends it. Chance of a false alarm: see `Tally`."""
    chance = random.Random(fault)
    put(Plan("propose", fault, lambda: chance.random() < 0.5))
    service = service_of(clock)
    tallies = [Tally(law) for law in laws((3, 1, 4), 3)[1:]]
    for seed in range(1_000):
        params = SamplingParams(temperature=1.0, max_tokens=6, seed=seed)
        request = GenerationRequest("dbe", "target", "ngram", params=params, speculation=SpeculativeConfig(3))
        _, ids = run(service, request)
        for tally, token in zip(tallies, ids[1:3], strict=True):
            tally.add([token])
        clock.now += 3
    assert [tally.variation <= tally.critical for tally in tallies] == [True, True]


def laws(prompt: tuple[int, ...], tokens: int) -> list[np.ndarray]:
    """The exact law of each of the first tokens, by way of all texts before it."""
    texts, found = {prompt: 1.0}, []
    for _ in range(tokens):
        longer: Counter[tuple[int, ...]] = Counter()
        for text, weight in texts.items():
            logits = TARGET.network.forward(text, TARGET.network.new_cache(64), logits=1)[0].astype(float)
            p = np.exp(logits - logits.max())
            longer.update({(*text, token): weight * float(p[token] / p.sum()) for token in range(V)})
        texts = dict(longer)
        found.append(np.bincount([text[-1] for text in texts], list(texts.values()), V))
    return found


def test_a_breaker_opens_in_the_midst_of_a_run_and_says_so(put: Put, clock: Clock):
    """Three failures end drafting in the first run (the engine's own rule), two more open the breaker in the second;
    its round says so; the third is told at its start, and asks the drafter nothing."""
    plan = put(Plan("propose", "raises"))
    service = service_of(clock)
    assert not any(step.paused for step in rounds(run(service, ask("greedy", 1))[0]))
    second = list(rounds(run(service, ask("greedy", 2))[0]))
    assert [step.index for step in second if step.paused] == [1]
    assert second[1].paused == (
        "drafting is paused for 30 s, because the drafter failed: RuntimeError: the GPU fell off"
    )
    asked = plan.misdeeds
    records, ids = run(service, ask("greedy", 3))
    assert isinstance(records[0], Started)
    assert (records[0].breaker, records[0].drafter) == ("open", "none")
    assert records[0].note.startswith("plain decoding: drafting is paused for a while, because the drafter failed: Run")
    assert ids == plainly(ask("greedy", 3))
    assert plan.misdeeds == asked
    (state,) = service.drafting
    assert (state.target, state.draft, state.faults.state, state.faults.opened) == ("target", "ngram", "open", 1)
    assert state.losses.state == "closed"


@pytest.mark.parametrize("mode", ["greedy", "match", "rejection"])
def test_while_it_is_open_every_word_is_the_targets_own(mode: str, put: Put, clock: Clock):
    """20 seeds behind an open breaker: each run is told that it is, asks no drafter, and says what the target alone
    says for that seed, under rejection too."""
    plan = put(Plan("propose", "raises"))
    service = service_of(clock, breaker_failures=1)
    run(service, ask(mode))
    asked = plan.misdeeds
    for seed in range(20):
        (started, *_), ids = run(service, ask(mode, seed))
        assert isinstance(started, Started)
        assert started.breaker == "open"
        assert ids == plainly(ask(mode, seed)), seed
    assert plan.misdeeds == asked


def test_a_trial_closes_it_and_a_failing_one_does_not(put: Put, clock: Clock):
    """Half-open after 30 s: the run says that it is the trial, and drafts; the next one is as any other."""
    broken = [True]
    put(Plan("propose", "raises", lambda: broken[0]))
    service = service_of(clock, breaker_failures=1)
    run(service, ask("greedy"))
    clock.now += 30
    records, _ = run(service, ask("greedy"))
    assert isinstance(records[0], Started)
    assert records[0].breaker == "half-open"
    assert next(rounds(records)).paused
    broken[0] = False
    clock.now += 30
    records, _ = run(service, ask("greedy"))
    assert isinstance(records[0], Started)
    assert (records[0].breaker, records[0].drafter) == ("half-open", "faulty")
    assert records[0].note.startswith("drafting is tried again after a pause, because")
    assert any(step.proposals for step in rounds(records))
    records, _ = run(service, ask("greedy"))
    assert isinstance(records[0], Started)
    assert (records[0].breaker, records[0].note) == ("closed", "")


@pytest.mark.parametrize("state", ["closed", "half-open"])
def test_bad_input_and_cancelled_runs_do_not_count(state: str, put: Put, clock: Clock):
    """Ten prompts that are too long, ten runs that are closed and ten that are cancelled: a closed breaker has counted
    no failure, and a trial among them is not used up."""
    put(Plan("propose", "raises"))
    service = service_of(clock, breaker_failures=1)
    if state == "half-open":
        run(service, ask("greedy"))
        clock.now += 30
    for number in range(10):
        bad = GenerationRequest("a" * 2_000, "target", "ngram", params=SamplingParams(max_tokens=4))
        with pytest.MonkeyPatch.context() as patch, pytest.raises(ContextError):
            patch.setattr(TARGET.network, "context_length", 100)
            run(service, bad)
        stopped = service.stream(ask("greedy", number))
        next(stopped)
        stopped.close()
        assert len(list(service.stream(ask("greedy", number), cancelled=lambda: True))) == 2
    (found,) = service.drafting
    opened = int(state == "half-open")
    assert (found.faults.state, found.faults.opened, found.faults.failures) == (state, opened, opened)


def test_a_drafter_that_never_comes_back_costs_one_deadline(put: Put, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    """The run goes on without it, and so do all others, without another wait or thread, until it has come back."""
    back = Event()
    plan = put(Plan("propose", "hangs"))
    monkeypatch.setitem(PROPOSALS, "hangs", lambda tokens, k: back.wait(60))
    service = service_of(clock, breaker_call_seconds=0.05)
    try:
        records, ids = run(service, ask("greedy"))
        assert ids == plainly(ask("greedy"))
        step = next(rounds(records))
        assert "TooLate: no answer within 0.05 s" in step.fault
        assert "TooLate" in step.paused
        for seed in range(5):
            clock.now += 100
            assert run(service, ask("greedy", seed))[1] == plainly(ask("greedy", seed))
        assert plan.misdeeds == 1
    finally:
        back.set()
    plan.due = lambda: False
    records = []
    for _ in range(100):
        records, _ = run(service, ask("greedy"))
        if any(step.proposals for step in rounds(records)):
            break
    assert any(step.proposals for step in rounds(records))


def test_a_long_prompt_may_take_longer(clock: Clock, monkeypatch: pytest.MonkeyPatch):
    """A call's seconds are for each 128 tokens that are new to the drafter."""
    plan = Plan("prefill", "slow")
    monkeypatch.setitem(PROPOSALS, "slow", lambda tokens, k: time.sleep(0.3))
    drafter = FaultyDrafter(plan, ToyDrafter(lambda tokens, k: [1] * k))
    monkeypatch.setattr("specdec.serving.service._drafter", lambda *_: drafter)
    service = service_of(clock, breaker_call_seconds=0.1)
    long = GenerationRequest("a" * 24 * CHUNK, "target", "ngram", params=SamplingParams(max_tokens=4))
    assert not any(step.fault for step in rounds(run(service, long)[0]))
    assert "TooLate" in next(rounds(run(service, ask("greedy"))[0])).fault


def test_while_it_is_open_the_promise_cannot_be_tested(put: Put, clock: Clock):
    """Whoever wants the engine for that is told so, and a trial is not used up by asking."""
    put(Plan("propose", "raises"))
    service = service_of(clock, breaker_failures=1)
    run(service, ask("greedy"))
    for seconds in (0, 30):
        clock.now += seconds
        with pytest.raises(RequestError, match="paused"):
            service.engine(ask("greedy"))
    records, _ = run(service, ask("greedy"))
    assert isinstance(records[0], Started)
    assert records[0].breaker == "half-open"


@pytest.mark.load
def test_ten_thousand_requests_over_faulty_drafters(put: Put, clock: Clock):
    """Four clients at once, every fault in every state of a round by chance, greedy, `match`, `auto` and the default:
    10,000 answers, each the target's own, through every state of the breaker."""
    chance = random.Random(7)
    plan = put(Plan("propose", "raises", lambda: chance.random() < plan_share[0]))
    plan_share = [0.5]
    service = service_of(clock, **LATE)
    seen: Counter[str] = Counter()

    def one(number: int) -> bool:
        plan.place, plan.fault = chance.choice(CASES)
        plan_share[0] = chance.choice((0.0, 0.1, 0.5, 1.0))
        clock.now += chance.choice((0, 1, 10))
        request = ask(chance.choice(("greedy", "match", "auto", "default")), number, chance.randint(1, 24))
        records, ids = run(service, request)
        seen.update([records[0].breaker if isinstance(records[0], Started) else "none"])
        seen.update("fault" for step in rounds(records) if step.fault)
        seen.update("paused" for step in rounds(records) if step.paused)
        return ids == plainly(request)

    with ThreadPoolExecutor(4) as pool:
        right = sum(pool.map(one, range(10_000)))
    print(dict(seen), service.drafting)
    assert right == 10_000
    assert min(seen[name] for name in ("closed", "open", "half-open", "fault", "paused")) > 100
