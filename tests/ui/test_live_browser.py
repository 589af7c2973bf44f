"""The live figures, their definitions, the charts under a user's hands, and the legend, in a real browser."""

from collections.abc import Callable
from typing import Any

import pytest

from specdec.ui.baseline import MOST_TOKENS
from tests.ui.test_browser import generate, rounds, set_slider

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
DATA = "document.querySelector('[data-chart={}]').data"
PLOTS = "[...document.querySelectorAll('.sd-charts .sd-chart')]"
AXES = f"{PLOTS}.filter(({{ dataset }}) => dataset.chart !== 'lengths').map(({{ layout }}) => layout)"
RANGES = f"{AXES}.map(({{ xaxis, yaxis }}) => [xaxis.range, yaxis.range])"
POINTS = f"{PLOTS}.map(({{ data }}) => Math.max(...data.map(({{ x }}) => x.length)))"
MARKED, REFUSED = ("accepted", "rejected", "recovered", "bonus", "discarded"), ("rejected", "discarded")
LOOKS = """(node) => {
  const own = getComputedStyle(node), mark = getComputedStyle(node, "::before");
  return [own.textDecorationLine, own.backgroundColor, mark.display === "none" ? "none" : mark.content];
}"""
PLAIN = ["none", "rgba(0, 0, 0, 0)", "none"]


def shown(page: Any, name: str) -> str:
    return str(page.locator(f"[data-figure={name}]").inner_text())


def finish(page: Any, prompt: str | None = None, tokens: int | None = None) -> None:
    generate(page, prompt, tokens)
    page.wait_for_selector(".sd[data-state=done]")


def grown(page: Any, beyond: int) -> None:
    """Wait until a chart has more points."""
    page.wait_for_function(f"{DATA.format('acceptance')}[1].x.length > {beyond}")


def test_the_plain_lane_follows_the_text_and_gives_the_speed_up(slow: str, visit: Visit):
    """The text is whole when it begins; then its dashed line, the speed-up and what that is told against.

    The next run tells one from its first rounds on, against this lane.
    """
    page = visit(slow)
    page.evaluate(
        """() => {
          const panel = document.querySelector(".sd");
          window.lanes = [];
          new MutationObserver(() => window.lanes.push([
            panel.dataset.lane,
            panel.querySelector(".sd-status").textContent,
            panel.querySelectorAll(".sd-tokens :is(.sd-accepted, .sd-recovered, .sd-bonus, .sd-plain)").length,
          ])).observe(panel, { attributeFilter: ["data-lane"] });
        }"""
    )
    finish(page, "#0", 40)
    ((_, _, _), (lane, _, count)) = page.evaluate("window.lanes")
    assert (lane, count) == ("plain", 40)
    assert float(shown(page, "speedup")) > 1
    assert page.locator(".sd-why").inner_text().startswith("Against plain decoding, ")
    plain = page.evaluate(DATA.format("speed"))[1]
    assert plain["line"]["dash"] == "dash"
    assert plain["x"] == [*range(2, len(plain["x"]) + 1), 40]
    assert 2 < len(plain["x"]) <= MOST_TOKENS
    generate(page, "#0", 5_000)
    page.wait_for_function("document.querySelector('[data-figure=speedup]').textContent !== '–'")
    assert page.locator(".sd-why").inner_text().startswith("Speed-up against the plain lane of the run before")
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector(".sd[data-state=stopped]")


def test_stop_in_the_plain_lane_leaves_the_run_as_it_was(slow: str, visit: Visit):
    """Pressed as soon as the lane begins: the end is the run's own, whole and finished."""
    page = visit(slow)
    page.evaluate(
        """() => new MutationObserver(([{ target }]) => {
          if (target.dataset.lane === "plain") document.querySelector("#stop").click();
        }).observe(document.querySelector(".sd"), { attributeFilter: ["data-lane"] })"""
    )
    finish(page, "#0", 60)
    assert page.locator(".sd-status").inner_text() == "All 60 tokens asked for are there."
    page.wait_for_function("!document.querySelector('#generate').disabled")


