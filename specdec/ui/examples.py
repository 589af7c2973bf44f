"""Prompts to begin with, by kind, each with the settings under which it works.

The bundled models only tell children's stories; code, lists and chat are for a model that was taught to answer. Where
none of those is on offer, the prompt is filled in all the same, and a sentence says what to bring.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import gradio as gr

from specdec.serving import Offer, Service, targets
from specdec.ui.assets import page_file
from specdec.ui.models import DEFAULT, find, lists
from specdec.ui.watch import Form

STORY_LABEL, CHAT_LABEL = "How should the story begin?", "What do you ask of the model?"
INSTRUCT = "smollm2-135m-instruct"
NOTE = "import(new URL('ui/note.js', document.baseURI)).then((note) => note.start(element, props, watch));"


@dataclass(frozen=True, slots=True)
class Kind:
    """Examples of one kind: prompts by what their buttons say, and what they ask of the settings."""

    name: str
    vocabulary: str
    draft: str
    temperature: float
    chat: bool
    prompts: dict[str, str]

    def suits(self, offer: Offer | None) -> bool:
        """Whether a target is one for this kind."""
        return offer is not None and offer.vocabulary == self.vocabulary


def _instructed(name: str, temperature: float, prompts: dict[str, str]) -> Kind:
    return Kind(name, "smollm2", "ngram", temperature, True, prompts)


KINDS = (
    Kind(
        *("Story", "stories", DEFAULT, 0.8, False),
        {
            "A little dragon": "Once upon a time there was a little dragon who was afraid of the dark. One night,",
            "Two friends share": "Tom and Mia were best friends. They had only one cookie, so",
            "A rainy day": "It was raining all day long. Ben was sad because he wanted to play outside. His mom said,",
        },
    ),
    _instructed(
        *("Code", 0.0),
        {
            "A stack": "Write a small Python class Stack with push, pop and peek, with a docstring for each method.",
            "A palindrome": "Write a Python function that checks whether a word is a palindrome.",
            "A rectangle": "Write a Python class Rectangle with width, height, area and perimeter.",
        },
    ),
    _instructed(
        *("List", 0.3),
        {
            "Sea animals": "List ten animals that live in the sea, one a line.",
            "A week of sports": "List the days of the week with a sport for each.",
            "What to pack": "Make a packing list for a weekend in the mountains.",
        },
    ),
    _instructed(
        *("Chat", 0.7),
        {
            "Weather or climate?": "What is the difference between weather and climate?",
            "Better sleep": "Give me three tips for sleeping better.",
            "An email": "Write a polite email that moves a meeting from Monday to Tuesday.",
        },
    ),
)
FIRST = next(iter(KINDS[0].prompts.values()))


def panel() -> list[gr.Dataset]:
    """The buttons, a group for each kind."""
    with gr.Column(elem_id="examples"):
        return [_group(kind) for kind in KINDS]


def _group(kind: Kind) -> gr.Dataset:
    return gr.Dataset(
        label=kind.name,
        components=["textbox"],
        samples=[[prompt] for prompt in kind.prompts.values()],
        sample_labels=list(kind.prompts),
        type="index",
        elem_id=f"examples-{kind.name.lower()}",
        elem_classes="sd-prompts",
    )


def note() -> gr.HTML:
    """The place of the sentence."""
    return gr.HTML("", html_template=page_file("note.html"), js_on_load=NOTE, apply_default_css=False, elem_id="note")


def wire(service: Service, groups: Sequence[gr.Dataset], said: gr.HTML, controls: Sequence[Any]) -> None:
    """Let a click fill in what an example needs; `controls` are in the order of `Form`'s fields."""
    named = dict(zip((spec.name for spec in fields(Form)), controls, strict=True))
    filled = [named[name] for name in ("prompt", "target", "draft", "temperature", "chat")]
    for kind, group in zip(KINDS, groups, strict=True):
        group.click(
            partial(chosen, service, kind),
            [group, named["target"], named["draft"]],
            [*filled, said],
            api_visibility="private",
            show_progress="hidden",
            queue=False,
        )


def chosen(service: Service, kind: Kind, index: int, target: str, draft: str) -> list[Any]:
    """Prompt, target, draft, temperature, chat, and the sentence. Models that suit the kind are left as they are."""
    offers = service.offers
    text = list(kind.prompts.values())[index]
    prompt = gr.update(value=text, label=CHAT_LABEL if kind.chat else STORY_LABEL)
    if kind.suits(find(offers, target)):
        models = lists(offers, target, draft)
    elif fitting := next(filter(kind.suits, targets(offers)), None):
        models = lists(offers, fitting.name, kind.draft)
    else:
        said = missing(kind, find(offers, target), service.settings.bring)
        return [prompt, gr.skip(), gr.skip(), gr.skip(), gr.skip() if kind.chat else False, said]
    return [prompt, *models, kind.temperature, kind.chat, ""]


def missing(kind: Kind, target: Offer | None, bring: str) -> str:
    """What to bring so that examples of a kind work; nothing where they may, because nobody knows the target."""
    if not kind.chat or target is None or not target.vocabulary:
        return ""
    how = (
        "which can be fetched where this page runs on your own machine"
        if bring == "off"
        else "fetch it under Models, then choose this again"
    )
    return f"This needs a model that was taught to answer, such as {INSTRUCT}: {how}."
