"""Presenter mode in a real browser: large type, settings hidden, and keys that act from anywhere."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.axe import faults_in_both_themes
from tests.ui.test_browser import generate
from tests.ui.test_step_browser import shown

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
ON = "html.sd-present"


def test_keys_walk_through_the_run_from_anywhere(slow: str, visit: Visit):
    """`p` hides prompt and settings; arrows, Home, End, space and brackets act on Step through; `g` generates anew and
    shows it; Escape undoes it."""
    page = visit(slow)
    generate(page, "#0", 24)
    page.wait_for_selector(".sd[data-state=done]")
    small = page.locator(".sd-text").evaluate("node => parseFloat(getComputedStyle(node).fontSize)")
    page.locator("h1").click()
    page.keyboard.press("p")
    assert page.locator(ON).count() == 1
    assert page.locator("#prompt").is_hidden() and page.locator("#settings").is_hidden()
    assert page.locator(".sd-figures").is_visible() and page.locator(".sd-charts").is_visible()
    assert page.get_by_role("note").inner_text().startswith("g generate")
    assert page.locator(".sd-text").evaluate("node => parseFloat(getComputedStyle(node).fontSize)") > small
    assert faults_in_both_themes(page) == []
    page.keyboard.press("ArrowRight")  # the first key brings Step through into sight
    page.wait_for_selector(".st[data-state=paused]")
    assert shown(page) == 1
    last = int(page.locator(".st-scrub").get_attribute("max"))
    for key, number in [("ArrowRight", 2), ("ArrowRight", 3), ("ArrowLeft", 2), ("End", last), ("Home", 1)]:
        page.keyboard.press(key)
        page.wait_for_selector(".st[data-state=paused]")
        assert shown(page) == number
    page.keyboard.press("]")
    assert page.locator(".st-pace select").input_value() == "1"
    page.keyboard.press("[")
    assert page.locator(".st-pace select").input_value() == "2"
    page.keyboard.press("Space")
    page.wait_for_selector(".st[data-state=playing]")
    page.keyboard.press("Space")
    page.wait_for_selector(".st[data-state=paused]")
    page.keyboard.press("g")
    page.wait_for_selector(".sd[data-run='2'][data-state=done]")
    assert page.locator(".sd-text").is_visible()
    page.keyboard.press("Escape")
    assert page.locator(ON).count() == 0
    assert page.locator("#prompt").is_visible()


def test_letters_that_are_typed_stay_letters(slow: str, visit: Visit):
    """A `p` in the prompt is a `p`; the button turns the mode on as well, and says that it did."""
    page = visit(slow)
    page.locator("#prompt textarea").fill("")
    page.locator("#prompt textarea").press("p")
    assert page.locator("#prompt textarea").input_value() == "p"
    assert page.locator(ON).count() == 0
    page.locator("#present").focus()
    page.keyboard.press("Enter")
    assert page.locator(ON).count() == 1
    assert page.locator("#present").get_attribute("aria-pressed") == "true"


def test_an_address_can_ask_for_it_on_a_phone_in_the_dark(slow: str, visit: Visit):
    """`?present=1`: on from the start, and nothing wider than 390 pixels."""
    page = visit(slow + "?present=1", viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.wait_for_selector(ON)
    assert page.locator("#settings").is_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
