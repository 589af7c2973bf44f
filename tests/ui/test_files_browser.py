"""Runs to files and back, in a real browser."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specdec.trace import Trace
from tests.example_run import RUN
from tests.ui.conftest import ROOT
from tests.ui.test_browser import generate
from tests.ui.test_step_browser import finish, open_file, opened, tokens

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
SPEED_UP = ("speedup", "versus")


def told(event: dict[str, Any]) -> dict[str, Any]:
    """A round but for its speed-up, which is told live against whatever ran before."""
    return event | {"figures": {name: text for name, text in event["figures"].items() if name not in SPEED_UP}}


def test_a_saved_run_is_opened_again(slow: str, visit: Visit, tmp_path: Path):
    """The file is a Trace; opened in another page it shows the same tokens, figures and rounds; a new run works."""
    page = visit(slow)
    rounds = finish(page, "#0", 30)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download this run (JSON)").click()
    download.value.save_as(tmp_path / "run.json")
    content = (tmp_path / "run.json").read_text(encoding="ascii")
    assert download.value.suggested_filename == "specdec-run.json"
    trace = Trace.from_json(content)
    assert (len(trace.ids), trace.started.settings["prompt"]) == (30, "#0")
    assert Trace.to_json(trace) + "\n" == content
    other = visit(slow)
    other.get_by_role("tab", name="Step through").click()
    assert [told(event) for event in opened(other, content)] == [told(event) for event in rounds]
    assert tokens(other) == tokens(page)
    for selector in (
        "[data-figure=speed]",
        "[data-figure=speedup]",
        ".sd-why",
        ".sd-prompt",
        ".sd-about",
        ".sd-status",
    ):
        assert other.locator(selector).text_content() == page.locator(selector).text_content()
    other.get_by_role("tab", name="Decode").click()
    generate(other, "#1", 6)
    other.wait_for_selector(".sd[data-state=done]")
    assert other.locator("[data-figure=rounds]").inner_text() != "–"
    assert len(tokens(other)) < len(tokens(page))


def test_a_run_of_the_command_line_opens(slow: str, visit: Visit):
    """`python -m specdec generate --json` makes a file that this page shows, whatever models the page has."""
    command = ["generate", "--prompt", "Once upon a time", "--max-new-tokens", "12", "--json"]
    done = subprocess.run([sys.executable, "-m", "specdec", *command], cwd=ROOT, capture_output=True, check=True)
    page = visit(slow)
    page.get_by_role("tab", name="Step through").click()
    rounds = opened(page, done.stdout.decode())
    assert sum(chip[0] not in "rd" for event in rounds for chip in event["chips"]) == 12
    assert page.locator(".st-before").inner_text().endswith("Once upon a time")


def test_what_is_no_run_gets_a_sentence_and_changes_nothing(slow: str, visit: Visit):
    """Pictures, other JSON, too large: an alert, and the run before is still there."""
    page = visit(slow)
    finish(page, "#0", 8)
    before = tokens(page)
    wrong = {
        "<b>not</b> a trace": "This is not a trace",
        "{}": "This is not a trace",
        "x" * 2_000_001: "larger than 2 MB",
    }
    for content, said in wrong.items():
        open_file(page, "wrong.json", content)
        page.get_by_role("alert").filter(has_text=said).wait_for()
        page.evaluate("document.querySelector('.st .sd-alert').hidden = true")
    assert tokens(page) == before
    opened(page, Trace.collect(RUN).to_json())
    assert page.get_by_role("alert").count() == 0
