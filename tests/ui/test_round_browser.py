"""What Step through draws of a round agrees with the round's numbers; line breaks inside tokens. In a real browser."""

from collections.abc import Callable
from typing import Any

import pytest

from specdec.serving import Service
from specdec.trace import Trace
from specdec.ui.watch import Form
from tests.serving.toys import toy
from tests.ui.test_browser import generate
from tests.ui.test_step_browser import go_on, opened, turn_to_steps

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
SETTINGS = "?prompt=Once+upon+a+time+there+was+a+little+dog+named+Max.&temperature=1&seed=3&max_tokens=40"
REFUSALS = 6
DRAWN = """(places) => places.map((place) => {
  const find = (name) => place.querySelector(`.st-${name}`);
  const box = (name) => find(name).getBoundingClientRect();
  const share = (x) => (x - box("track").left - find("track").clientLeft) / find("track").clientWidth;
  const number = (name) => Number(find(name).textContent.split(" ")[1]);
  return [number("pass"), number("draft small"), share((box("u").left + box("u").right) / 2), share(box("fill").right)];
})"""
LINES = ("zero", " one", "\n", " three", " four\nfour", " five\n", " six", "\n\n")
BREAKS = """(tokens) => tokens.map((node) => [
  node.dataset.kind,
  node.facts.text,
  node.textContent,
  node.querySelectorAll(".sd-break").length,
  new Set([...node.getClientRects()].map(({ top }) => Math.round(top))).size,
])"""


def test_a_run_is_drawn_to_its_numbers(demo: str, visit: Visit):
    """The bundled pair: p and q in figures, acceptance as a bar, u as a mark, beyond it where the draft was refused.

    Played in slow motion a round takes its time.
    """
    page = visit(demo + SETTINGS)
    generate(page)
    page.wait_for_selector(".sd[data-state=done]")
    refused = 0
    for event in turn_to_steps(page):
        judged = [chip for chip in event["chips"] if chip[0] in "ar"]
        drawn = page.locator(".st-place:has(.st-u)").evaluate_all(DRAWN)
        for (kind, _, *numbers, _), (p, q, u, bar) in zip(judged, drawn, strict=True):
            assert [p, q] == pytest.approx(numbers[:2], rel=0.05, abs=6e-4)
            assert [u, bar] == pytest.approx(numbers[2:], abs=0.01)
            assert (u > bar) == (kind == "r")
            refused += kind == "r"
        go_on(page)
    assert refused >= REFUSALS


def test_the_last_round_of_a_stopped_run_says_so(slow: str, visit: Visit):
    """Stopped long before its end, and walked to its last round."""
    page = visit(slow)
    generate(page, "#0", 5_000)
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector(".sd[data-state=stopped]")
    turn_to_steps(page)
    page.locator(".st-scrub").press("End")
    page.wait_for_function("document.querySelector('.st-sentence').innerText.includes('Stopped.')")
    page.get_by_role("combobox", name="Pace").select_option("slow motion, 2 s a round")
    page.get_by_role("button", name="First round").click()
    began = page.evaluate("performance.now()")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('.st-where').textContent.startsWith('Round 2 of')")
    assert page.evaluate("performance.now()") - began >= 1_500


def test_a_line_break_in_a_token_is_marked_and_broken_where_it_is_part_of_the_text(demo: str, visit: Visit):
    """Words that hold line breaks: each has a mark; the text breaks behind it, but not at one that was refused."""
    form = Form("#0", "target", "draft", 3, False, 0, 40, "rejection", 0, 1)
    service = Service(loader=lambda name: toy(name, errs=3 if name == "draft" else 0, words=LINES))
    trace = Trace.collect(service.stream(form.request()))
    page = visit(demo)
    page.get_by_role("tab", name="Step through").click()
    opened(page, trace.to_json())
    page.get_by_role("tab", name="Decode").click()
    tokens = page.locator(".sd-tokens .sd-token").evaluate_all(BREAKS)
    broken = {(kind, text) for kind, text, *_ in tokens if "\n" in text}
    assert {kind for kind, _ in broken} >= {"accepted", "rejected", "recovered", "discarded"}
    assert {("rejected", LINES[4]), ("accepted", LINES[4])} <= broken
    for kind, text, inner, marks, lines in tokens:
        assert marks == text.count("\n")
        inside = "" if kind in ("rejected", "discarded") else text.strip(" ").rstrip("\n")
        assert (inner.count("\n"), lines) == (inside.count("\n"), inside.count("\n") + 1)
    for kind in ("rejected", "discarded"):
        page.locator(f"[data-kind-of={kind}]").click()
    assert page.locator(".sd-tokens").inner_text().strip() == trace.text.strip()
