"""The race: plain and speculative decoding of the same request, measured one after the other, replayed side by side.

Both lanes run in one place of the service's line, so that each is alone on the machine while it is measured, and each
after a short warm-up that is not counted. The page shows how far the measurement is, and replays both in the engine's
own time once they are there (`assets/page/race.js`).
"""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr

from specdec.errors import RequestError
from specdec.records import Record, Round, Started
from specdec.serving import GenerationRequest, Service, Ticket
from specdec.stats import Stats
from specdec.trace import Trace
from specdec.ui import charts
from specdec.ui.assets import page_file
from specdec.ui.handlers import follower, starts, stopper
from specdec.ui.measure import UPDATES_PER_SECOND, Cancelled, bare, plain, warm_up
from specdec.ui.meter import speed
from specdec.ui.traces import whole
from specdec.ui.verdict import verdict
from specdec.ui.view import about, chips, line
from specdec.ui.watch import Form, Stops, grow, waiting

RACE = "import(new URL('ui/race.js', document.baseURI)).then((race) => race.start(element, props, watch));"

Lines = Generator[str, None, None]


@dataclass(frozen=True, slots=True)
class View:
    """The tab's components that take part in a race."""

    lanes: gr.HTML
    start: gr.Button
    stop: gr.Button


def panel() -> View:
    """What the tab shows."""
    with gr.Row(elem_id="race-buttons"):
        start = gr.Button("Race", variant="primary", elem_id="race-start")
        stop = gr.Button("Stop", interactive=False, elem_id="race-stop")
    lanes = gr.HTML(
        "",
        html_template=page_file("race.html"),
        js_on_load=RACE,
        apply_default_css=False,
        elem_id="race",
        label="events",
        figures=charts.race_figures(),
    )
    return View(lanes, start, stop)


def wire(service: Service, stops: Stops, view: View, inputs: list[Any]) -> None:
    """What happens on a click; `inputs` are the prompt and the settings, in the order of `Form`'s fields."""
    starts(
        [view.start.click],
        follower(stops, partial(race, service)),
        inputs=inputs,
        outputs=[view.lanes, view.start, view.stop],
        name="race",
        queue_limit=service.settings.queue_limit,
    )
    view.stop.click(stopper(stops), api_name="stop_race", api_visibility="private", queue=False)


def race(service: Service, form: Form, cancelled: Cancelled) -> Iterator[str]:
    """All events so far, again and again, a few times a second while a lane is measured."""
    return grow(_events(service, form, cancelled), UPDATES_PER_SECOND)


def requests(form: Form) -> dict[str, GenerationRequest]:
    """What each lane is asked, in the order of measurement: the same but for the draft, the same seed too."""
    asked = form.request()
    if asked.draft == "none" or asked.speculation.num_speculative_tokens == 0:
        raise RequestError("choose a drafter and a lookahead k of 1 or more: a race needs something to speed up")
    asked = bare(asked)
    return {"plain": plain(asked), "speculative": asked}


def _events(service: Service, form: Form, cancelled: Cancelled) -> Lines:
    """Every event of a race, from its place in the line to the verdict."""
    asked = requests(form)
    for request in asked.values():
        service.check(request)
    runs: dict[str, Trace] = {}
    with service.join() as ticket:
        yield from waiting(ticket, cancelled)
        for lane, request in asked.items():
            if not cancelled():
                runs[lane] = yield from _lane(service, lane, request, ticket, cancelled)
    if cancelled():
        yield line("stopped", text="Stopped: a race needs both lanes to the end.")
    else:
        told = {lane: whole(run, asked[lane]) for lane, run in runs.items()}
        yield line("verdict", runs=told, **verdict(runs["plain"], runs["speculative"], asked["speculative"]))


def _lane(
    service: Service, lane: str, request: GenerationRequest, ticket: Ticket, cancelled: Cancelled
) -> Generator[str, None, Trace]:
    """Warm up, then measure one lane."""
    yield line("lane", lane=lane, of=request.params.max_tokens)
    if not service.holds(request.target, request.draft):
        yield line("loading")
    warm_up(service, request, ticket, cancelled)
    with closing(service.stream(request, cancelled=cancelled, ticket=ticket.lend())) as records:
        return (yield from _measured(lane, request, records))


def _measured(lane: str, request: GenerationRequest, records: Iterator[Record]) -> Generator[str, None, Trace]:
    """A lane's events; the run as a whole is returned. Times are of decoding: reading the prompt is not raced."""
    stats, kept = Stats(), []
    for record in records:
        kept.append(record)
        if isinstance(record, Started):
            yield line("start", lane=lane, prompt=request.prompt, about=about(record), note=record.note)
        elif isinstance(record, Round):
            stats = stats.add(record)
            yield line("round", **_round(lane, record, stats))
    return Trace.collect(kept)


def _round(lane: str, step: Round, stats: Stats) -> dict[str, Any]:
    """What the replay needs of a round; drafts that were never judged are left out."""
    read = [chip for chip in chips(step) if chip[0] != "d"]
    return {
        "lane": lane,
        "n": step.index,
        "at": round(stats.decode_s, 6),
        "tokens": stats.tokens,
        "chips": read,
        "proposed": len(step.proposals),
        "speed": speed(stats),
    }
