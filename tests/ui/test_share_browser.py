"""The Share tab in a real browser: what it shows, and a page that is opened by its link."""

import shlex
from collections.abc import Callable
from typing import Any

import pytest

from specdec.cli.options import parse
from tests.ui.test_browser import generate, set_slider

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
PROMPT = "The old lighthouse & its <b>keeper</b> said: ${hello}"


def shared(page: Any, name: str) -> str:
    """A text of the tab, once it is there."""
    page.wait_for_function(f"document.querySelector('#share-{name} textarea').value.length > 30")
    return str(page.locator(f"#share-{name} textarea").input_value())


def test_a_link_opens_the_page_with_the_same_settings(demo: str, visit: Visit):
    """Prompt, models, k and the rest are as they were, so that the command is the same, letter for letter.

    Each text has a button that copies it.
    """
    page = visit(demo, permissions=["clipboard-read", "clipboard-write"])
    page.locator("#prompt textarea").fill(PROMPT)
    set_slider(page, "lookahead", 2)
    set_slider(page, "temperature", 0.35)
    set_slider(page, "max-tokens", 17)
    page.get_by_role("tab", name="Share").click()
    command, address = shared(page, "command"), shared(page, "link")
    assert address.startswith(demo)
    for name, text in {"command": command, "link": address, "python": shared(page, "python")}.items():
        page.locator(f"#share-{name}").get_by_role("button", name="Copy").click()
        page.wait_for_function("async (text) => (await navigator.clipboard.readText()) === text", arg=text)
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


def test_a_prompt_too_long_for_a_link_has_a_command(demo: str, visit: Visit):
    """A sentence where the link would be; the other texts are there."""
    page = visit(demo)
    page.locator("#prompt textarea").fill("夏" * 900)
    page.get_by_role("tab", name="Share").click()
    assert parse(shlex.split(shared(page, "command"))[3:]).prompt == "夏" * 900
    assert shared(page, "link").startswith("# This prompt is too long for a link")


def test_a_run_without_a_seed_is_handed_on_with_the_one_it_drew(demo: str, visit: Visit):
    """Link, command and snippet repeat what is on the screen; the field stays empty, a seed that is given counts."""
    page = visit(demo)
    generate(page, tokens=4)
    page.wait_for_selector(".sd[data-state=done]")
    drawn = int(page.locator(".sd-about").inner_text().split("seed ")[1].split(" ")[0])
    page.get_by_role("tab", name="Share").click()
    command = shared(page, "command")
    assert f"--seed {drawn} " in command
    assert parse(shlex.split(command)[3:]).params.seed == drawn
    assert f"&seed={drawn}&" in shared(page, "link")
    assert f"seed={drawn}," in shared(page, "python")
    assert "that of the last run" in page.locator("#share").inner_text()
    page.get_by_role("button", name="Advanced").click()
    assert page.get_by_label("Seed").input_value() == ""
    page.get_by_label("Seed").fill("5")
    page.get_by_role("tab", name="Decode").click()
    page.get_by_role("tab", name="Share").click()
    page.wait_for_function("document.querySelector('#share-command textarea').value.includes('--seed 5 ')")
