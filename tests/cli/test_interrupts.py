"""Ctrl-C ends a command with status 130, also where Python loses the exception that stands for it."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from specdec.cli import generate
from specdec.cli.interrupts import remembered
from specdec.serving import Service
from tests.cli.conftest import heed_interrupts, load
from tests.serving.toys import Toy
from tests.source_tree import ROOT

ASKED = ["generate", "--prompt", "zero", "--max-new-tokens", "200"]
TWICE = """
import signal
from specdec.cli.interrupts import remembered
with remembered():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("tidying up", flush=True)
        signal.raise_signal(signal.SIGINT)
        print("still here")
"""


class Finaliser:
    """Ctrl-C arrives while this object is being destroyed, where no exception can be raised."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Exceptions that Python could only report, with its own handler of SIGINT in force."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda event: seen.append(event.exc_type))
    yield seen
    signal.signal(signal.SIGINT, before)


def interrupted(name: str) -> Toy:
    """A model in whose fifth pass Ctrl-C arrives, and gets lost."""
    model = load(name)
    forward = model.network.forward

    def once_disturbed(*arguments: Any, **options: Any) -> Any:
        if model.network.passes == 4:
            Finaliser()
        return forward(*arguments, **options)

    model.network.forward = once_disturbed  # type: ignore[method-assign]
    return model


@pytest.mark.parametrize("output", [[], ["--json"]])
def test_a_lost_interrupt_still_ends_the_run_in_its_round(
    toys: Callable[..., int],
    lost: list[Any],
    output: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """130 and no word after the round in which it came, of a run that would have said 200."""
    monkeypatch.setattr(generate, "open_service", lambda threads: Service(loader=interrupted))
    assert toys([*ASKED, "--draft", "none", *output]) == 130
    assert lost == [KeyboardInterrupt]
    assert capsys.readouterr().out.split() == ([] if output else ["one", "two", "three", "four"])


def test_a_command_that_lost_it_and_finished_says_130_too(toys: Callable[..., int], lost: list[Any], monkeypatch):
    """Where nothing is pulled between the signal and the end, the status tells of it nevertheless."""
    monkeypatch.setattr(generate, "show", lambda records, prompt: Finaliser())
    assert toys(ASKED) == 130
    assert lost == [KeyboardInterrupt]


def test_a_second_one_waits_for_nothing():
    """The process dies of the signal, in the middle of its tidying up, and says nothing more."""
    done = subprocess.run(
        [sys.executable, "-c", TWICE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=heed_interrupts,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "tidying up\n", "")


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda number, frame: None])
def test_a_signal_that_is_somebody_elses_is_left_alone(lost: list[Any], handler: Any):
    """`nohup` and embedding programs keep what they set; Python's own handler comes back after the block."""
    with remembered():
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, handler)
    with remembered() as interrupts:
        signal.raise_signal(signal.SIGINT)
    assert not interrupts.seen
    assert signal.getsignal(signal.SIGINT) is handler
