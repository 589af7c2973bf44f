"""The guided start in a real browser."""

from collections.abc import Callable
from typing import Any

import pytest

from specdec.ui.guide import STEPS

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]


def test_the_tour_sets_runs_and_is_remembered(demo: str, visit: Visit):
    """By keyboard on a dark phone: a step sets the page and runs, its figures are told; left, it goes on from there."""
    page = visit(demo, viewport={"width": 390, "height": 844}, color_scheme="dark")
    button = page.get_by_role("button", name="Guided start")
    assert page.locator(".gd").is_hidden()
    button.press("Enter")
    assert page.locator(".gd h2").inner_text() == STEPS[0].title
    page.get_by_role("button", name="Next").press("Enter")
    page.get_by_role("button", name="Run it").press("Enter")
    page.wait_for_selector(".sd[data-run='1'][data-state=done]")
    assert page.locator("#prompt textarea").input_value() == STEPS[1].values["prompt"]
    assert "seed 1 " in page.locator(".sd-about").inner_text()
    rate = page.locator("[data-figure=acceptance]").inner_text()
    assert f"draft acceptance rate {rate} %" in page.locator(".gd-said").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("Escape")
    assert page.locator(".gd").is_hidden()
    page.reload()
    page.wait_for_selector(".sd[data-state=idle]")
    button.press("Enter")
    assert page.locator(".gd h2").inner_text() == STEPS[1].title
    page.get_by_role("button", name="Leave the guided start").press("Enter")
    assert page.evaluate("document.activeElement.id") == "guide-open"
