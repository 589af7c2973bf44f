"""The Explore tab in a real browser: a sweep completes, the sliders answer, Stop stops, the numbers can be read."""

from collections.abc import Callable
from typing import Any

import pytest

from specdec.decoding import expected_tokens, speed_up
from tests.ui.axe import faults_in_both_themes
from tests.ui.test_browser import set_slider
from tests.ui.toy_server import HOSTILE

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
DONE = ".sd-explore[data-state=done]"
TRACES = "document.querySelector('[data-chart=explore]').data.map(({ x, y }) => [[...x], [...y]])"
WHAT_IF = """() => [...document.querySelectorAll(".sd-whatif :is(input, .sd-whatif-says)")]
  .map((node) => node.value ?? node.textContent)"""
ALPHAS, COSTS, KS = [0, 0.25, 0.5, 0.8, 0.99, 1], [0, 0.05, 0.3, 1], range(13)


def explore(page: Any, most: int, tokens: int) -> None:
    """Open the tab and press its button."""
    page.get_by_role("tab", name="Explore").click()
    set_slider(page, "explore-most", most)
    set_slider(page, "explore-tokens", tokens)
    run = int(page.locator(".sd-explore").get_attribute("data-run") or 0) + 1
    page.locator("#explore-start").click()
    page.wait_for_selector(f".sd-explore[data-run='{run}']")


def test_a_sweep_completes_and_shows_what_it_found(demo: str, visit: Visit):
    """The bundled pair, dark, on a phone: points for every k, theory beside them, a sentence, a table.

    The sliders begin from what was measured, and go back to it.
    """
    page = visit(demo, viewport={"width": 390, "height": 844}, color_scheme="dark", has_touch=True)
    explore(page, 3, 16)
    page.wait_for_selector(DONE)
    finding = page.locator("[data-of=lookahead] .sd-finding")
    assert "k = " in finding.inner_text()
    assert "theory" in finding.inner_text()
    (what_if, theory, measured) = page.evaluate(TRACES)
    assert (what_if[0], theory[0], measured[0]) == ([*range(13)], [0, 1, 2, 3], [1, 2, 3])
    assert all(times > 0 for times in [*theory[1], *measured[1]])
    page.locator(".sd-numbers summary").click()
    rows = page.locator(".sd-numbers tbody tr")
    assert [row.split()[0] for row in rows.all_inner_texts()] == ["plain", "1", "2", "3"]
    assert page.locator(".sd-numbers tbody th[scope=row]").count() == 4
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    shown = float(page.get_by_role("slider", name="α accepted ÷ judged").input_value())
    assert f"α = {shown:.2f}" in page.locator(".sd-explore-about").inner_text()
    assert faults_in_both_themes(page) == []
    measured = page.evaluate(WHAT_IF)
    for slider in page.locator(".sd-whatif input").all():
        slider.press("End" if slider.input_value() == "0" else "Home")
    moved = page.evaluate(WHAT_IF)
    assert [one != other for one, other in zip(moved, measured, strict=True)] == [True] * 4
    page.get_by_role("button", name="As measured").click()
    assert page.evaluate(WHAT_IF) == measured


def test_every_pair_of_bundled_models_is_compared(demo: str, visit: Visit):
    """Two targets, three drafts: six cells with a speed-up and an α, the best in a sentence."""
    page = visit(demo)
    page.get_by_role("tab", name="Explore").click()
    page.get_by_role("radio", name="model sizes").check()
    explore(page, 3, 8)
    page.wait_for_selector(DONE)
    assert page.locator("[data-of=models] .sd-finding").inner_text().count("specdec-") == 2
    cells = page.locator(".sd-heat td[data-heat]").all_inner_texts()
    assert len(cells) == 6
    assert all("×" in cell and "α" in cell for cell in cells)
    assert page.locator(".sd-explore-chart").is_hidden()
    page.get_by_role("radio", name="lookahead k").check()
    assert page.locator(".sd-explore-chart").is_visible()


