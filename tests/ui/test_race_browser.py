"""The race in a real browser: both lanes finish, the verdict is told, Stop stops, any text is text."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.test_browser import set_slider
from tests.ui.toy_server import HOSTILE

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
DONE = ".sd-race[data-state=done]"


def race(page: Any, tokens: int) -> None:
    """Open the tab and press its button."""
    set_slider(page, "max-tokens", tokens)
    page.get_by_role("tab", name="Race").click()
    page.locator("#race-start").click()
    page.wait_for_selector(".sd-race[data-run='1']")


def test_both_lanes_finish_and_the_verdict_is_told(demo: str, visit: Visit):
    """The bundled pair, greedy, dark, on a phone: lanes in true order, one headline, equal texts, a chart that grew."""
    page = visit(demo, viewport={"width": 390, "height": 844}, color_scheme="dark", has_touch=True)
    set_slider(page, "temperature", 0)
    race(page, 24)
    page.wait_for_selector(".sd-race[data-state=replaying]")
    assert page.locator(".sd-headline").is_hidden()
    assert page.get_by_label("1/10").is_checked()
    page.wait_for_selector(DONE)
    assert page.locator(".sd-lane[data-state=done]").count() == 2
    assert page.locator(".sd-headline").inner_text().startswith("Speculative: ")
    assert page.get_by_text("Both lanes: the same 24 tokens, token for token.").is_visible()
    seconds = [float(node.inner_text()) for node in page.locator("[data-lane=elapsed]").all()]
    marks = [node.inner_text() for node in page.locator(".sd-mark").all()]
    ahead = [mark for second, mark in zip(seconds, marks, strict=True) if second == min(seconds)]
    assert "⚑ first" in ahead  # both may show the same hundredth
    lanes = [page.locator(f".sd-lane[data-name={name}] .sd-token[data-kind]") for name in ("plain", "speculative")]
    texts = [
        lane.evaluate_all("nodes => nodes.filter(n => n.dataset.kind !== 'rejected').map(n => n.facts.text).join('')")
        for lane in lanes
    ]
    assert texts[0] == texts[1] != ""
    assert page.locator(".sd-lane[data-name=speculative] .sd-tokens .sd-accepted").count()
    places = lanes[1].evaluate_all(
        "nodes => nodes.map(n => n.facts).filter(f => f.draft).map(f => [f.draft <= f.proposed, f.proposed])"
    )
    assert {tuple(place) for place in places} <= {(True, 3), (True, 2), (True, 1)}
    assert [True, 3] in places
    ends = page.evaluate("document.querySelector('[data-chart=race]').data.map(({ y }) => y.at(-1))")
    assert ends == [24, 24]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Replay").click()
    page.get_by_role("button", name="Skip to the end").click()
    page.wait_for_selector(DONE)
    assert lanes[0].count() == 24


def test_figures_are_defined_and_each_lane_can_be_stepped_through(slow: str, visit: Visit):
    """A mark at every figure and at the reason's letters, its text in the page; the button opens the lane's run.

    At temperature 1, where exact match promises equal texts too.
    """
    page = visit(slow)
    page.locator("#prompt textarea").fill("#0")
    set_slider(page, "temperature", 1)
    page.get_by_role("button", name="Advanced").click()
    page.get_by_role("radio", name="exact match").check()
    race(page, 24)
    page.wait_for_selector(DONE)
    assert page.get_by_text("Both lanes: the same 24 tokens, token for token.").is_visible()
    marks = page.locator(".sd-race .sd-what")
    assert marks.count() == 6
    for mark in marks.all():
        mark.focus()
        said = page.locator(f"#{mark.get_attribute('aria-describedby')}").text_content()
        assert len(said) > 40
        assert page.locator("#sd-race-meaning").inner_text() == said
    reason = page.locator("[data-says=reason]")
    assert [mark.get_attribute("aria-label") for mark in reason.locator("button").all()] == ["What τ is", "What α is"]
    page.keyboard.press("Escape")
    assert page.locator("#sd-race-meaning").is_hidden()
    for name, drafter in (("plain", "no drafts"), ("speculative", "drafts by draft")):
        page.get_by_role("tab", name="Race").click()
        lane = page.locator(f".sd-lane[data-name={name}]")
        count = lane.locator(".sd-token[data-kind]:not(.sd-rejected)").count()
        lane.get_by_role("button", name="Step through this run").click()
        page.wait_for_function(f"document.querySelector('.sd-about').textContent.includes('{drafter}')")
        page.wait_for_selector(".st[data-state=paused]")
        kept = page.evaluate(
            "window.specdecRun.events.flatMap(e => e.chips ?? []).filter(([kind]) => !'rd'.includes(kind)).length"
        )
        assert kept == count == 24
        assert page.get_by_role("button", name="Download this run").is_enabled()


def test_progress_is_told_and_stop_leaves_the_page_ready(slow: str, visit: Visit):
    """Rounds of 40 ms: the count moves, Stop ends it without a verdict, the next race works."""
    page = visit(slow)
    race(page, 2_000)
    page.wait_for_function(
        "/^Measuring plain decoding … \\d+ of 2000 tokens$/.test("
        "document.querySelector('.sd-race-now').innerText.trim())"
    )
    page.locator("#race-stop").click()
    page.wait_for_selector(".sd-race[data-state=stopped]")
    assert page.locator(".sd-lane").count() == 0
    page.wait_for_function("!document.querySelector('#race-start').disabled")
    set_slider(page, "max-tokens", 8)
    page.locator("#race-start").click()
    page.wait_for_selector(DONE)


def test_an_error_is_a_sentence_and_a_closed_page_frees_the_engine(slow: str, visit: Visit):
    """The first page goes away in the middle of a race; the second waits no longer."""
    first, second = visit(slow), visit(slow)
    race(first, 5_000)
    first.wait_for_function("document.querySelector('.sd-race-count').textContent")
    set_slider(second, "lookahead", 0)
    race(second, 8)
    second.wait_for_selector(".sd-race[data-state=error]")
    assert second.get_by_role("alert").inner_text().startswith("Choose a drafter")
    set_slider(second, "lookahead", 4)
    second.wait_for_function("!document.querySelector('#race-start').disabled")
    second.locator("#race-start").click()
    second.wait_for_function("document.querySelector('.sd-race .sd-status').textContent.includes('one run is before')")
    first.close()
    second.wait_for_selector(DONE)


def test_hostile_text_stays_text(hostile: str, visit: Visit):
    """Attacks as prompt and as tokens, in both lanes."""
    page = visit(hostile)
    page.locator("#prompt textarea").fill("".join(HOSTILE))
    race(page, 40)
    page.wait_for_selector(DONE)
    for lane in page.locator(".sd-lane").all():
        assert lane.locator(".sd-prompt").text_content() == "".join(HOSTILE)
        assert lane.locator(".sd-text :is(img, script, svg, iframe, a, input)").count() == 0
