"""The server dies under a run: the page says so, and keeps what it has."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.conftest import started
from tests.ui.test_browser import generate

pytestmark = pytest.mark.browser


def test_a_run_whose_server_is_killed_ends_in_a_sentence(visit: Callable[..., Any]):
    """Killed in mid-run: an alert and the state of an error within seconds; tokens and their rounds are still there."""
    with started("-m", "tests.ui.toy_server", "PORT", "slow") as (address, process):
        page = visit(address)
        generate(page, "#0", tokens=5_000)
        page.wait_for_function("document.querySelectorAll('.sd-tokens .sd-token').length > 20")
        process.kill()
        page.wait_for_selector(".sd[data-state=error]", timeout=15_000)
        alert = page.locator(".sd .sd-alert")
        assert alert.get_attribute("role") == "alert"
        assert alert.inner_text() == "The connection to the server was lost, and this run with it."
        shown = page.locator(".sd-tokens .sd-token").count()
        assert shown > 20
        page.get_by_role("tab", name="Step through").click()
        page.wait_for_selector(".st[data-state=paused]")
        assert page.evaluate("window.specdecRun.events.flatMap(e => e.chips ?? []).length") == shown
