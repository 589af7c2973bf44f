"""Examples by kind and the picture of sizes, in a real browser."""

from collections.abc import Callable
from typing import Any

import pytest

from specdec.ui.examples import KINDS

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
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
