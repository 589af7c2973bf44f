"""A download that fails is tried again: seldom, after waits by chance, never beyond its time, and nothing else is."""

from collections.abc import Callable

import httpx
import pytest

from specdec.checkpoints import fetch
from specdec.checkpoints.patience import SAVED, RetryBudget, patience
from specdec.errors import NotFoundError
from tests.checkpoints.servers import COMMIT, Hub


@pytest.fixture(autouse=True)
def _budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that no other test has spent."""
    monkeypatch.setattr("specdec.checkpoints.patience.BUDGET", RetryBudget())


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were waited between attempts, in no time."""
    waits: list[float] = []

    def wait(seconds: float, look: Callable[[], object]) -> None:
        waits.append(seconds)
        look()

    monkeypatch.setattr("specdec.checkpoints.patience._wait", wait)
    return waits


def down() -> None:
    """A server that nobody reaches."""
    raise httpx.ConnectError("down")


def test_what_may_pass_is_tried_again(hub: Hub, waits: list[float]) -> None:
    """A Hub that is down for two requests: the third attempt brings the model, after two short waits by chance."""
    hub.refusals = 2
    assert fetch("toys/llama").name == COMMIT
    assert len(waits) == 2
    assert 0 <= waits[0] <= 0.5
    assert 0 <= waits[1] <= 1.0


def test_three_attempts_are_enough(hub: Hub, waits: list[float]) -> None:
    """One that stays down gets three requests, no more."""
    hub.refusals = 100
    with pytest.raises(NotFoundError, match="out of reach"):
        fetch("toys/llama")
    assert (len(hub.requests), len(waits)) == (3, 2)


def test_in_a_storm_one_call_in_ten_is_repeated(waits: list[float]) -> None:
    """A server that is down for 1,000 calls gets at most a tenth more of them, and ten that were saved up before."""
    calls = 0

    def counted() -> None:
        nonlocal calls
        calls += 1
        down()

    for _ in range(1_000):
        with pytest.raises(httpx.ConnectError):
            patience(lambda: None)(counted)
    assert calls - 1_000 == len(waits)
    assert 100 <= len(waits) <= 100 + SAVED


def test_no_wait_goes_beyond_the_deadline(waits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """With 0.3 s in all, 200 calls wait less than that each time, about 120 of them once; longer waits are not begun.

    Six first waits of ten are below 0.3 s: that fewer than 60 of 200 are, happens less than once in 10^17.
    """
    monkeypatch.setattr("specdec.checkpoints.patience.ENOUGH_S", 0.3)
    monkeypatch.setattr(RetryBudget, "spend", lambda _: True)
    for _ in range(200):
        with pytest.raises(httpx.ConnectError):
            patience(lambda: None)(down)
    assert len(waits) >= 60
    assert max(waits) < 0.3


def test_waits_are_by_chance(waits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """200 calls that fail together come again at 200 moments, spread over all of 0.5 s, then over all of 1 s.

    That a tenth at one of the four ends stays empty happens three times in 10^9.
    """
    monkeypatch.setattr(RetryBudget, "spend", lambda _: True)
    for _ in range(200):
        with pytest.raises(httpx.ConnectError):
            patience(lambda: None)(down)
    for most, spread in ((0.5, waits[::2]), (1.0, waits[1::2])):
        assert len(set(spread)) == 200
        assert 0 <= min(spread) < 0.1 * most
        assert 0.9 * most < max(spread) <= most


def test_what_will_not_pass_is_not_tried_again(hub: Hub, waits: list[float]) -> None:
    """A model that does not exist is asked for once."""
    with pytest.raises(NotFoundError):
        fetch("toys/other")
    assert waits == []


def test_a_wait_can_be_cancelled(hub: Hub) -> None:
    """Between two attempts as well; the caller gets its own exception."""
    hub.refusals = 100

    def cancel(what: str, done: int, total: int) -> None:
        raise InterruptedError("enough")

    with pytest.raises(InterruptedError, match="enough"):
        fetch("toys/llama", cancel)
    assert len(hub.requests) == 1
