"""A token's tooltip in a real browser: what target and draft held likeliest, by mouse, keyboard and finger."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.test_browser import generate, set_slider

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
PROMPT = "Once upon a time there was a little dog named Max."
LEFT = "what was left: max(0, p − q)"


def story(page: Any, temperature: float = 0.8) -> None:
    """A run in which drafts are refused."""
    set_slider(page, "temperature", temperature)
    generate(page, PROMPT, 200)
    page.wait_for_selector(".sd[data-state=done]")


def first(page: Any, kind: str) -> Any:
    """The first token of a kind, in sight, once all scrolling is over."""
    token = page.locator(f".sd-tokens .sd-{kind}").first
    token.scroll_into_view_if_needed()
    page.evaluate(
        """() => new Promise((done) => {
          let still = 0, before = "";
          const look = () => {
            const now = [scrollY, document.querySelector(".sd-text").scrollTop].join();
            still = now === before ? still + 1 : 0;
            before = now;
            still > 10 ? done() : requestAnimationFrame(look);
          };
          look();
        })"""
    )
    return token


def columns(page: Any) -> dict[str, list[dict[str, Any]]]:
    """The columns of bars that the tooltip shows, by their heads."""
    page.wait_for_selector(".sd-tip:not([hidden])")
    found: dict[str, list[dict[str, Any]]] = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll(".sd-tip .sd-top")].map((column) => [
          column.querySelector("p").textContent,
          [...column.querySelectorAll("li")].map((row) => ({
            text: row.querySelector("span").textContent,
            value: Number(row.querySelector("b").textContent),
            share: row.querySelector("i").offsetWidth / row.clientWidth,
            own: row.classList.contains("sd-own"),
          })),
        ]))"""
    )
    return found


def check_bars(rows: list[dict[str, Any]]) -> None:
    """Sorted, as long as they are likely, of no more than five and the token itself, that one marked."""
    listed = [row["value"] for row in rows[:5]]
    assert 1 <= len(rows) <= 6
    assert listed == sorted(listed, reverse=True)
    assert all(row["share"] == pytest.approx(row["value"], abs=0.03) for row in rows)
    assert sum(row["own"] for row in rows) <= 1


def test_a_refused_draft_shows_both_distributions_and_its_correction_what_was_left(demo: str, visit: Visit):
    """Pointed at: "target p" and "draft q" beside each other with the draft marked in both; then max(0, p − q)."""
    page = visit(demo)
    story(page)
    token = first(page, "rejected")
    token.hover()
    both = columns(page)
    assert list(both) == ["target p", "draft q"]
    figures = page.locator(".sd-tip dd").all_inner_texts()
    for rows, figure in zip(both.values(), figures[1:3], strict=True):
        check_bars(rows)
        (own,) = [row for row in rows if row["own"]]
        assert own["value"] == pytest.approx(float(figure), abs=0.0011)
        assert own["text"].lstrip("␣") == token.text_content().strip()
    first(page, "recovered").hover()
    page.wait_for_function("document.querySelector('.sd-tip').innerText.includes('recovered')")
    left = columns(page)
    assert list(left) == [LEFT]
    check_bars(left[LEFT])
    refused = next(row["text"] for row in both["draft q"] if row["own"])
    assert refused not in [row["text"] for row in left[LEFT]]
    first(page, "bonus").hover()
    page.wait_for_function("document.querySelector('.sd-tip').innerText.includes('bonus')")
    assert list(columns(page)) == ["target p"]


def test_a_token_says_which_of_the_answer_it_is(demo: str, visit: Visit):
    """Numbered from 1 in reading order; a draft says which of its round it was, one not kept where it was meant."""
    page = visit(demo)
    generate(page, PROMPT, 60)
    page.wait_for_selector(".sd[data-state=done]")
    facts: list[dict[str, Any]] = page.locator(".sd-tokens .sd-token").evaluate_all("nodes => nodes.map(n => n.facts)")
    answer = [fact["position"] for fact in facts if fact["kind"] not in ("rejected", "discarded")]
    assert answer == list(range(1, 61))
    place, draft, at = 0, 0, -1
    for fact in facts:
        kept = fact["kind"] not in ("rejected", "discarded")
        if fact["round"] != at:
            at, draft, before = fact["round"], 0, place
        place += kept
        if fact["kind"] in ("recovered", "bonus", "plain"):
            assert "draft" not in fact
            continue
        draft += 1
        proposed = sum("draft" in other for other in facts if other["round"] == at)
        assert (fact["position"], fact["draft"], fact["proposed"]) == (before + draft, draft, proposed)
    refused = first(page, "rejected")
    refused.hover()
    fact = refused.evaluate("node => node.facts")
    page.get_by_text(
        f"meant for position {fact['position']}, draft {fact['draft']} of {fact['proposed']}", exact=True
    ).wait_for()
    first(page, "recovered").hover()
    page.get_by_text(f"position {fact['position']}", exact=True).wait_for()


def test_greedy_shows_what_the_target_thought(demo: str, visit: Visit):
    """The softmax of the target, named as such; the draft's own choice is certain."""
    page = visit(demo)
    story(page, temperature=0)
    first(page, "accepted").hover()
    thought = columns(page)
    assert list(thought) == ["target’s softmax", "draft q"]
    assert thought["target’s softmax"][0]["own"] and [row["value"] for row in thought["draft q"]] == [1]


def test_bars_are_there_for_the_keyboard_and_stay_while_it_scrolls(demo: str, visit: Visit):
    """Focus shows them, the arrow keys take them along, Escape puts them away."""
    page = visit(demo)
    story(page)
    first(page, "rejected").focus()
    assert list(columns(page)) == ["target p", "draft q"]
    page.keyboard.press("ArrowRight")
    assert list(columns(page)) == [LEFT]
    page.keyboard.press("End")
    page.wait_for_selector(".sd-tip:not([hidden])")
    page.keyboard.press("Escape")
    assert page.locator(".sd-tip").is_hidden()


def test_bars_fit_a_phone_and_come_with_a_tap(demo: str, visit: Visit):
    """390 pixels: a tap shows the tooltip inside the window, a tap elsewhere puts it away."""
    page = visit(demo, viewport={"width": 390, "height": 844}, has_touch=True)
    story(page)
    first(page, "rejected").tap()
    assert list(columns(page)) == ["target p", "draft q"]
    box = page.locator(".sd-tip").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert box["y"] >= 0 and box["y"] + box["height"] <= 844
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator(".sd-status").tap()
    assert page.locator(".sd-tip").is_hidden()
