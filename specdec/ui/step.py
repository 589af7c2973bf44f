"""Step through: a finished run, or one from a file, round by round.

The browser has a run's events already, and its trace with them; the server is asked only to read a file.
"""

from typing import Any

import gradio as gr

from specdec.errors import SpecdecError
from specdec.ui import traces
from specdec.ui.assets import page_file
from specdec.ui.watch import sentence

STEP = "import(new URL('ui/step.js', document.baseURI)).then((step) => step.start(element, props, server));"


def panel() -> gr.HTML:
    """What the tab shows."""
    return gr.HTML(
        "",
        html_template=page_file("step.html"),
        js_on_load=STEP,
        apply_default_css=False,
        elem_id="step",
        server_functions=[open_run],
        max_bytes=traces.MAX_BYTES,
    )


def open_run(text: Any) -> dict[str, str]:
    """A trace file's text as {"events": …}, or {"error": a sentence on what is wrong with it}."""
    if not isinstance(text, str):
        return {"error": "A run is opened from the text of a file."}
    try:
        return {"events": traces.events_of(text)}
    except SpecdecError as error:
        return {"error": sentence(str(error))}