def test_without_a_drafter_the_run_is_the_plain_lane(slow: str, visit: Visit):
    """No speed-up, no shares of drafts; its speed is the dashed line."""
    page = visit(slow)
    set_slider(page, "lookahead", 0)
    finish(page, "#0", 30)
    assert shown(page, "speedup") == shown(page, "acceptance") == "–"
    assert (shown(page, "draft"), shown(page, "length")) == ("0", "1.00")
    assert page.locator(".sd-why").inner_text().startswith("Nothing drafts here")
    own, plain = page.evaluate(DATA.format("speed"))
    assert (len(own["x"]), len(plain["x"])) == (0, 29)


def test_slower_than_plain_is_said_with_its_reason(hostile: str, visit: Visit):
    """A target as quick as its draft cannot gain: the figure says so, and a sentence with a number why."""
    page = visit(hostile)
    set_slider(page, "lookahead", 12)
    finish(page, "#0", 60)
    assert float(shown(page, "speedup")) < 1
    assert shown(page, "versus") == "×, slower than plain"
    assert page.locator(".sd").get_attribute("data-outcome") == "slower"
    assert page.locator(".sd-why").inner_text().startswith("Slower than plain decoding, ")
    assert "%" in page.locator(".sd-why").inner_text() or "cost" in page.locator(".sd-why").inner_text()


def test_every_figure_is_defined_for_mouse_keyboard_and_reader(slow: str, visit: Visit):
    """A mark at each: focus or pointer show what it means, Escape hides it; its description is in the page."""
    page = visit(slow)
    marks = page.locator(".sd-what")
    tip = page.locator(".sd-meaning")
    assert marks.count() == page.locator(".sd-figures dt").count() == 10
    for mark in marks.all():
        text = page.locator(f"#{mark.get_attribute('aria-describedby')}").text_content()
        assert len(text) > 30 and text.endswith(".")
        mark.focus()
        assert tip.inner_text() == text
        page.keyboard.press("Escape")
        assert tip.is_hidden()
    page.evaluate("document.activeElement.blur()")
    marks.first.hover()
    assert "÷ the speed of plain decoding" in tip.inner_text()
    page.locator(".sd-status").hover()
    assert tip.is_hidden()
    names = marks.evaluate_all("nodes => nodes.map(node => node.getAttribute('aria-label'))")
    assert len(set(names)) == 10 and all(name.startswith("What ") for name in names)


def test_definitions_come_with_a_tap_and_fit_a_phone(slow: str, visit: Visit):
    """390 pixels: inside the window, and gone with a tap elsewhere."""
    page = visit(slow, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    for mark in page.locator(".sd-what").all():
        mark.tap()
        box = page.locator(".sd-meaning").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    page.locator(".sd-status").tap()
    assert page.locator(".sd-meaning").is_hidden()


def drag(page: Any, name: str) -> None:
    """Drag a box in a chart that is brought into sight."""
    chart = page.locator(f"[data-chart={name}]")
    chart.evaluate("node => node.scrollIntoView({ block: 'center' })")
    box = chart.bounding_box()
    page.mouse.move(box["x"] + 70, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 150, steps=2)
    page.mouse.up()


def test_a_zoom_outlives_growth_and_the_next_run_starts_afresh(slow: str, visit: Visit):
    """Drag a box in each chart that can be zoomed, let the run grow: same axes, same nodes. A new run shows all."""
    page = visit(slow)
    generate(page, "#0", 5_000)
    page.locator("[data-chart=acceptance]").evaluate("node => node.scrollIntoView()")
    grown(page, 12)
    page.evaluate("window.marked = [...document.querySelectorAll('.sd-chart, .sd-chart .main-svg')]")
    for name in ("phases", "speed", "acceptance"):
        drag(page, name)
    page.wait_for_function(f"{AXES}.every(({{ xaxis }}) => xaxis.autorange === false)")
    zoomed, before = page.evaluate(RANGES), page.evaluate(POINTS)
    grown(page, page.evaluate(DATA.format("acceptance"))[1]["x"][-1] + 20)
    assert page.evaluate(RANGES) == zoomed
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector(".sd[data-state=stopped]")
    assert page.evaluate(RANGES) == zoomed
    assert all(now > then for now, then in zip(page.evaluate(POINTS), before, strict=True))
    assert page.evaluate("window.marked.every(node => document.contains(node))")
    page.wait_for_function("!document.querySelector('#generate').disabled")
    finish(page, "#0", 20)
    assert page.evaluate(f"{AXES}.every(({{ xaxis }}) => xaxis.autorange)")


def test_a_label_stays_while_its_chart_grows(slow: str, visit: Visit):
    """The pointer rests on the bars; they are redrawn under it, and the label is there again at once."""
    page = visit(slow)
    generate(page, "#0", 5_000)
    chart = page.locator("[data-chart=phases]")
    chart.evaluate("node => node.scrollIntoView()")
    grown(page, 8)
    box = chart.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 120, steps=3)
    label = "document.querySelector('[data-chart=phases] .hoverlayer').textContent"
    page.wait_for_function(f"{label}.includes('checking')")
    count = page.evaluate(DATA.format("acceptance"))[1]["x"][-1]
    grown(page, count + 20)
    assert "checking" in page.evaluate(label)
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector(".sd[data-state=stopped]")


