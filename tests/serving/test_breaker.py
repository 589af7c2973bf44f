"""The circuit breaker by itself, on a clock that only the test moves."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from specdec.serving.breaker import Breaker, Pass


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(5, 30.0, clock)


def admitted(breaker: Breaker) -> Pass:
    one = breaker.admit()
    assert one is not None
    return one


def fail(breaker: Breaker, times: int = 5) -> None:
    for number in range(times):
        admitted(breaker).fail(f"failure {number}")


def test_five_failures_in_a_row_open_it(breaker: Breaker):
    """Four do not; while it is open nobody passes, and it says why and for how long."""
    fail(breaker, 4)
    assert (breaker.condition.state, breaker.condition.failures) == ("closed", 4)
    fail(breaker, 1)
    condition = breaker.condition
    assert (condition.state, condition.opened, condition.retry_s) == ("open", 1, 30.0)
    assert condition.reason == "failure 0"
    assert breaker.admit() is None


def test_a_success_between_them_starts_the_count_anew(breaker: Breaker):
    """Failures that are not in a row do not add up."""
    for _ in range(10):
        fail(breaker, 4)
        admitted(breaker).succeed()
    assert breaker.condition.state == "closed"


def test_one_failure_can_be_enough(breaker: Breaker):
    """At once."""
    admitted(breaker).fail("it hangs", at_once=True)
    assert breaker.condition.state == "open"


def test_after_the_wait_exactly_one_of_twenty_threads_is_let_through(breaker: Breaker, clock: Clock):
    """Half-open: one on trial, the others not."""
    fail(breaker)
    clock.now += 29.9
    assert breaker.admit() is None
    clock.now += 0.1
    assert breaker.condition.state == "half-open"
    start = Barrier(20)

    def enter(_: int) -> Pass | None:
        start.wait()
        return breaker.admit()

    with ThreadPoolExecutor(20) as pool:
        passes = [one for one in pool.map(enter, range(20)) if one is not None]
    assert [one.on_trial for one in passes] == [True]
    assert breaker.admit() is None


def test_a_trial_that_succeeds_closes_it(breaker: Breaker, clock: Clock):
    """Everybody passes again, and it takes five failures once more."""
    fail(breaker)
    clock.now += 30
    admitted(breaker).succeed()
    assert (breaker.condition.state, breaker.condition.failures) == ("closed", 0)
    fail(breaker, 4)
    assert breaker.condition.state == "closed"


def test_a_trial_that_fails_opens_it_for_as_long_again(breaker: Breaker, clock: Clock):
    """One failure is enough then."""
    fail(breaker)
    clock.now += 30
    admitted(breaker).fail("still broken")
    condition = breaker.condition
    assert (condition.state, condition.opened, condition.reason) == ("open", 2, "still broken")
    clock.now += 29.9
    assert breaker.admit() is None


def test_a_trial_that_tells_nothing_is_left_to_the_next(breaker: Breaker, clock: Clock):
    """A run that was cancelled, or whose prompt was too long, is neither success nor failure."""
    fail(breaker)
    clock.now += 30
    trial = admitted(breaker)
    trial.close()
    trial.close()
    assert breaker.condition.state == "half-open"
    assert admitted(breaker).on_trial


def test_a_trial_that_is_never_heard_of_is_given_up(breaker: Breaker, clock: Clock):
    """After as long as the wait, the next one may try."""
    fail(breaker)
    clock.now += 30
    admitted(breaker)
    clock.now += 29.9
    assert breaker.admit() is None
    clock.now += 0.1
    assert admitted(breaker).on_trial


def test_what_was_let_through_before_it_opened_counts_for_nothing_afterwards(breaker: Breaker, clock: Clock):
    """An old run's success closes nothing, its failure opens nothing: it is told that its leave is over."""
    old = admitted(breaker)
    assert not old.revoked
    fail(breaker)
    assert old.revoked
    old.succeed()
    assert breaker.condition.state == "open"
    clock.now += 30
    old.fail("late news")
    assert breaker.condition.state == "half-open"
    assert breaker.condition.opened == 1
