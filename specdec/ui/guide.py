"""The guided start: three prompts, from easy to hard to guess, each with what to look at. And the header around it.

The steps are settings like any others: the page's controls are set to them, and Generate is pressed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from specdec.ui.assets import page_file
from specdec.ui.handover import restored

HEADER = """
import(new URL('ui/guide.js', document.baseURI)).then((guide) => guide.start(element, props, trigger));
import(new URL('ui/present.js', document.baseURI)).then((present) => present.start(element));
"""
GENERATE = "() => requestAnimationFrame(() => document.getElementById('generate').click())"
COMMON = {
    "target": "specdec-target-8x384",
    "draft": "specdec-draft-2x128",
    "lookahead": "4",
    "auto": "False",
    "max_tokens": "100",
    "acceptance": "rejection",
    "top_k": "0",
    "top_p": "1",
    "seed": "1",
    "chat": "False",
}


@dataclass(frozen=True, slots=True)
class Step:
    """What is shown, and the settings that show it: values by the names of `Form`'s fields, as in a link."""

    title: str
    text: str
    values: Mapping[str, str]


STEPS = (
    Step(
        "Easy to guess",
        "Green tokens are the draft's guesses that the target kept, blue ones the bonus after a round without a "
        "mistake. Watch the draft acceptance rate: this beginning is so usual that nearly every guess stands.",
        {
            **COMMON,
            "prompt": "Once upon a time, there was a little girl named Lily. She loved to play outside",
            "temperature": "0",
        },
    ),
    Step(
        "Now and then a surprise",
        "At temperature 0.8 words are drawn: red and struck through is the first guess refused, yellow what the target "
        "put in its place. Watch the mean acceptance length τ: so many tokens came of each pass of the target.",
        {**COMMON, "prompt": "Once upon a time there was a little dog named Max.", "temperature": "0.8"},
    ),
    Step(
        "Hard to guess",
        "An odd beginning at temperature 1.5: much red and yellow, few green, and a low draft acceptance rate. "
        "The text is still what the target alone would write, for a poor guess costs time and never truth.",
        {
            **COMMON,
            "prompt": "The tax inspector unscrewed the moon, and seven purple equations",
            "temperature": "1.5",
        },
    ),
)


def header() -> gr.HTML:
    """The top of the page: what this is, its tools, and the panel of the guided start."""
    return gr.HTML(
        "",
        html_template=page_file("header.html"),
        js_on_load=HEADER,
        apply_default_css=False,
        elem_id="top",
        steps=[{"title": step.title, "text": step.text} for step in STEPS],
    )


def wire(top: gr.HTML, controls: list[Any]) -> None:
    """Let a step of the guide set the controls, the prompt and the settings in `Form`'s order, and generate."""

    def chosen(event: gr.EventData) -> list[Any]:
        return restored(values(event._data), controls)

    top.select(chosen, None, controls, api_visibility="private", show_progress="hidden", queue=False).then(
        None, None, None, js=GENERATE, api_visibility="private"
    )


def values(told: Any) -> Mapping[str, str]:
    """The settings of the step that an event names; none where it names no step."""
    index = told.get("step") if isinstance(told, dict) else None
    return STEPS[index].values if type(index) is int and 0 <= index < len(STEPS) else {}
