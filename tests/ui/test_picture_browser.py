"""A run as a picture: what the browser draws and offers as a file, decoded."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.ui.test_browser import generate
from tests.ui.test_style import theme
from tests.ui.toy_server import HOSTILE

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
WORDS = "#share-words textarea"


def finish(page: Any, prompt: str, tokens: int) -> None:
    page.get_by_role("tab", name="Decode").click()
    generate(page, prompt, tokens)
    page.wait_for_selector(".sd[data-state=done]")


def saved(page: Any, tab: str, button: str) -> Any:
    """The picture that a button offers, decoded."""
    page.get_by_role("tab", name=tab).click()
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    assert download.value.suggested_filename == "specdec-run.png"
    data = Path(download.value.path()).read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return Image.open(BytesIO(data)).convert("RGB")


def colours(picture: Any) -> set[str]:
    """All that occur more than a few times, as CSS writes them."""
    found = picture.getcolors(maxcolors=1 << 24)
    return {"#{:02x}{:02x}{:02x}".format(*colour) for count, colour in found if count > 100}


@pytest.mark.parametrize(("scheme", "selector"), [("light", ":root"), ("dark", ".dark")])
def test_a_run_becomes_a_picture_in_the_pages_colours(slow: str, visit: Visit, scheme: str, selector: str):
    """Twice 1000 pixels wide; paper, frame and every kind of token in the theme's own colours; told in words, too."""
    page = visit(slow, color_scheme=scheme)
    finish(page, "#0", 40)
    picture = saved(page, "Share", "Save a picture of the last run")
    page.wait_for_function(f"document.querySelector('{WORDS}').value")
    assert picture.width == 2000
    assert 800 < picture.height < 2400
    paint = theme(selector)
    assert "#{:02x}{:02x}{:02x}".format(*picture.getpixel((4, 4))) == paint["page"]
    backs = {paint[f"{kind}-back"] for kind in ("accepted", "rejected", "recovered")}
    lines = {paint[f"{kind}-line"] for kind in ("accepted", "rejected", "recovered")}
    assert {paint["card"], paint["ink"], *backs, *lines} <= colours(picture)
    counts = page.locator(".sd .sd-legend [data-count]").evaluate_all(
        "nodes => nodes.map(node => [node.textContent, node.dataset.count]).filter(([count]) => count)"
    )
    words = page.locator(WORDS).input_value()
    assert f"Tokens: {', '.join(' '.join(pair) for pair in counts)}." in words
    assert "lookahead k 3 · temperature 0.8" in words
    for label, name in (("Speed-up", "speedup"), ("Time drafting", "draft"), ("Rounds", "rounds")):
        assert f"{label} {page.locator(f'[data-figure={name}]').text_content()}" in words
    assert saved(page, "Step through", "Save a picture").size == picture.size


def test_without_a_run_there_is_nothing_to_draw(slow: str, visit: Visit):
    """A sentence says what to do; Step through does not offer it."""
    page = visit(slow)
    page.get_by_role("tab", name="Share").click()
    page.get_by_role("button", name="Save a picture").click()
    page.wait_for_function(f"document.querySelector('{WORDS}').value.startsWith('There is no run yet')")
    page.get_by_role("tab", name="Step through").click()
    assert page.get_by_role("button", name="Save a picture").is_disabled()


def test_attacks_are_drawn_and_long_runs_are_cut(hostile: str, visit: Visit):
    """Prompt and tokens that are attacks become ink; beyond a sensible height the number of the rest is told."""
    page = visit(hostile)
    sizes = []
    for tokens in (200, 300):
        finish(page, "".join(HOSTILE), tokens)
        sizes.append(saved(page, "Share", "Save a picture of the last run").size)
    assert sizes[0] == sizes[1]
    assert 2_800 < sizes[0][1] < 4_000
    assert page.locator("#share :is(img, script, iframe, object)").count() == 0