def test_progress_is_told_and_stop_leaves_what_was_measured(slow: str, visit: Visit):
    """Rounds of 40 ms: the bar moves, points come one by one, Stop ends it, the next sweep works."""
    page = visit(slow)
    explore(page, 4, 64)
    page.wait_for_function("/^k = 2 · 3 of 7$/.test(document.querySelector('.sd-explore-count').textContent)")
    assert 2 <= page.locator(".sd-explore-progress").evaluate("bar => bar.value") <= 7
    page.wait_for_function(f"{TRACES}[2][0].length >= 1")
    page.locator("#explore-stop").click()
    page.wait_for_selector(".sd-explore[data-state=stopped]")
    assert page.locator(".sd-explore .sd-status").inner_text().startswith("Stopped after ")
    assert page.evaluate(TRACES)[2][0][0] == 1
    assert page.locator("[data-of=lookahead] .sd-finding").is_hidden()
    page.wait_for_function("!document.querySelector('#explore-start').disabled")
    explore(page, 2, 8)
    page.wait_for_selector(DONE)
    assert page.evaluate(TRACES)[2][0] == [1, 2]
    assert page.locator("[data-of=lookahead] .sd-finding").inner_text().startswith("Best here: k = 2")


def test_an_error_is_a_sentence_and_the_page_goes_on(slow: str, visit: Visit):
    """Without a drafter there is nothing to explore; with one there is."""
    page = visit(slow)
    page.get_by_label("Drafter").click()
    page.get_by_role("option", name="none").click()
    explore(page, 1, 8)
    page.wait_for_selector(".sd-explore[data-state=error]")
    assert page.get_by_role("alert").inner_text() == "Choose a drafter: without drafts there is no k to explore."
    page.get_by_label("Drafter").click()
    page.get_by_role("option", name="draft", exact=True).click()
    page.wait_for_function("!document.querySelector('#explore-start').disabled")
    explore(page, 1, 8)
    page.wait_for_selector(DONE)
    assert page.get_by_role("alert").count() == 0


def test_the_sliders_answer_to_the_keyboard(slow: str, visit: Visit):
    """Before anything is measured: α and c by keys alone; the sentence and the dashed curve follow theory."""
    page = visit(slow)
    page.get_by_role("tab", name="Explore").click()
    says = page.locator(".sd-whatif-says")
    assert page.get_by_role("button", name="As measured").count() == 0
    says.filter(has_text="With α = 0.80, c = 0.10 and r = 0.05 the best k would be 5: 2.11").wait_for()
    page.get_by_role("slider", name="r cost of a further token").press("Home")
    page.get_by_role("slider", name="c cost of a draft").press("Home")
    assert "the best k would be 12, the most there is" in says.inner_text()
    for _ in range(5):
        page.get_by_role("slider", name="c cost of a draft").press("ArrowRight")
    expected = [speed_up(0.8, k, 0.05) for k in KS]
    best = expected.index(max(expected))
    assert f"α = 0.80, c = 0.05 and r = 0.00 the best k would be {best}: {max(expected):.2f}" in says.inner_text()
    assert page.evaluate(TRACES)[0][1] == pytest.approx(expected)
    page.get_by_role("slider", name="α accepted ÷ judged").press("Home")
    assert says.inner_text().endswith("no k would pay: plain decoding would be fastest.")


def test_the_browsers_formula_is_the_engines(slow: str, visit: Visit):
    """theory.js and specdec.decoding.theory give the same numbers over a grid, α = 1 included."""
    page = visit(slow)
    grid = [(alpha, k, c, v) for alpha in ALPHAS for k in KS for c in COSTS for v in (1.0, 1.7)]
    found = page.evaluate(
        """async (grid) => {
          const theory = await import(new URL("ui/theory.js", document.baseURI));
          return grid.map(([alpha, k, c, v]) => [theory.expectedTokens(alpha, k), theory.speedUp(alpha, k, c, v)]);
        }""",
        grid,
    )
    assert [one for one, _ in found] == pytest.approx([expected_tokens(alpha, k) for alpha, k, _, _ in grid])
    assert [two for _, two in found] == pytest.approx([speed_up(*letters) for letters in grid])


def test_hostile_text_does_no_harm(hostile: str, visit: Visit):
    """Attacks as prompt and as tokens: no text of theirs is shown at all, and none runs."""
    page = visit(hostile)
    page.locator("#prompt textarea").fill("".join(HOSTILE))
    explore(page, 2, 40)
    page.wait_for_selector(DONE)
    assert page.locator(".sd-explore :is(img, script, iframe, object)").count() == 0
