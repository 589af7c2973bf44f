"""The settings beside the result."""

from functools import partial
from typing import Any

import gradio as gr

from specdec.serving import Service
from specdec.ui.models import dropdowns

MAX_LOOKAHEAD = 12
EMPTY: Any = ""  # None becomes 0 as soon as Gradio shows it


def settings(service: Service) -> list[Any]:
    """The controls, in the order of `Form`'s fields."""
    limit = service.settings.max_new_tokens
    target, draft = dropdowns(service)
    lookahead = _slider(0, MAX_LOOKAHEAD, 3, step=1, label="Lookahead k", info="guesses a round", elem_id="lookahead")
    auto = gr.Checkbox(False, label="let the engine choose k", elem_id="auto")
    temperature = _slider(0, 2, 0.8, step=0.05, label="Temperature", info="0 is greedy", elem_id="temperature")
    tokens = _slider(1, limit, min(160, limit), step=1, label="Tokens to generate", elem_id="max-tokens")
    with gr.Accordion("Advanced", open=False, elem_id="advanced"):
        rule = gr.Radio(
            [("rejection sampling", "rejection"), ("exact match", "match")],
            value="rejection",
            label="Acceptance rule",
            info="both keep the target's distribution",
            elem_id="acceptance",
        )
        top_k = _slider(0, 100, 0, step=1, label="Top-k", info="0 is off", elem_id="top-k")
        top_p = _slider(0, 1, 1, step=0.01, label="Top-p", info="1 is off", elem_id="top-p")
        seed = gr.Number(EMPTY, label="Seed", info="empty: a new one each run", elem_id="seed")
        chat = gr.Checkbox(False, label="use the target's chat template", elem_id="chat")
    auto.change(
        lambda on: gr.update(interactive=not on),
        auto,
        lookahead,
        api_visibility="private",
        show_progress="hidden",
        queue=False,
    )
    return [target, draft, lookahead, auto, temperature, tokens, rule, top_k, top_p, seed, chat]


_slider = partial(gr.Slider, buttons=[])
