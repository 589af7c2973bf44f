"""The guided start in a real browser."""

from collections.abc import Callable
from typing import Any

import pytest

from specdec.ui.guide import STEPS
from tests.ui.axe import faults_in_both_themes

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]


def test_the_tour_sets_runs_and_is_remembered(demo: str, visit: Visit):
    """By keyboard on a dark phone: each step sets the page, runs, tells its figures; left, it goes on from there."""
    page = visit(demo, viewport={"width": 390, "height": 844}, color_scheme="dark")
    button = page.get_by_role("button", name="Guided start")
    assert page.locator(".gd").is_hidden()
    button.press("Enter")
    rates = []
    for number, step in enumerate(STEPS, 1):
        assert page.locator(".gd h2").inner_text() == step.title
        page.get_by_role("button", name="Run it").press("Enter")
        page.wait_for_selector(f".sd[data-run='{number}'][data-state=done]")
        assert page.locator("#prompt textarea").input_value() == step.values["prompt"]
        assert "seed 1 " in page.locator(".sd-about").inner_text()
        rates.append(page.locator("[data-figure=acceptance]").inner_text())
        assert f"draft acceptance rate {rates[-1]} %" in page.locator(".gd-said").inner_text()
        if step is not STEPS[-1]:
            page.get_by_role("button", name="Next").press("Enter")
    assert float(rates[0]) > float(rates[1]) > float(rates[2])
    page.get_by_role("button", name="Back").press("Enter")
    assert f"draft acceptance rate {rates[1]} %" in page.locator(".gd-said").inner_text()
    assert faults_in_both_themes(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("Escape")
    assert page.locator(".gd").is_hidden()
    page.reload()
    page.wait_for_selector("#guide-open:enabled")
    button.press("Enter")
    assert page.locator(".gd h2").inner_text() == STEPS[1].title
    page.get_by_role("button", name="Leave the guided start").press("Enter")
    assert page.evaluate("document.activeElement.id") == "guide-open"
