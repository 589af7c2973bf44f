"""The Share tab in a real browser: what it shows, and a page that is opened by its link."""

import shlex
from collections.abc import Callable
from typing import Any

import pytest

from specdec.cli.options import parse
from tests.ui.test_browser import set_slider

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
PROMPT = "The old lighthouse & its <b>keeper</b> said: ${hello}"


def shared(page: Any, name: str) -> str:
    """A text of the tab, once it is there."""
    page.wait_for_function(f"document.querySelector('#share-{name} textarea').value.length > 30")
    return str(page.locator(f"#share-{name} textarea").input_value())


def test_a_link_opens_the_page_with_the_same_settings(demo: str, visit: Visit):
    """Prompt, models, k and the rest are as they were, so that the command is the same, letter for letter."""
    page = visit(demo)
    page.locator("#prompt textarea").fill(PROMPT)
    set_slider(page, "lookahead", 2)
    set_slider(page, "temperature", 0.35)
    set_slider(page, "max-tokens", 17)
    page.get_by_role("tab", name="Share").click()
    command, address = shared(page, "command"), shared(page, "link")
    assert address.startswith(demo)
    options = parse(shlex.split(command)[3:])
    assert (options.prompt, options.speculation.num_speculative_tokens) == (PROMPT, 2)
    assert (options.params.temperature, options.params.max_tokens) == (0.35, 17)
    other = visit(address)
    other.wait_for_selector("#generate:not([disabled])")
    assert other.locator("#max-tokens input").first.input_value() == "17"
    assert other.locator("#prompt textarea").input_value() == PROMPT
    other.get_by_role("tab", name="Share").click()
    assert (shared(other, "command"), shared(other, "link")) == (command, address)
    assert "load_model" in shared(other, "python")
