"""The page in a real browser: it opens, streams, stops, explains itself, and shows any text as text."""

from collections.abc import Callable
from typing import Any

import pytest

from specdec.ui.charts import DARK
from tests.ui.axe import faults_in_both_themes
from tests.ui.toy_server import HOSTILE

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
ENDED = ".sd:is([data-state=done], [data-state=stopped], [data-state=error])"


def set_slider(page: Any, name: str, value: float) -> None:
    """Type a number beside a slider."""
    box = page.locator(f"#{name} input[type=number]")
    box.fill(str(value))
    box.press("Tab")


def generate(page: Any, prompt: str | None = None, tokens: int | None = None) -> None:
    """Fill in what is given, click, and wait until tokens appear (or an error does)."""
    if tokens:
        set_slider(page, "max-tokens", tokens)
    if prompt is not None:
        page.locator("#prompt textarea").fill(prompt)
    run = int(page.locator(".sd").get_attribute("data-run") or 0) + 1
    page.get_by_role("button", name="Generate").click()
    page.wait_for_selector(f".sd[data-run='{run}']")
    page.wait_for_selector(f".sd-tokens .sd-token, {ENDED}", state="attached")


def rounds(page: Any) -> int:
    """The figure the page shows."""
    text = page.locator("[data-figure=rounds]").inner_text()
    return int(text.replace(",", "")) if text != "–" else 0


def test_the_page_opens_and_can_be_used(demo: str, visit: Visit):
    """A heading, labelled controls with the models' sizes, a prompt that is filled in, and a button to press."""
    page = visit(demo)
    assert page.get_by_role("heading", name="specdec").is_visible()
    assert page.get_by_label("How should the story begin?").input_value()
    assert "params" in page.get_by_label("Target model").input_value()
    assert "params" in page.get_by_label("Drafter").input_value()
    assert page.get_by_role("button", name="Generate").is_enabled()
    assert page.get_by_role("button", name="Stop").is_disabled()
    page.get_by_role("button", name="A rainy day").click()
    page.wait_for_function("document.querySelector('#prompt textarea').value.startsWith('It was raining')")


def test_every_kind_of_token_is_marked(demo: str, visit: Visit):
    """The bundled pair tells a story; kept, refused and corrected tokens differ by class, label and line.

    Where a draft was refused, the next token in the page is what the target put in its place.
    """
    page = visit(demo)
    generate(page, "Once upon a time there was a little dog named Max.", 200)
    page.wait_for_selector(".sd[data-state=done]")
    lines = {}
    for kind in ("accepted", "rejected", "recovered", "bonus"):
        token = page.locator(f".sd-tokens .sd-{kind}").first
        assert token.get_attribute("aria-label").endswith(f", {kind}")
        lines[kind] = token.evaluate(
            "node => { const s = getComputedStyle(node); return s.textDecorationLine + s.textDecorationStyle }"
        )
    assert len(set(lines.values())) == 4
    behind = page.locator(".sd-tokens .sd-rejected").evaluate_all(
        "nodes => nodes.map(n => { do n = n.nextElementSibling; while (n && !n.dataset.kind); return n?.dataset.kind })"
    )
    assert set(behind) == {"recovered"}
    for name in ("speedup", "speed", "now", "acceptance", "length", "draft", "verify", "rounds", "ttft"):
        assert float(page.locator(f"[data-figure={name}]").inner_text()) > 0
    assert page.get_by_role("button", name="Generate").is_enabled()


def test_generate_brings_the_text_into_sight_from_any_tab(slow: str, visit: Visit):
    """Pressed while another view is in front."""
    page = visit(slow)
    page.get_by_role("tab", name="Explore").click()
    assert page.locator(".sd-text").is_hidden()
    generate(page, "#0", 8)
    assert page.locator(".sd-text").is_visible()
    assert page.get_by_role("tab", name="Decode").get_attribute("aria-selected") == "true"
    page.wait_for_selector(".sd[data-state=done]")


