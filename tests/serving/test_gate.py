"""Who is next: promises of the line in front of the engine."""

import threading

import pytest

from specdec.errors import BusyError
from specdec.serving import Gate


def test_first_come_first_served():
    """Places count those before; leaving moves everybody behind up by one, and nobody else."""
    gate = Gate(limit=3)
    tickets = [gate.join() for _ in range(4)]
    assert [ticket.place for ticket in tickets] == [0, 1, 2, 3]
    tickets[1].close()
    assert [ticket.place for ticket in tickets] == [0, None, 1, 2]
    tickets[0].close()
    assert [ticket.place for ticket in tickets] == [None, None, 0, 1]


def test_a_full_line_is_refused_and_nothing_else_changes():
    """One inside and `limit` waiting: the next is told to come back, and those in line keep their places."""
    gate = Gate(limit=2)
    kept = [gate.join() for _ in range(3)]
    with pytest.raises(BusyError, match="2 requests are waiting"):
        gate.join()
    kept[0].close()
    assert gate.join().place == 2


def test_closing_twice_frees_one_place_only():
    """A second close is harmless: it must not let two others in."""
    gate = Gate(limit=2)
    first, second, third = gate.join(), gate.join(), gate.join()
    first.close()
    first.close()
    assert (second.place, third.place) == (0, 1)


def test_wait_returns_when_its_turn_comes_and_not_before():
    """A waiter sleeps until the one before it leaves, whatever else happens in the line."""
    gate = Gate(limit=5)
    first, second, third = gate.join(), gate.join(), gate.join()
    assert first.wait(0)
    assert not second.wait(0.01)
    order: list[str] = []
    threads = [
        threading.Thread(target=lambda: (third.wait(10), order.append("third"), third.close())),
        threading.Thread(target=lambda: (second.wait(10), order.append("second"), second.close())),
    ]
    for thread in threads:
        thread.start()
    first.close()
    for thread in threads:
        thread.join(10)
    assert order == ["second", "third"]


def test_an_error_inside_the_with_block_frees_the_place():
    """Whatever ends the block, the place is free."""
    gate = Gate(limit=0)
    with pytest.raises(KeyError), gate.join():
        raise KeyError("anything")
    assert gate.join().place == 0


def test_a_lent_place_is_its_owners():
    """Whoever borrows it is inside; closing it gives nothing up."""
    gate = Gate(limit=1)
    owner, other = gate.join(), gate.join()
    with owner.lend() as lent:
        assert lent.wait(0)
    assert (owner.place, other.place) == (0, 1)
    owner.close()
    assert other.wait(0)
