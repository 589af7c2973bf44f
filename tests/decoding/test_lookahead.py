"""The lookahead policies, with times made up: no clock is asked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.decoding import Engine, ModelDrafter, expected_tokens
from specdec.decoding.lookahead import K_MAX, Acceptance, Auto, Fixed, Timings, policy_for
from specdec.records import Outcome, Proposal, Round
from tests.decoding.toys import hashed, noisy_copy


class Machine:
    """Costs of a made-up machine and a drafter that is right with probability α: plays rounds for a policy."""

    def __init__(self, alpha: float, draft: float, slope: float, seed: int = 0, noise: float = 0.0) -> None:
        self.alpha, self.draft, self.slope, self.noise = alpha, draft, slope, noise
        self.rng = np.random.default_rng(seed)
        self.seconds = self.tokens = 0.0

    def cost(self, k: int) -> float:
        return k * self.draft + 1 + self.slope * k

    def play(self, policy: object, count: int, room: int = K_MAX) -> list[int]:
        used = []
        for _ in range(count):
            k = policy.choose(room)
            accepted = int(np.cumprod(self.rng.random(k) < self.alpha).sum())
            spike = 1 + self.noise * (self.rng.random() < 0.05) * 20 + self.noise * self.rng.random()
            policy.observe(made_up(k, accepted, k * self.draft, (1 + self.slope * k) * spike), caught_up=True)
            self.seconds += self.cost(k)
            self.tokens += accepted + 1
            used.append(k)
        return used

    def best(self) -> tuple[int, float]:
        rates = [expected_tokens(self.alpha, k) / self.cost(k) for k in range(K_MAX + 1)]
        return int(np.argmax(rates)), max(rates)


def made_up(k: int, accepted: int, draft_s: float, verify_s: float, fault: str = "") -> Round:
    outcomes: list[Outcome] = ["accepted"] * accepted + ["rejected"] * (accepted < k)
    outcomes += ["discarded"] * (k - len(outcomes))
    proposals = tuple(Proposal(1, "", 1.0, None, None, None, outcome) for outcome in outcomes)
    return Round(0, proposals, (), "", draft_s, verify_s, 0.0, 1, fault=fault)


MACHINES = [
    (0.9, 0.05, 0.02), (0.8, 0.1, 0.05), (0.6, 0.1, 0.3), (0.3, 0.02, 0.02), (0.95, 0.3, 0.3), (0.7, 0.0, 0.25),
    (0.99, 0.01, 0.01),
]  # fmt: skip


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("alpha, draft, slope", MACHINES)
def test_auto_comes_close_to_the_best_fixed_lookahead(alpha: float, draft: float, slope: float, noise: float) -> None:
    """600 rounds from cold, with and without noisy times: at least 85 % of the best fixed k's tokens per second."""
    machine = Machine(alpha, draft, slope, noise=noise)
    machine.play(Auto(Timings()), 600)
    assert machine.tokens / machine.seconds >= 0.85 * machine.best()[1]


@pytest.mark.parametrize("alpha, draft, slope", [(0.1, 0.3, 0.1), (0.5, 1.0, 0.2), (0.0, 0.1, 0.0), (0.2, 0.5, 1.0)])
def test_auto_switches_drafting_off_where_it_does_not_pay(alpha: float, draft: float, slope: float) -> None:
    """k = 0 for at least 90 % of rounds once it has settled, and at most 6 % slower than plain in the long run."""
    machine = Machine(alpha, draft, slope)
    policy = Auto(Timings())
    machine.play(policy, 100)
    machine.seconds = machine.tokens = 0.0
    used = machine.play(policy, 1_000)
    assert used.count(0) >= 900
    assert machine.tokens / machine.seconds >= 0.94


def test_auto_looks_again_now_and_then_and_finds_what_changed() -> None:
    """Off while drafts are bad; within 400 rounds of their becoming good it drafts again."""
    machine = Machine(0.05, 0.2, 0.1)
    policy = Auto(Timings())
    used = machine.play(policy, 300)
    assert used[100:].count(0) > 180 and any(used[100:]), "a probe now and then"
    machine.alpha = 0.95
    used = machine.play(policy, 600)
    assert np.mean(used[400:]) > 3


def test_auto_adapts_when_drafts_become_bad() -> None:
    """From α = 0.95 to 0: off within 100 rounds."""
    machine = Machine(0.95, 0.2, 0.1)
    policy = Auto(Timings())
    assert np.mean(machine.play(policy, 200)[50:]) > 3
    machine.alpha = 0.0
    machine.play(policy, 100)
    assert np.mean(machine.play(policy, 100)) < 0.5


def test_a_slow_first_pass_does_not_mislead_for_ever() -> None:
    """The very first pass is ten times too slow, as cold caches make it: drafting is on after 300 rounds even so."""
    machine = Machine(0.9, 0.05, 0.02)
    timings = Timings(passes={5: 20.0})
    assert np.mean(machine.play(Auto(timings), 400)[300:]) > 3


def test_times_outlive_a_request_and_acceptance_does_not() -> None:
    """A second policy on the same timings needs no measuring rounds and begins from the prior."""
    timings = Timings()
    machine = Machine(0.9, 0.05, 0.02)
    first = machine.play(Auto(timings), 100)
    second = machine.play(Auto(timings), 1)
    assert first[:4] == [4, 0, 2, 8] and second[0] not in (0, 4, 2) and second[0] > 0