def test_stop_ends_the_run_and_the_page_is_ready_again(slow: str, visit: Visit):
    """Rounds of 40 ms: it ends within 100 of them, of 1,700, and another run works (one round: tests/serving)."""
    page = visit(slow)
    generate(page, tokens=5_000)
    page.wait_for_function("document.querySelectorAll('.sd-tokens .sd-token').length > 20")
    page.evaluate(
        """() => document.querySelector('#stop').addEventListener('click', () => {
          window.before = Number(document.querySelector('[data-figure=rounds]').textContent);
        })"""
    )
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector(".sd[data-state=stopped]")
    assert rounds(page) - page.evaluate("window.before") <= 100
    assert page.locator(".sd-status").inner_text() == "Stopped."
    page.wait_for_function("!document.querySelector('#generate').disabled")
    generate(page, tokens=4)
    page.wait_for_selector(".sd[data-state=done]")


def test_bad_input_gets_a_sentence_and_nothing_typed_is_lost(slow: str, visit: Visit):
    """An alert in the page says what is wrong; the prompt is still there; the next run works."""
    page = visit(slow)
    page.get_by_role("button", name="Advanced").click()
    for prompt, seed, said in [("x" * 20_001, "", "has 20,001 characters"), ("Once", "-1", "Seed must lie between 0")]:
        page.get_by_label("Seed").fill(seed)
        generate(page, prompt, 4)
        page.wait_for_selector(".sd[data-state=error]")
        assert said in page.get_by_role("alert").inner_text()
        assert page.locator("#prompt textarea").input_value() == prompt
        page.wait_for_function("!document.querySelector('#generate').disabled")
    assert faults_in_both_themes(page) == []
    page.get_by_label("Seed").fill("")
    generate(page, "Once", 4)
    page.wait_for_selector(".sd[data-state=done]")
    assert page.get_by_role("alert").count() == 0


def test_hostile_text_is_shown_and_never_run(hostile: str, visit: Visit):
    """Thirty attacks as prompt and as tokens: all text, in tooltips too. (One that ran would set window.hit.)"""
    page = visit(hostile)
    generate(page, "".join(HOSTILE), 60)
    page.wait_for_selector(".sd[data-state=done]")
    assert page.locator(".sd-prompt").text_content() == "".join(HOSTILE)
    shown = page.locator(".sd-tokens .sd-token").evaluate_all("nodes => nodes.map(node => node.textContent)")
    assert {word.strip() for word in HOSTILE} <= set(shown)
    assert page.locator(".sd-text :is(img, script, svg, iframe, a, input)").count() == 0
    for token in page.locator(".sd-tokens .sd-token").all()[:8]:
        token.hover()
        assert page.locator(".sd-tip :is(img, script, svg)").count() == 0


def test_text_and_charts_grow_and_nothing_is_made_again(slow: str, visit: Visit):
    """Tokens appear while the run goes on; charts keep their nodes over two runs, and share nothing with anybody."""
    page = visit(slow)
    page.locator(".sd-charts").scroll_into_view_if_needed()
    page.evaluate(
        """() => {
        window.marked = [...document.querySelectorAll('.sd-chart, .sd-chart .main-svg')];
        window.created = window.extended = 0;
        window.counts = [];
        const panel = document.querySelector('.sd'), list = document.querySelector('.sd-tokens');
        new MutationObserver(() => panel.dataset.state === 'running' && window.counts.push(list.childElementCount))
          .observe(list, { childList: true });
        const { newPlot, extendTraces } = Plotly;
        Plotly.newPlot = (...all) => { window.created += 1; return newPlot(...all); };
        Plotly.extendTraces = (...all) => { window.extended += 1; return extendTraces(...all); };
        }"""
    )
    for tokens in (200, 40):
        page.evaluate("window.counts = []; window.extended = 0")
        generate(page, tokens=tokens)
        page.wait_for_selector(".sd[data-state=done]")
        growing = [count for count in page.evaluate("window.counts") if count]
        assert len(growing) >= (3 if tokens == 200 else 1)
        assert growing == sorted(set(growing))
        assert page.evaluate("window.extended") >= (3 if tokens == 200 else 1)
        speed = page.evaluate("document.querySelector('[data-chart=speed]').data[0].x")
        assert (len(speed), speed[-1]) == (rounds(page) - 1, tokens)
        alone, running = page.evaluate(
            "document.querySelector('[data-chart=acceptance]').data.map(({ x }) => x.length)"
        )
        assert 2 < alone <= running <= rounds(page)
    assert page.evaluate("window.marked.every(node => document.contains(node))")
    assert page.evaluate("window.created") == 0
    titles = page.locator(".sd-chart .modebar-btn").evaluate_all("nodes => nodes.map(node => node.dataset.title)")
    assert not [title for title in titles if "hare" in title or "loud" in title]


