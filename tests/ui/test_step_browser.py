"""Step through, in a real browser."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from specdec.records import Started
from specdec.serving import Service
from specdec.trace import Trace
from specdec.ui.watch import Form
from tests.example_run import RUN, STARTED
from tests.serving.toys import load_toy
from tests.ui.test_browser import generate
from tests.ui.toy_server import HOSTILE

pytestmark = pytest.mark.browser

Visit = Callable[..., Any]
VERDICTS = {"a": "✓ accepted", "r": "× rejected", "d": "– discarded, never judged"}


def finish(page: Any, prompt: str, tokens: int) -> list[dict[str, Any]]:
    """Generate to the end and go to Step through; the events of the rounds."""
    generate(page, prompt, tokens)
    page.wait_for_selector(".sd[data-state=done]")
    return turn_to_steps(page)


def turn_to_steps(page: Any) -> list[dict[str, Any]]:
    page.get_by_role("tab", name="Step through").click()
    page.wait_for_selector(".st[data-state=paused]")
    events: list[dict[str, Any]] = page.evaluate("window.specdecRun.events")
    return [event for event in events if event["event"] == "round"]


def shown(page: Any) -> int:
    """The number of the round that is shown."""
    return int(page.locator(".st-where").inner_text().split()[1])


def go_on(page: Any) -> None:
    """One round on; at the last round the button says that it can do no more."""
    button = page.get_by_role("button", name="One round on")
    if button.get_attribute("aria-disabled") == "false":
        button.click()


def tokens(page: Any) -> list[str]:
    """All tokens of the Decode tab with their kinds, whether it is shown or not."""
    found: list[str] = page.locator(".sd-tokens .sd-token").evaluate_all(
        "nodes => nodes.map(node => node.dataset.kind + node.textContent)"
    )
    return found


def open_file(page: Any, name: str, content: str) -> None:
    """Press the button and choose a file."""
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Open a run").click()
    chooser.value.set_files({"name": name, "mimeType": "application/json", "buffer": content.encode()})


def opened(page: Any, content: str) -> list[dict[str, Any]]:
    """Open a good file; the events of its rounds."""
    run = int(page.locator(".sd").get_attribute("data-run") or 0) + 1
    open_file(page, "run.json", content)
    page.wait_for_selector(f".sd[data-run='{run}']", state="attached")
    return turn_to_steps(page)


def left_over(page: Any) -> list[dict[str, Any]]:
    """The rows of the table beneath a round with a refused draft."""
    found: list[dict[str, Any]] = page.locator(".st-left tbody tr").evaluate_all(
        """rows => rows.map(row => ({
          text: row.querySelector(".sd-token").textContent.replaceAll("␣", " "),
          kind: row.querySelector(".sd-token").className.split("sd-").at(-1),
          numbers: Object.fromEntries([...row.querySelectorAll("td")].map(cell =>
            [cell.querySelector(".st-bar-of").className.at(-1), cell.querySelector(".st-number").textContent])),
        }))"""
    )
    return found


def test_a_run_is_walked_through_by_buttons_and_keys(slow: str, visit: Visit):
    """Every round shows its drafts with their outcomes and what the text gained; keys do what buttons do."""
    page = visit(slow)
    page.get_by_role("tab", name="Step through").click()
    assert page.get_by_text("Nothing to step through yet.").is_visible()
    assert page.get_by_role("button", name="Download").is_disabled()
    page.get_by_role("tab", name="Decode").click()
    rounds = finish(page, "#0", 24)
    said = "zero" if page.locator(".st-before").inner_text().endswith("zero") else "#0"
    for number, event in enumerate(rounds, 1):
        assert shown(page) == number
        drafts = [chip for chip in event["chips"] if chip[0] in VERDICTS]
        kept = [chip[1] for chip in event["chips"] if chip[0] not in "rd"]
        assert page.locator(".st-token").evaluate_all("n => n.map(x => x.textContent)") == [chip[1] for chip in drafts]
        verdicts = page.locator(".st-place:not(.st-end) .st-verdict").all_inner_texts()
        assert verdicts == [VERDICTS[chip[0]] for chip in drafts]
        assert page.locator(".st-gain .sd-token").evaluate_all("n => n.map(x => x.textContent)") == kept
        judged = [chip for chip in drafts if chip[0] != "d"]
        assert page.locator(".st-track .st-u").count() == len(judged)
        assert page.locator(".st-before").inner_text().endswith(said.strip())
        said = kept[-1]
        go_on(page)
    assert shown(page) == len(rounds)
    page.get_by_role("button", name="One round back").click()
    assert shown(page) == len(rounds) - 1
    page.get_by_role("button", name="First round").click()
    assert shown(page) == 1
    page.locator(".st").focus()
    for key, number in [("ArrowRight", 2), ("ArrowLeft", 1), ("ArrowLeft", 1), ("End", len(rounds)), ("Home", 1)]:
        page.keyboard.press(key)
        assert shown(page) == number
    page.get_by_label("Round", exact=True).fill("3")
    assert shown(page) == 3
    page.get_by_label("Round", exact=True).press("ArrowRight")
    assert shown(page) == 4


def test_it_plays_pauses_and_keeps_the_pace(slow: str, visit: Visit):
    """Space plays and pauses; in real time the end is reached as fast as the engine reached it, and playing ends."""
    page = visit(slow)
    rounds = finish(page, "#0", 40)
    sentence = page.locator(".st-sentence")
    page.locator(".st").focus()
    page.keyboard.press("Space")
    assert page.locator(".st").get_attribute("data-state") == "playing"
    assert page.get_by_role("button", name="Pause").is_visible()
    assert sentence.get_attribute("aria-live") == "polite"
    page.keyboard.press("Space")
    assert page.locator(".st").get_attribute("data-state") == "paused"
    page.keyboard.press("Home")
    page.get_by_role("combobox", name="Pace").select_option("real time")
    began = page.evaluate("performance.now()")
    page.get_by_role("button", name="Play").click()
    assert sentence.get_attribute("aria-live") == "off"
    page.wait_for_selector(".st[data-state=paused]")
    took = page.evaluate("performance.now()") - began
    assert shown(page) == len(rounds)
    assert took >= 1000 * sum(sum(event["seconds"]) for event in rounds[:-1])
    assert "All 40 tokens asked for are there." in sentence.inner_text()


def test_keys_elsewhere_are_left_alone(slow: str, visit: Visit):
    """Under the pointer they count while no other control has the focus, never while somebody types."""
    page = visit(slow)
    finish(page, "#0", 24)
    page.locator(".st-picture").hover()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    assert shown(page) == 2
    page.locator("#prompt textarea").focus()
    before = page.locator("#prompt textarea").input_value()
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    assert shown(page) == 2
    assert page.locator("#prompt textarea").input_value() == f" {before}"
    page.evaluate("document.activeElement.blur()")
    page.locator("h1").hover()
    page.keyboard.press("ArrowRight")
    assert shown(page) == 2


@pytest.mark.parametrize("rule", ["greedy", "rejection", "match"])
def test_each_kind_of_round_is_told_in_plain_words(slow: str, visit: Visit, rule: str):
    """Kept, refused, failed, ended: what the sentence says of the example run, under each way to judge."""
    refused = {
        "greedy": "Where the draft said ‘ is’, the target's best token was ‘ was’: that went in.",
        "rejection": "At ‘ is’ u = 0.375 fell above p/q = 0.250, so the target put in ‘ was’ from what was left.",
        "match": "Where the draft said ‘ is’, the target's own draw was ‘ was’: that stayed.",
    }
    settings = {"params": {"temperature": 0.0 if rule == "greedy" else 1.0}}
    settings |= {} if rule == "greedy" else {"acceptance": rule}
    started: Started = replace(STARTED, settings=settings)
    page = visit(slow)
    page.get_by_role("tab", name="Step through").click()
    opened(page, Trace.collect((started, *RUN[1:])).to_json())
    said = [
        "All 3 drafts kept. The same pass gave one token more: the bonus ‘ time’.",
        f"1 of 3 drafts kept. {refused[rule]} The draft behind it was discarded.",
        "The drafter failed (the drafter failed), so the target went on alone with ‘ the’.",
        "2 of 3 drafts kept. The run ended there, before the rest was judged. The model ended its text.",
    ]
    for sentence in said:
        assert page.locator(".st-sentence").text_content().replace("\u00a0", " ") == sentence
        assert (page.locator(".st-u").count() > 0) == (rule == "rejection" and "failed" not in sentence)
        go_on(page)


@pytest.mark.parametrize("rule", ["greedy", "rejection", "match"])
def test_what_was_left_is_seen_where_a_draft_was_refused(slow: str, visit: Visit, rule: str):
    """p, q and the residual of the refused draft's place, as the engine had them; what happens instead elsewhere."""
    columns = {"greedy": ["s"], "rejection": ["p", "q", "r"], "match": ["p", "q"]}[rule]
    acceptance: Any = "match" if rule == "match" else "rejection"
    form = Form("#0", "target", "draft", 3, False, 0.0 if rule == "greedy" else 2.5, 24, acceptance, 0, 1, 5)
    page = visit(slow)
    page.get_by_role("tab", name="Step through").click()
    rounds = opened(page, Trace.collect(Service(loader=load_toy).stream(form.request())).to_json())
    refusals = [event for event in rounds if any(chip[0] == "r" for chip in event["chips"])]
    assert len(refusals) > 2
    for event in refusals[:3]:
        page.get_by_label("Round", exact=True).fill(str(event["n"] + 1))
        refused, own = (next(chip for chip in event["chips"] if chip[0] == kind) for kind in "rc")
        shown_rows = left_over(page)
        assert [row["text"] for row in shown_rows if row["kind"] == "rejected"] == [refused[1]]
        assert [row["text"] for row in shown_rows if row["kind"] == "recovered"] == [own[1]]
        for name in columns:
            flat = (own[6] | refused[6])[name]
            listed = dict(zip(flat[1::2], flat[2::2], strict=True)) | ({refused[1]: 0} if name == "r" else {})
            numbers = {row["text"]: row["numbers"][name] for row in shown_rows if row["text"] in listed}
            assert numbers
            assert all(float(number) == pytest.approx(listed[text], abs=5e-4) for text, number in numbers.items())


