"""A terminal that is none, and a service of toys behind the command line."""

import io
import signal
from collections.abc import Callable

import pytest

from specdec import threads
from specdec.cli import entry, generate
from specdec.serving import Service
from tests.serving.toys import WORDS, Toy, toy


def heed_interrupts() -> None:
    """For a child before it begins: Ctrl-C ends it, though background jobs, of whose children it may be, ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal(io.StringIO):
    """What a program believes to be a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours are decided by the stream alone; thread counts do not leak out of a test."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name in threads.VARIABLES:
        monkeypatch.setenv(name, "1")


def load(name: str) -> Toy:
    """Counting models: drafts err now and then, `foreign…` speak other words."""
    words = WORDS if not name.startswith("foreign") else tuple(word.upper() for word in WORDS)
    return toy(name, errs=3 if "draft" in name else 0, words=words)


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`main`, with models of a few words that count: after " one" comes " two"."""
    monkeypatch.setattr(generate, "open_service", lambda threads: Service(loader=load))
    return entry.main