def test_a_second_visitor_sees_its_place_and_a_closed_tab_lets_it_in(slow: str, visit: Visit):
    """One run at a time: the other is told how many are before it, and begins once the first tab is closed."""
    first, second = visit(slow), visit(slow)
    generate(first, tokens=5_000)
    set_slider(second, "max-tokens", 4)
    second.get_by_role("button", name="Generate").click()
    second.wait_for_selector(".sd[data-state=waiting]")
    assert second.locator(".sd-status").inner_text() == "Waiting for its turn: one run is before this one."
    first.close()
    second.wait_for_selector(".sd[data-state=done]", timeout=5_000)


def test_tokens_can_be_read_by_keyboard_and_refused_ones_hidden(slow: str, visit: Visit):
    """One tab stop, arrow keys, a tooltip with round, p, q, u and acceptance, Escape puts it away.

    What is left with refused drafts hidden is exactly the text that was generated.
    """
    page = visit(slow)
    generate(page, "#0", tokens=8)
    page.wait_for_selector(".sd[data-state=done]")
    assert page.locator(".sd-tokens .sd-token[tabindex='0']").count() == 1
    page.locator(".sd-tokens .sd-token[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement === document.querySelectorAll('.sd-tokens .sd-token')[1]")
    page.locator(".sd-tokens .sd-accepted").first.focus()
    tip = page.locator(".sd-tip").inner_text()
    for fact in ("accepted", "round", "p target", "q draft", "accepted with", "u drawn"):
        assert fact in tip
    page.keyboard.press("Escape")
    assert page.locator(".sd-tip").is_hidden()
    for kind in ("rejected", "discarded"):
        page.get_by_role("button", name=kind).click()
    assert page.locator(".sd-tokens").inner_text() == " one two three four five six seven" + "zero"


def test_a_phone_needs_no_sideways_scrolling(slow: str, visit: Visit):
    """390 pixels wide, dark, before and after a run; the result is brought into sight."""
    page = visit(slow, viewport={"width": 390, "height": 844}, color_scheme="dark", has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("link", name="Settings").tap()
    page.wait_for_function("document.querySelector('#settings').getBoundingClientRect().top < innerHeight / 2")
    page.evaluate("scrollTo(0, 0)")
    generate(page, tokens=40)
    page.wait_for_selector(".sd[data-state=done]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator(".sd-stage").evaluate("node => node.getBoundingClientRect().top") < 844
    line = page.evaluate("document.querySelector('[data-chart=speed]').data[0].line.color")
    assert line == DARK.speed


@pytest.mark.parametrize("width", [762, 820, 902, 1024, 1122])
def test_between_phone_and_desktop_nothing_lies_over_the_settings(slow: str, visit: Visit, width: int):
    """The result keeps to its column, whatever room the settings beside it leave."""
    page = visit(slow, viewport={"width": width, "height": 900})
    assert (
        page.evaluate(
            "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('#result'))"
        )
        == 0
    )
