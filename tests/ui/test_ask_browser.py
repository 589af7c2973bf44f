"""Examples by kind, the picture of sizes and the advanced settings, in a real browser."""

from collections.abc import Callable
from typing import Any

import pytest

from specdec.trace import Trace
from specdec.ui.examples import KINDS
from tests.ui.test_browser import generate, set_slider

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
TRACE = "window.specdecRun.events.find(({ event }) => event === 'trace').text"
WIDTHS = "['target', 'draft'].map(name => document.querySelector(`[data-bar=${name}]`).style.width)"


def choose(page: Any, name: str, text: str) -> None:
    """Pick an entry of a list."""
    page.locator(f"#{name} input").click()
    page.get_by_role("option", name=text).click()


def test_examples_stand_by_kind_and_can_be_pressed_by_keyboard(demo: str, visit: Visit):
    """Four groups with their names, all buttons; Enter fills the prompt in."""
    page = visit(demo)
    for kind in KINDS:
        group = page.locator(f"#examples-{kind.name.lower()}")
        assert group.locator(".label").inner_text().strip() == kind.name
        assert [text.strip() for text in group.get_by_role("button").all_inner_texts()] == list(kind.prompts)
    page.get_by_role("button", name="Two friends share").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('#prompt textarea').value.startsWith('Tom and Mia')")


def test_the_bars_follow_what_is_chosen(demo: str, visit: Visit):
    """To one scale, with a sentence that says the same; a drafter without a model has no bar."""
    page = visit(demo)
    page.wait_for_function("document.querySelector('.sz p').textContent.includes('17 times fewer')")
    target, draft = (float(width.rstrip("%")) for width in page.evaluate(WIDTHS))
    assert target == 100
    assert round(target / draft) == 17
    choose(page, "draft", "specdec-draft-2x64")
    page.wait_for_function("document.querySelector('.sz p').textContent.includes('43 times fewer')")
    choose(page, "target", "specdec-target-4x256")
    page.wait_for_function("document.querySelector('.sz p').textContent.includes('12 times fewer')")
    assert page.locator("#draft input").input_value().startswith("specdec-draft-2x64")
    choose(page, "draft", "n-gram lookup")
    page.wait_for_function("document.querySelector('.sz p').textContent.startsWith('The n-gram lookup')")
    assert page.locator("[data-bar=draft]").is_hidden()


def test_advanced_settings_are_those_of_the_run(demo: str, visit: Visit):
    """While the engine chooses k its control is grey; rule, top-k, top-p and seed are what the run's trace says."""
    page = visit(demo)
    page.get_by_label("let the engine choose k").check()
    page.wait_for_function("document.querySelectorAll('#lookahead input:disabled').length === 2")
    page.get_by_role("button", name="Advanced").click()
    page.get_by_role("radio", name="exact match").check()
    set_slider(page, "top-k", 5)
    set_slider(page, "top-p", 0.9)
    page.get_by_label("Seed").fill("11")
    generate(page, tokens=12)
    page.wait_for_selector(".sd[data-state=done]")
    assert "seed 11 " in page.locator(".sd-about").inner_text()
    started = Trace.from_json(page.evaluate(TRACE)).started
    assert started.seed == 11
    assert (started.settings["lookahead"], started.settings["acceptance"]) == ("auto", "match")
    assert {name: started.settings["params"][name] for name in ("top_k", "top_p")} == {"top_k": 5, "top_p": 0.9}
    page.get_by_label("let the engine choose k").uncheck()
    page.wait_for_function("document.querySelectorAll('#lookahead input:disabled').length === 0")