def test_hostile_text_is_shown_here_too(hostile: str, visit: Visit):
    """Tokens that are attacks, live and from a file: text in boxes and sentences, and nothing else."""
    page = visit(hostile)
    finish(page, "".join(HOSTILE), 60)
    trace = page.evaluate("window.specdecRun.events.find((event) => event.event === 'trace').text")
    for _ in range(2):
        count = int(page.locator(".st-scrub").get_attribute("max"))
        for _ in range(count):
            assert (
                page.locator(":is(.st-stage, .st-left) :is(img, script, svg, iframe, a, input, style, object)").count()
                == 0
            )
            go_on(page)
        opened(page, trace)
    assert json.loads(trace)["settings"]["prompt"] == "".join(HOSTILE)


def test_a_phone_shows_a_round_without_sideways_scrolling(slow: str, visit: Visit):
    """390 pixels, dark, twelve drafts a round; nothing moves for whoever asked for less motion."""
    page = visit(slow, viewport={"width": 390, "height": 844}, color_scheme="dark", reduced_motion="reduce")
    box = page.locator("#lookahead input[type=number]")
    box.fill("12")
    box.press("Tab")
    finish(page, "#0", 40)
    for _ in range(3):
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.get_by_role("button", name="One round on").click()
    page.get_by_role("button", name="Play").click()
    assert page.locator(".st-place .st-gain").first.evaluate("node => getComputedStyle(node).animationName") == "none"
