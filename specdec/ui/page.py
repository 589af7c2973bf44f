"""The page as Gradio Blocks: a prompt, the live panel, the settings. What happens on a click is in `handlers.py`.

The live panel is one `gr.HTML` with a constant template: its value is the text of events, which `assets/page/live.js`
turns into nodes. No model or user text may ever enter a template, because Gradio evaluates `${…}` there.
"""

from functools import partial

import gradio as gr

from specdec.serving import Service
from specdec.ui import api, bring, charts, controls, examples, explore, guide, honest, race, share, step
from specdec.ui.assets import page_file
from specdec.ui.baseline import Baselines
from specdec.ui.handlers import follower, starts, stopper
from specdec.ui.watch import Stops, watch

LIVE = "import(new URL('ui/live.js', document.baseURI)).then((live) => live.start(element, props, watch));"


def build(service: Service) -> gr.Blocks:
    """The page over a service."""
    stops = Stops()
    page = gr.Blocks(title="specdec · speculative decoding, visible", fill_width=True)
    with page:
        top = guide.header()
        with gr.Column(elem_id="ask"):
            prompt, groups, generate, stop = _ask()
            note = examples.note()
        with gr.Row(elem_id="work", equal_height=False):
            with gr.Column(elem_id="result", scale=7, min_width=320), gr.Tabs(elem_id="views"):
                with gr.Tab("Decode", elem_id="decode-view"):
                    live = _live()
                with gr.Tab("Race", elem_id="race-view", render_children=True):
                    race_view = race.panel()
                with gr.Tab("Step through", elem_id="step-view", render_children=True):
                    step.panel()
                with gr.Tab("Explore", elem_id="explore-view", render_children=True):
                    explore_view = explore.panel(controls.MAX_LOOKAHEAD, service.settings.max_new_tokens)
                with gr.Tab("Share", elem_id="share-view", render_children=True) as share_tab:
                    share_texts = share.panel()
                with gr.Tab("Models", elem_id="bring-view", render_children=True):
                    bring_view = bring.panel(service)
            with gr.Column(elem_id="settings", scale=3, min_width=280):
                settings = controls.settings(service)
        starts(
            [generate.click, prompt.submit],
            follower(stops, partial(watch, service, baselines=Baselines())),
            inputs=[prompt, *settings],
            outputs=[live, generate, stop],
            name="generate",
            queue_limit=service.settings.queue_limit,
        )
        honest.wire(service, stops, honest.panel(), [prompt, *settings])
        guide.wire(top, [prompt, *settings])
        race.wire(service, stops, race_view, [prompt, *settings])
        explore.wire(service, stops, explore_view, [prompt, *settings])
        api.wire(service, stops, [prompt, *settings])
        share.wire(page, share_tab, share_texts, [prompt, *settings], generate, service)
        examples.wire(service, groups, note, [prompt, *settings])
        bring.wire(service, bring_view, settings[:2])
        _stop_wiring(stops, stop, page)
    page.queue(max_size=2 * service.settings.queue_limit + 2, api_open=False, default_concurrency_limit=4)
    return page


def _ask() -> tuple[gr.Textbox, list[gr.Dataset], gr.Button, gr.Button]:
    prompt = gr.Textbox(
        examples.FIRST,
        label=examples.STORY_LABEL,
        placeholder="Once upon a time …",
        lines=2,
        max_lines=8,
        elem_id="prompt",
    )
    with gr.Row(elem_id="actions", equal_height=True):
        groups = examples.panel()
        with gr.Row(elem_id="buttons"):
            stop = gr.Button("Stop", interactive=False, elem_id="stop")
            generate = gr.Button("Generate", variant="primary", interactive=False, elem_id="generate")
    return prompt, groups, generate, stop


def _live() -> gr.HTML:
    return gr.HTML(
        "",
        html_template=page_file("live.html"),
        js_on_load=LIVE,
        apply_default_css=False,
        elem_id="live",
        label="events",
        figures=charts.figures(),
    )


def _stop_wiring(stops: Stops, button: gr.Button, page: gr.Blocks) -> None:
    """Stop, and leaving the page, end this session's run before its next round."""
    stop = stopper(stops)
    button.click(stop, api_name="stop", show_progress="hidden", queue=False)
    page.unload(stop)
