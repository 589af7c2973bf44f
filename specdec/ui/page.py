"""The page as Gradio Blocks: a prompt, the live panel, the settings. What happens on a click is in `handlers.py`.

The live panel is one `gr.HTML` with a constant template: its value is the text of events, which `assets/page/live.js`
turns into nodes. No model or user text may ever enter a template, because Gradio evaluates `${…}` there.
"""

from functools import partial
from typing import Any

import gradio as gr

from specdec.serving import Offer, Service
from specdec.ui import charts, guide, honest, race, share, step
from specdec.ui.assets import page_file
from specdec.ui.handlers import follower, starts, stopper
from specdec.ui.view import model_label
from specdec.ui.watch import Stops, watch

EXAMPLES = {
    "A brave little dragon": "Once upon a time there was a little dragon who was afraid of the dark. One night,",
    "A lost teddy bear": "Lily could not find her teddy bear anywhere. She looked under the bed and",
    "Two friends share": "Tom and Mia were best friends. They had only one cookie, so",
    "A talking tree": '"Hello," said the old tree. The boy jumped back and said, "',
    "A rainy day": "It was raining all day long. Ben was sad because he wanted to play outside. His mom said,",
    "A lesson to learn": "Sara did not listen to her dad. She ran to the pond and",
}
LIVE = "import(new URL('ui/live.js', document.baseURI)).then((live) => live.start(element, props, watch));"
MAX_LOOKAHEAD = 12


def build(service: Service) -> gr.Blocks:
    """The page over a service."""
    stops = Stops()
    page = gr.Blocks(title="specdec · speculative decoding, visible", fill_width=True)
    with page:
        top = guide.header()
        with gr.Column(elem_id="ask"):
            prompt, generate, stop = _ask()
        with gr.Row(elem_id="work", equal_height=False):
            with gr.Column(elem_id="result", scale=7, min_width=320), gr.Tabs(elem_id="views"):
                with gr.Tab("Decode", elem_id="decode-view"):
                    live = _live()
                with gr.Tab("Race", elem_id="race-view", render_children=True):
                    race_view = race.panel()
                with gr.Tab("Step through", elem_id="step-view", render_children=True):
                    step.panel()
                with gr.Tab("Share", elem_id="share-view", render_children=True) as share_tab:
                    share_texts = share.panel()
            with gr.Column(elem_id="settings", scale=3, min_width=280):
                settings = _settings(service)
        starts(
            [generate.click, prompt.submit],
            follower(stops, partial(watch, service)),
            inputs=[prompt, *settings],
            outputs=[live, generate, stop],
            name="generate",
            queue_limit=service.settings.queue_limit,
        )
        honest.wire(service, stops, honest.panel(), [prompt, *settings])
        guide.wire(top, [prompt, *settings])
        race.wire(service, stops, race_view, [prompt, *settings])
        share.wire(page, share_tab, share_texts, [prompt, *settings])
        _stop_wiring(stops, stop, page)
    page.queue(max_size=2 * service.settings.queue_limit + 2, api_open=False, default_concurrency_limit=4)
    return page


def _ask() -> tuple[gr.Textbox, gr.Button, gr.Button]:
    prompt = gr.Textbox(
        next(iter(EXAMPLES.values())),
        label="How should the story begin?",
        placeholder="Once upon a time …",
        lines=2,
        max_lines=8,
        elem_id="prompt",
    )
    with gr.Row(elem_id="actions", equal_height=True):
        gr.Examples(
            [[text] for text in EXAMPLES.values()],
            prompt,
            example_labels=list(EXAMPLES),
            label="Or take one of these",
            elem_id="examples",
            cache_examples=False,
        )
        with gr.Row(elem_id="buttons"):
            stop = gr.Button("Stop", interactive=False, elem_id="stop")
            generate = gr.Button("Generate", variant="primary", elem_id="generate")
    return prompt, generate, stop


def _live() -> gr.HTML:
    return gr.HTML(
        "",
        html_template=page_file("live.html"),
        js_on_load=LIVE,
        apply_default_css=False,
        elem_id="live",
        figures=charts.figures(),
    )


def _settings(service: Service) -> list[Any]:
    """The controls, in the order of `Form`'s fields."""
    targets, drafts = _choices(service.offers)
    limit = service.settings.max_new_tokens
    target = gr.Dropdown(targets, label="Target model", info="its distribution is the truth", elem_id="target")
    draft = gr.Dropdown(drafts, label="Drafter", info="what guesses ahead", elem_id="draft")
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
        seed = gr.Number(None, precision=0, label="Seed", info="empty: a new one each run", elem_id="seed")
        chat = gr.Checkbox(False, label="use the target's chat template", elem_id="chat")
    auto.change(
        lambda on: gr.update(interactive=not on), auto, lookahead, api_name="auto", show_progress="hidden", queue=False
    )
    return [target, draft, lookahead, auto, temperature, tokens, rule, top_k, top_p, seed, chat]


_slider = partial(gr.Slider, buttons=[])


def _choices(offers: tuple[Offer, ...]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """(targets, drafters) as Gradio wants choices: (label, value)."""
    targets = [(model_label(offer.name, offer.parameters), offer.name) for offer in offers if offer.role != "draft"]
    models = [(model_label(offer.name, offer.parameters), offer.name) for offer in offers if offer.role != "target"]
    return targets, [*models, ("n-gram lookup · no model", "ngram"), ("none · plain decoding", "none")]


def _stop_wiring(stops: Stops, button: gr.Button, page: gr.Blocks) -> None:
    """Stop, and leaving the page, end this session's run before its next round."""
    stop = stopper(stops)
    button.click(stop, api_name="stop", show_progress="hidden", queue=False)
    page.unload(stop)