def test_all_four_charts_tell_the_run(slow: str, visit: Visit):
    """Every round in each: its acceptance, its speed, how many drafts it accepted, its milliseconds by phase."""
    page = visit(slow)
    finish(page, "#0", 60)
    events = page.evaluate("window.specdecRun.events")
    told = [event for event in events if event["event"] == "round"]
    accepted = [sum(chip[0] == "a" for chip in event["chips"]) for event in told]
    assert page.evaluate(DATA.format("lengths"))[0]["x"] == [
        count for count, event in zip(accepted, told, strict=True) if event["points"][2] is not None
    ]
    phases = page.evaluate(DATA.format("phases"))
    assert [trace["name"] for trace in phases] == ["drafting", "checking", "the rest"]
    for index, trace in enumerate(phases):
        assert trace["x"] == list(range(1, rounds(page) + 1))
        assert trace["y"] == pytest.approx([1000 * event["seconds"][index] for event in told])
    assert all(ms >= 20 for ms in phases[1]["y"])


def test_each_kind_can_be_unmarked(slow: str, visit: Visit):
    """Toggles: a refused kind goes, and the arrow keys pass over it; a kept kind stays as plain text, as plain is.

    The next run keeps to it.
    """
    page = visit(slow)
    set_slider(page, "lookahead", 2)  # of its rounds some err and some do not
    finish(page, "#0", 24)
    token = {kind: page.locator(f".sd-tokens .sd-{kind}").first for kind in (*MARKED, "plain")}
    button = {kind: page.locator(f"[data-kind-of={kind}]") for kind in MARKED}
    marked = {kind: token[kind].evaluate(LOOKS) for kind in MARKED}
    for number, kind in enumerate(MARKED, 1):
        assert marked[kind] != PLAIN
        button[kind].press("Space")
        assert button[kind].get_attribute("aria-pressed") == "false"
        hidden = [each for each in MARKED if token[each].is_hidden()]
        assert hidden == [each for each in MARKED[:number] if each in REFUSED]
        assert kind in REFUSED or token[kind].evaluate(LOOKS) == PLAIN
    page.locator(".sd-tokens .sd-token[tabindex='0']").focus()
    kinds = set()
    for _ in range(24):
        kinds.add(page.evaluate("document.activeElement.dataset.kind"))
        page.keyboard.press("ArrowRight")
    assert kinds and not kinds & set(REFUSED)
    assert page.locator(".sd-tokens .sd-token[tabindex='0']").count() == 1
    finish(page, "#0", 24)
    assert token["rejected"].is_hidden()
    for kind in MARKED:
        button[kind].click()
    assert {kind: token[kind].evaluate(LOOKS) for kind in MARKED} == marked
    assert token["rejected"].is_visible()
    set_slider(page, "lookahead", 0)
    finish(page, "#0", 4)
    assert token["plain"].is_visible() and token["plain"].evaluate(LOOKS) == PLAIN
    assert page.get_by_role("button", name="plain without a guess").count() == 0
    assert page.locator(".sd-legend").inner_text().count("without a guess 4") == 1
