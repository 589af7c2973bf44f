"""The badge and its test, in a real browser."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.axe import faults_in_both_themes
from tests.ui.conftest import running
from tests.ui.test_browser import generate, set_slider

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
UNBROKEN = "import app, specdec.serving.losslessness as it; it.trusting = it.rejection; raise SystemExit(app.main())"


def test_the_badge_opens_a_test_that_passes_and_a_control_that_fails(hostile: str, visit: Visit):
    """By keyboard, dark, on a phone: six rows with verdicts, the control caught, the badge says so; Escape closes."""
    page = visit(hostile, viewport={"width": 390, "height": 844}, color_scheme="dark")
    generate(page, "#1", 8)
    page.wait_for_selector(".sd[data-state=done]")
    badge = page.get_by_role("button", name="lossless")
    badge.focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("dialog").is_visible()
    assert page.get_by_text("Your last run: exact bit for bit.").is_visible()
    page.get_by_role("button", name="Run the test now").press("Enter")
    page.wait_for_selector(".hn[data-state=passed]")
    rows = page.locator(".hn tbody tr")
    names = rows.evaluate_all("rows => rows.map(row => row.dataset.test)")
    assert names == ["greedy", "match", "plain", "verifier", "control", "engine"]
    assert rows.evaluate_all("rows => [...new Set(rows.map(row => row.dataset.state))]") == ["passed"]
    assert page.locator(".hn tr[data-test=control] td").last.inner_text() == "✓ fails, as it must"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert faults_in_both_themes(page) == []
    page.keyboard.press("Escape")
    assert badge.inner_text() == "lossless: tested ✓"
    assert badge.get_attribute("title").startswith("Tested: ")
    assert page.locator(".hn-status").text_content().endswith(badge.get_attribute("title"))


def test_a_control_that_is_not_caught_earns_no_tick(visit: Visit):
    """The page with a sound verifier in the place of the broken one."""
    with running("-c", UNBROKEN, "--port", "PORT") as address:
        page = visit(address)
        badge = page.locator("#honest-open")
        badge.click()
        page.get_by_role("button", name="Run the test now").click()
        page.wait_for_selector(".hn[data-state=untold]")
        assert page.locator(".hn tr[data-test=control] td").last.inner_text() == "– cannot tell"
        assert badge.inner_text() == "lossless: cannot tell here"
        page.close()


def test_it_stops_and_says_what_is_missing(slow: str, visit: Visit):
    """Passes of 40 ms: Stop ends it without a verdict; without a drafter there is a sentence in place of a test."""
    page = visit(slow)
    set_slider(page, "lookahead", 0)
    page.locator("#honest-open").click()
    page.get_by_role("button", name="Run the test now").click()
    page.wait_for_selector(".hn[data-state=error]")
    assert page.locator(".hn-alert").inner_text().startswith("Choose a drafter and a lookahead k of 1 or more")
    page.get_by_role("button", name="Close").click()
    set_slider(page, "lookahead", 3)
    page.locator("#honest-open").click()
    page.get_by_role("button", name="Run the test now").click()
    page.wait_for_selector(".hn tr[data-test=greedy]")
    page.locator(".hn [data-do=stop]").click()
    page.wait_for_selector(".hn[data-state=stopped]")
    assert page.locator("#honest-open").inner_text() == "lossless: test it"