@pytest.mark.parametrize("room", [0, 1, 2, 3, 7])
def test_room_is_never_exceeded(room: int) -> None:
    """Near the end of budget or context, from cold and from warm."""
    for policy in (Auto(Timings()), Fixed(5)):
        assert max(Machine(0.9, 0.01, 0.01).play(policy, 80, room)) <= room


@given(st.dictionaries(st.integers(1, K_MAX + 1), st.floats(1e-6, 10), min_size=1), st.floats(0, 1))
def test_costs_meet_what_was_measured_and_grow_with_k(passes: dict[int, float], draft: float) -> None:
    """Measured passes cost what they did, or what a larger one did where that was less; costs grow with k."""
    costs = Timings(draft, dict(passes)).costs()
    for rows, seconds in passes.items():
        least = min([seconds, *(value for count, value in passes.items() if count > rows)])
        assert costs[rows - 1] <= (seconds + (rows - 1) * draft) * (1 + 1e-9)
        assert costs[rows - 1] >= least * (1 - 1e-9) or max(passes) < K_MAX + 1
    assert (costs > 0).all() and np.isfinite(costs).all()
    assert (np.diff(costs) >= -1e-12).all()


def test_interpolation_between_measured_passes() -> None:
    """Passes over 1 and 5 rows known: 3 rows lie half-way, as far as a straight line goes."""
    assert Timings(0.0, {1: 1.0, 5: 2.0}).costs()[2] == pytest.approx(1.5, rel=0.05)


def test_a_spike_counts_for_little() -> None:
    """One pass a hundred times slower moves the estimate by less than a third."""
    timings = Timings()
    for _ in range(5):
        timings.observe_pass(1, 1.0)
    timings.observe_pass(1, 100.0)
    assert timings.passes[1] <= 1.31


@given(st.lists(st.tuples(st.integers(0, K_MAX), st.booleans()), max_size=60))
@settings(deadline=None)
def test_expected_tokens_grow_with_k_and_never_by_more_than_one(history: list[tuple[int, bool]]) -> None:
    """E(0) = 1, E(k + 1) − E(k) is a probability, whatever was observed."""
    acceptance = Acceptance()
    for accepted, refused in history:
        acceptance.observe(accepted, int(refused and accepted < K_MAX))
    expected = acceptance.expected_tokens()
    steps = np.diff(expected)
    assert expected[0] == 1 and (steps > 0).all() and (steps <= 1).all()


def test_acceptance_by_position_is_told_apart() -> None:
    """Always right at the first place, never at the second: E(1) near 2, E(2) hardly more."""
    acceptance = Acceptance()
    for _ in range(100):
        acceptance.observe(1, 1)
    expected = acceptance.expected_tokens()
    assert expected[1] > 1.9 and expected[2] - expected[1] < 0.15


def test_failed_rounds_teach_nothing() -> None:
    """A drafter's failure is neither a time nor a refusal."""
    timings = Timings()
    policy = Auto(timings)
    policy.choose(4)
    policy.observe(made_up(0, 0, 9.0, 9.0, fault="broken"), caught_up=True)
    assert timings == Timings()


def test_reading_up_is_not_drafting_time() -> None:
    """A draft that first had to read what it missed does not count as slow."""
    timings = Timings()
    policy = Auto(timings)
    policy.choose(4)
    policy.observe(made_up(4, 4, 100.0, 1.0), caught_up=False)
    assert timings.draft is None and timings.passes == {5: 1.0}


def test_a_full_acceptance_leaves_nothing_to_catch_up_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drafter = target: two tokens to feed after each full acceptance are usual, three after k = 0 are not."""
    seen = []
    original = Auto.observe

    def spy(self: Auto, step: Round, *, caught_up: bool) -> None:
        seen.append((len(step.proposals), caught_up))
        original(self, step, caught_up=caught_up)

    monkeypatch.setattr(Auto, "observe", spy)
    target = hashed(1)
    Engine(target, ModelDrafter(target, "auto")).generate([1, 2], SamplingParams(max_tokens=60))
    assert [k for k, _ in seen[:4]] == [4, 0, 2, 8]
    assert [caught_up for _, caught_up in seen[:4]] == [True, True, False, True]


def test_fixed_is_fixed() -> None:
    """The number asked for, less where there is less room."""
    policy = policy_for(3, Timings())
    policy.observe(made_up(3, 0, 100.0, 100.0), caught_up=True)
    assert [policy.choose(room) for room in (0, 2, 3, 9)] == [0, 2, 3, 3]


def test_auto_in_the_engine_is_lossless_and_says_so() -> None:
    """Greedy output is plain output whatever k does; the record says auto."""
    target = hashed(1)
    engine = Engine(target, ModelDrafter(noisy_copy(target, 1, 0.5), "auto"))
    params = SamplingParams(max_tokens=80)
    trace = engine.generate([1], params)
    assert trace.ids == Engine(target).generate([1], params).ids
    assert trace.started.settings["lookahead"] == "auto"
    assert [len(step.proposals) for step in trace.rounds[:4]] == [4, 0, 2, 8]
    asked = SpeculativeConfig(num_speculative_tokens="auto")
    assert Engine(target, ModelDrafter(target, 2)).generate([1], params, asked).started.settings["lookahead"] == "auto"
