"""Step through: a finished run, or one from a file, round by round."""

import gradio as gr


def panel() -> gr.HTML:
    """What the tab shows."""
    return gr.HTML("", elem_id="step")
