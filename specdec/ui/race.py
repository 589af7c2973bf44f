"""The race: plain and speculative decoding of the same request, measured one after the other, replayed side by side."""

from typing import Any

import gradio as gr

from specdec.serving import Service
from specdec.ui.watch import Stops


def panel() -> gr.HTML:
    """What the tab shows."""
    return gr.HTML("", elem_id="race")


def wire(service: Service, stops: Stops, view: gr.HTML, inputs: list[Any]) -> None:
    """What happens on a click; `inputs` are the prompt and the settings, in the order of `Form`'s fields."""
