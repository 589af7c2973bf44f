"""A drafter that fails costs that round's drafts and never the request."""

from collections.abc import Callable

import numpy as np
import pytest

from specdec.config import SamplingParams
from specdec.decoding import Drafted, Engine
from specdec.decoding.drafting import MAX_FAILURES, Drafting
from specdec.records import Round
from specdec.trace import Trace
from tests.decoding.toys import Toy, ToyDrafter, hashed

SAMPLED = SamplingParams(temperature=1.0, seed=4, max_tokens=24)
Q = np.full((2, 16), 1 / 16)


def raising(tokens: list[int], k: int) -> Drafted:
    raise RuntimeError("the GPU fell off")


def with_q(q: object) -> Callable[[list[int], int], Drafted]:
    return lambda tokens, k: Drafted((1, 2)[:k], q if k > 1 else None)  # type: ignore[arg-type]


def changed(row: int, column: int, value: float) -> np.ndarray:
    q = Q.copy()
    q[row, column] = value
    return q


MISDEEDS = {
    "raises": (raising, "RuntimeError: the GPU fell off"),
    "too many": (lambda tokens, k: [1] * (k + 1), "drafts where"),
    "id too large": (lambda tokens, k: [16], "draft 16 lies outside the vocabulary of 16"),
    "negative id": (lambda tokens, k: [-1], "draft -1 lies outside"),
    "not ids": (lambda tokens, k: ["7"], "TypeError"),
    "not quite ids": (lambda tokens, k: [5.9], "TypeError"),
    "no draft at all": (lambda tokens, k: 5, "TypeError"),
    "q of NaN": (with_q(np.full((2, 16), np.nan)), "no distribution"),
    "one NaN in q": (with_q(changed(1, 3, np.nan)), "no distribution"),
    "q sums to 2": (with_q(Q * 2), "no distribution"),
    "negative q": (with_q(changed(0, 0, -1 / 16)), "no distribution"),
    "q of another size": (with_q(np.full((2, 8), 1 / 8)), r"q has shape (2, 8), not (2, 16)"),
    "rows missing": (with_q(Q[:1]), "q has shape (1, 16)"),
    "a draft impossible under its q": (with_q(np.eye(16)[[1, 5]]), "no probability under the q"),
    "q is no array": (with_q("soft"), "AttributeError"),
}


def run(proposal: Callable, target: Toy | None = None, params: SamplingParams = SAMPLED) -> Trace:
    return Engine(target or hashed(1), ToyDrafter(proposal, 2)).generate([1, 2, 3], params)


@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_whatever_a_drafter_does_the_request_is_served(misdeed: str) -> None:
    """Three failures, each a plain round that says why; then the drafter is left alone; all tokens arrive."""
    proposal, words = MISDEEDS[misdeed]
    trace = run(proposal)
    assert len(trace.ids) == 24 and trace.finish_reason == "length"
    faults = [step.fault for step in trace.rounds if step.fault]
    assert len(faults) == trace.stats.faults == MAX_FAILURES
    assert all(words in fault for fault in faults)
    assert "3 times in a row and is not asked again in this run" in faults[-1]
    assert "not asked again" not in faults[0]
    assert all(step.proposals == () for step in trace.rounds)
    assert trace.stats.acceptance_rate == 0 and trace.stats.drafted == 0


@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_after_failures_the_output_is_plain_decodings(misdeed: str) -> None:
    """Same seed, only failing rounds: the very tokens of plain sampling."""
    assert run(MISDEEDS[misdeed][0]).ids == Engine(hashed(1)).generate([1, 2, 3], SAMPLED).ids


def test_failures_that_are_not_in_a_row_do_not_add_up() -> None:
    """Every second round fails: the drafter is asked to the end."""
    calls = iter(range(1_000))
    trace = run(lambda tokens, k: raising(tokens, k) if next(calls) % 2 else [1] * k)
    faulty = [step for step in trace.rounds if step.fault]
    assert len(faulty) > MAX_FAILURES
    assert all("not asked again" not in step.fault for step in faulty)


