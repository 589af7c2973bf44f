"""axe, the usual checker of accessibility rules, finds no serious fault in the page, however it is looked at."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.axe import SETTLED_MS, faults
from tests.ui.test_browser import generate, set_slider
from tests.ui.test_race_browser import race

pytestmark = pytest.mark.browser

VIEWS = ("Decode", "Race", "Step through", "Explore", "Share", "Models")
SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}


def look_at(page: Any, view: str) -> list[str]:
    """Open a tab and let axe look at the page."""
    page.get_by_role("tab", name=view).click()
    page.wait_for_timeout(SETTLED_MS)
    return faults(page)


def test_arrow_keys_lead_from_tab_to_tab(slow: str, visit: Callable[..., Any]):
    """And round: right, left, End, Home; the tab that has the focus is the one that is shown."""
    page = visit(slow)
    page.get_by_role("tab", name="Decode").focus()
    moves = [("Right", "Race"), ("Right", "Step through"), ("Left", "Race"), ("Left", "Decode"), ("Left", "Models")]
    for key, name in [*((f"Arrow{side}", name) for side, name in moves), ("Home", "Decode"), ("End", "Models")]:
        page.keyboard.press(key)
        assert page.locator("[role=tab]:focus").inner_text().strip() == name
        assert page.get_by_role("tab", name=name).get_attribute("aria-selected") == "true"


def press_until(key: str, page: Any, selector: str) -> None:
    """Move the focus by one key alone."""
    for _ in range(60):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} never reaches {selector}")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(slow: str, visit: Callable[..., Any], scheme: str, size: str):
    """Each view, the advanced settings open: before a run, after one with a token's figures shown, after a race."""
    page = visit(slow, color_scheme=scheme, viewport=SIZES[size])
    page.get_by_role("button", name="Advanced").click()
    assert {view: look_at(page, view) for view in VIEWS} == {view: [] for view in VIEWS}
    page.get_by_role("tab", name="Decode").click()
    generate(page, tokens=24)
    page.wait_for_selector(".sd[data-state=done]")
    page.locator(".sd-tokens .sd-token").first.focus()
    page.wait_for_selector(".sd-tip:not([hidden])")
    assert faults(page) == []
    assert {view: look_at(page, view) for view in ("Step through", "Share")} == {"Step through": [], "Share": []}
    race(page, 8)
    page.wait_for_selector(".sd-race[data-state=done]")
    assert faults(page) == []


def test_the_page_can_be_used_by_keyboard_alone(slow: str, visit: Callable[..., Any]):
    """Tab to the prompt and type, Tab to Generate and press it, Shift+Tab to Stop beside it and press that.

    A race and a sweep are begun and ended by the same keys.
    """
    page = visit(slow)
    set_slider(page, "max-tokens", 2_000)
    page.evaluate("document.activeElement.blur()")
    press_until("Tab", page, "#prompt textarea")
    page.keyboard.press("Control+A")
    page.keyboard.type("Once")
    press_until("Tab", page, "#generate")
    page.keyboard.press("Enter")
    page.wait_for_selector(".sd-tokens .sd-token", state="attached")
    assert page.locator(".sd-prompt").text_content() == "Once"
    press_until("Shift+Tab", page, "#stop")
    page.keyboard.press("Enter")
    page.wait_for_selector(".sd[data-state=stopped]")
    for name in ("race", "explore"):
        press_until("Tab", page, f"#{name}-view-button")
        page.keyboard.press("Enter")
        press_until("Tab", page, f"#{name}-start")
        page.keyboard.press("Enter")
        page.wait_for_selector(f".sd-{name}[data-run='1']")
        press_until("Tab", page, f"#{name}-stop")
        page.keyboard.press("Enter")
        page.wait_for_selector(f".sd-{name}[data-state=stopped]")
