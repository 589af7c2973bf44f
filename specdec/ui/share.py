"""The Share tab: what `handover` makes of the settings, to be copied, and a picture of the last run."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import gradio as gr

from specdec.errors import SpecdecError
from specdec.serving import Service
from specdec.ui import handover
from specdec.ui.handlers import takes_form
from specdec.ui.models import lists
from specdec.ui.watch import Form, sentence

ABSOLUTE = "(text) => text.startsWith('?') ? new URL(text, location.origin + location.pathname).href : text"
SEEDED = (
    "(...settings) => import(new URL('ui/share.js', document.baseURI)).then((share) => share.seeded(settings, "
    f"{[spec.name for spec in fields(Form)].index('seed')}))"
)
PICTURE = "() => import(new URL('ui/picture.js', document.baseURI)).then((picture) => picture.save())"


def panel() -> list[gr.Textbox]:
    """What the tab shows: the link, the command, the snippet."""
    told = (
        "Runs what the settings say; where they have no seed, with that of the last run, so that it is repeated "
        "(where the engine chooses k, only if greedy or by exact match). Before a first run each draws anew."
    )
    with gr.Column(elem_id="share"):
        texts = [
            _text("A link to this page with these settings", 3, "share-link", told),
            _text("On the command line", 3, "share-command"),
            _text("In Python", 8, "share-python"),
        ]
        _picture()
    return texts


def wire(
    page: gr.Blocks, tab: gr.Tab, texts: list[gr.Textbox], controls: list[Any], generate: gr.Button, service: Service
) -> None:
    """Fill the texts when the tab is opened, and the controls when a page is opened by a link; then it is ready.

    `controls` are the prompt and the settings, in the order of `Form`'s fields; which models there are is asked anew.
    `generate` cannot be pressed before, so that no run has other settings than those of the link.
    """
    shown = tab.select(_texts, controls, texts, js=SEEDED, api_name="share", show_progress="hidden", queue=False)
    shown.then(None, texts[0], texts[0], js=ABSOLUTE, api_visibility="private")

    def opened(request: gr.Request) -> list[Any]:
        asked = dict(request.query_params)
        prompt, _, _, *others = handover.restored(asked, controls)
        models = lists(service.offers, asked.get("target", ""), asked.get("draft", ""))
        return [prompt, *models, *others, gr.update(interactive=True)]

    page.load(opened, None, [*controls, generate], api_visibility="private", show_progress="hidden", queue=False)


@takes_form
def _texts(*values: Any) -> tuple[str, str, str]:
    """Link, command, snippet; a sentence in place of what cannot be made of the settings."""
    form = Form(*values)
    texts = [_text_or_why(made, form) for made in (handover.link, handover.command, handover.snippet)]
    return texts[0], texts[1], texts[2]


def _text_or_why(made: Callable[[Form], str], form: Form) -> str:
    try:
        return made(form)
    except SpecdecError as error:
        return f"# {sentence(str(error))}"


def _picture() -> None:
    """A button that lets the browser draw the last run into a file, and what that shows in words."""
    button = gr.Button("Save a picture of the last run (PNG)", elem_id="share-picture")
    words = _text("The picture in words", 3, "share-words")
    button.click(None, None, words, js=PICTURE, api_visibility="private")


def _text(label: str, lines: int, name: str, info: str | None = None) -> gr.Textbox:
    return gr.Textbox(
        label=label, info=info, lines=lines, max_lines=2 * lines, interactive=False, buttons=["copy"], elem_id=name
    )