class FailingSession(ToyDrafter):
    """Fails where told to; a session of its own."""

    where: str = ""

    def prefill(self, prompt: object, reader: object = None) -> None:
        self._maybe("prefill")

    def truncate(self, length: int) -> None:
        self._maybe("truncate")

    def _maybe(self, name: str) -> None:
        if self.where == name:
            raise OSError(f"no {name}")


@pytest.mark.parametrize("where", ["prefill", "truncate"])
def test_failures_beside_proposing_cost_no_more(where: str) -> None:
    """prefill or truncate raise: said in the round's fault, all tokens arrive, greedy output is plain output."""
    drafter = FailingSession(lambda tokens, k: [1] * k, 2)
    drafter.where = where
    trace = Engine(hashed(1), drafter).generate([1, 2, 3], SamplingParams(max_tokens=24))
    assert f"OSError: no {where}" in trace.rounds[0].fault
    assert trace.ids == Engine(hashed(1)).generate([1, 2, 3], SamplingParams(max_tokens=24)).ids


@pytest.mark.parametrize("where", ["truncate", "cache_length"])
def test_a_drafter_that_always_fails_somewhere_is_let_go(where: str) -> None:
    """Good proposals do not wipe out failures elsewhere in the same round: after three such rounds it is not asked."""

    class Faulty(ToyDrafter):
        def truncate(self, length: int) -> None:
            if where == "truncate":
                raise OSError("no truncate")

        def __getattribute__(self, name: str) -> object:
            if name == where == "cache_length":
                raise OSError("no cache_length")
            return object.__getattribute__(self, name)

    trace = Engine(hashed(1), Faulty(lambda tokens, k: [1] * k, 2)).generate([1, 2, 3], SAMPLED)
    faults = [step.fault for step in trace.rounds]
    assert all(f"OSError: no {where}" in fault for fault in faults[:3])
    assert "not asked again" in faults[2]
    assert not any(faults[3:])
    assert not any(step.proposals for step in trace.rounds[3:])


def test_a_drafter_that_cannot_start_is_done_without() -> None:
    """start raises: a note, plain decoding, no drafter in force."""

    class Stillborn(ToyDrafter):
        def start(self, *args: object) -> ToyDrafter:
            raise MemoryError("too big")

    trace = Engine(hashed(1), Stillborn(lambda tokens, k: [])).generate([1], SAMPLED)
    assert trace.started.drafter == "none" and trace.started.settings["drafter"] == "toy drafter"
    assert trace.started.note == "plain decoding: the drafter could not start: MemoryError: too big"
    assert len(trace.ids) == 24


def test_a_properties_failure_is_a_failure() -> None:
    """context_length or cache_length that raise count like any other, and never reach the caller."""

    class Rude(ToyDrafter):
        def __getattribute__(self, name: str) -> object:
            if name in ("context_length", "cache_length") and object.__getattribute__(self, "asked"):
                raise KeyError(name)
            return object.__getattribute__(self, name)

    drafter = Rude(lambda tokens, k: [1] * k)
    drafter.context_length = drafter.cache_length = None
    trace = Engine(hashed(1), drafter).generate([1], SAMPLED)
    assert len(trace.ids) == 24


def test_keyboard_interrupts_are_not_failures() -> None:
    """Control-C in a drafter stops the program."""

    def interrupted(tokens: list[int], k: int) -> list[int]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(interrupted)


def test_no_session_no_questions() -> None:
    """Without a drafter: no room, no drafts, no cache, no faults."""
    drafting = Drafting(None, 16)
    assert drafting.room(5) == 0 and drafting.cache_length is None
    assert drafting.propose([1], 3).tokens == ()
    drafting.prefill([1])
    drafting.truncate(0)
    assert drafting.end_round() == ""


def test_fewer_drafts_than_asked_for_are_welcome() -> None:
    """One or none of four: rounds of two tokens or one, sources plain where none."""
    trace = run(lambda tokens, k: [1] * (len(tokens) % 2))
    steps: tuple[Round, ...] = trace.rounds
    assert {len(step.proposals) for step in steps} == {0, 1}
    assert all(step.tokens[0].source == "plain" for step in steps if not step.proposals)
    assert trace.stats.faults == 0
