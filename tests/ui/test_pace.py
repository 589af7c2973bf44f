"""How long people wait: for the page, and for the first token. Bounds for a machine that does nothing else."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.ui.conftest import ROOT, answers, free_port

pytestmark = [pytest.mark.browser, pytest.mark.load]

TRIES = 3
PAGE_S, FIRST_TOKEN_MS = 3.0, 500
WATCH_TOKENS = """() => {
  const list = document.querySelector('.sd-tokens'), old = list.firstElementChild;
  window.first = window.clicked = 0;
  document.querySelector('#generate').addEventListener('click', () => { window.clicked = performance.now() });
  new MutationObserver(() => {
    const token = list.querySelector('.sd-token');
    if (window.clicked && !window.first && token && token !== old) window.first = performance.now();
  }).observe(list, { childList: true, subtree: true });
}"""


@contextmanager
def usable_after(chromium: Any) -> Iterator[tuple[Any, float]]:
    """A page of a server that has just been started, and the seconds from its start until the page was usable."""
    port = free_port()
    address, began = f"http://127.0.0.1:{port}/", time.monotonic()
    with subprocess.Popen([sys.executable, "app.py", "--port", str(port)], cwd=ROOT, stdout=subprocess.DEVNULL) as demo:
        try:
            while not answers(address):
                time.sleep(0.01)
            page = chromium.new_context().new_page()
            page.goto(address, wait_until="commit")
            page.wait_for_selector(".sd[data-state=idle]")
            page.wait_for_selector("#generate:not([disabled])")
            yield page, time.monotonic() - began
            page.close()
        finally:
            demo.terminate()
            demo.wait(20)


def first_token_ms(page: Any) -> float:
    """From a click on Generate to the first token in the page, by the page's own clock; waits for the end, too."""
    page.evaluate(WATCH_TOKENS)
    page.get_by_role("button", name="Generate").click()
    page.wait_for_function("window.first")
    page.wait_for_selector(".sd[data-state=done]")
    page.wait_for_selector("#generate:not([disabled])")
    return float(page.evaluate("window.first - window.clicked"))


def test_the_page_is_usable_soon_and_a_click_shows_a_token_at_once(chromium: Any):
    """Best of three starts within 3 s; best of three clicks, with the default pair, within half a second."""
    starts, clicks = [], []
    for _ in range(TRIES):
        with usable_after(chromium) as (page, seconds):
            starts.append(seconds)
            clicks += [first_token_ms(page) for _ in range(TRIES)]
    print("usable after", *(f"{each:.2f} s" for each in starts), "first token after", *map(round, clicks), "ms")
    assert min(starts) <= PAGE_S
    assert min(clicks) <= FIRST_TOKEN_MS
