"""A browser, and servers to point it at. Everything is real: uvicorn in a process of its own, Debian's chromium."""

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM = Path("/usr/bin/chromium")
SERVER_S = 180  # for a server to answer: it imports Gradio, and two of them may share a core
PAGE_S = 60  # for anything a page is waited for
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(address: str) -> bool:
    """Whether a page is there."""
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def running(*command: str) -> Iterator[str]:
    """The address of a server started by `python <command>`, PORT in it filled in; it is ended afterwards."""
    with started(*command) as (address, _):
        yield address


@contextmanager
def started(*command: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The same with its process, for who wants to end it earlier."""
    port = free_port()
    address = f"http://127.0.0.1:{port}/"
    filled = [part.replace("PORT", str(port)) for part in command]
    with subprocess.Popen([sys.executable, *filled], cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        try:
            ends = time.monotonic() + SERVER_S
            while not answers(address):
                assert process.poll() is None, "the server ended by itself"
                assert time.monotonic() < ends, "the server does not answer"
                time.sleep(0.1)
            yield address, process
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture(scope="session")
def demo() -> Iterator[str]:
    """`python app.py`, with the bundled models."""
    with running("app.py", "--port", "PORT") as address:
        yield address


@pytest.fixture(scope="session")
def slow() -> Iterator[str]:
    """The page over slow toy models."""
    with running("-m", "tests.ui.toy_server", "PORT", "slow") as address:
        yield address


@pytest.fixture(scope="session")
def hostile() -> Iterator[str]:
    """The page over toy models that speak in attacks."""
    with running("-m", "tests.ui.toy_server", "PORT", "hostile") as address:
        yield address


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser; of one module, because its event loop would run on under the tests of others."""
    if not CHROMIUM.exists():
        pytest.skip("there is no /usr/bin/chromium")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        browser.shared = browser.new_context()  # one cache for all pages that need nothing special
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Open an address in a context of its own; wait until the page is ready.

    Whatever a test is about, it fails where a page asked another host for anything, raised an error, opened a dialog
    or ran text that was meant to be shown.
    """
    pages: list[Any] = []
    faults: list[str] = []

    def open_page(address: str, **options: Any) -> Any:
        page = (chromium.new_context(**options) if options else chromium.shared).new_page()
        page.set_default_timeout(1000 * PAGE_S)
        page.on("request", lambda request: _local(request.url) or faults.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
        pages.append(page)
        page.goto(address)
        page.wait_for_selector(".sd[data-state=idle]")
        page.wait_for_selector(".sd-chart .main-svg")
        return page

    yield open_page
    for page in pages:
        if not page.is_closed():
            assert page.evaluate("window.hit") is None
            page.close()
    assert faults == []


def _local(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("data", "blob") or parts.hostname == "127.0.0.1"
