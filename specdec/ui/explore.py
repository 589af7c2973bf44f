"""Explore: one prompt decoded in many ways, plain decoding in between, all in one place of the service's line.

`sweep.py` says which ways and in which order, `findings.py` what the page is told of them; here they are run. Times
are the engine's own, after a warm-up of each pair that does not count, and a sweep may last as long as a generation.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any, Literal

import gradio as gr

from specdec.config import require_choice
from specdec.errors import RequestError, SpecdecError
from specdec.records import Round
from specdec.serving import GenerationRequest, Offer, Service, Ticket
from specdec.ui import findings
from specdec.ui.assets import page_file
from specdec.ui.explore_charts import explore_figures
from specdec.ui.handlers import follower, starts, stopper
from specdec.ui.measure import UPDATES_PER_SECOND, Cancelled, bare, warm_up
from specdec.ui.sweep import Run, Way, drafted, lookaheads, pairings, take_turns
from specdec.ui.view import line
from specdec.ui.watch import Form, Stops, grow, sentence, waiting

EXPLORE = "import(new URL('ui/explore.js', document.baseURI)).then((it) => it.start(element, props, watch));"
SHOW = "(shown) => { document.querySelector('.sd-explore').dataset.shows = shown; }"
TOKENS, MOST_TOKENS = 64, 256
PROGRESS = 10  # times a run that its progress is told

Kind = Literal["lookahead", "models"]
Tell = Callable[[Sequence[Run], Mapping[Way, str]], dict[str, Any]]
TELL: dict[Kind, tuple[Tell, Tell]] = {
    "lookahead": (findings.by_lookahead, findings.best_lookahead),
    "models": (findings.by_models, findings.best_models),
}


@dataclass(frozen=True, slots=True)
class Wanted(Form):
    """What the page's controls say, and the tab's own: what to vary, the largest k, tokens of each run."""

    vary: Kind = "lookahead"
    most: float = 8
    tokens: float = TOKENS

    def ways(self, offers: Sequence[Offer]) -> list[Way]:
        """The ways to compare with plain decoding; RequestError where there is nothing to vary."""
        require_choice("vary", self.vary, tuple(TELL))
        lookahead = self.request().speculation.num_speculative_tokens
        if self.vary == "models":
            ways = pairings(offers, lookahead or 0)
            if not ways or not lookahead:
                raise RequestError("model sizes need a lookahead k of 1 or more, and draft models to choose from")
            return ways
        if self.draft == "none":
            raise RequestError("choose a drafter: without drafts there is no k to explore")
        ways = [Way(self.target, self.draft, k) for k in lookaheads(int(self.most))]
        if not ways:
            raise RequestError("choose a largest k of 1 or more")
        return ways

    def bare(self) -> GenerationRequest:
        """What every run is asked, but for its way."""
        return bare(replace(self, max_tokens=self.tokens).request())


@dataclass(frozen=True, slots=True)
class View:
    """The tab's components that take part in a sweep."""

    found: gr.HTML
    start: gr.Button
    stop: gr.Button
    controls: tuple[gr.Radio, gr.Slider, gr.Slider]


def panel(most: int, max_tokens: int) -> View:
    """What the tab shows; `most` is the largest k on offer."""
    limit = min(MOST_TOKENS, max_tokens)
    with gr.Row(elem_id="explore-controls"):
        choices = [("lookahead k", "lookahead"), ("model sizes", "models")]
        vary = gr.Radio(choices, value="lookahead", label="What to vary", elem_id="explore-vary")
        largest = gr.Slider(1, most, min(8, most), step=1, label="k up to", buttons=[], elem_id="explore-most")
        tokens = gr.Slider(
            *(min(8, limit), limit, min(TOKENS, limit)),
            step=1,
            label="Tokens a run",
            buttons=[],
            elem_id="explore-tokens",
        )
    with gr.Row(elem_id="explore-buttons"):
        start = gr.Button("Explore", variant="primary", elem_id="explore-start")
        stop = gr.Button("Stop", interactive=False, elem_id="explore-stop")
    found = gr.HTML(
        "",
        html_template=page_file("explore.html"),
        js_on_load=EXPLORE,
        apply_default_css=False,
        elem_id="explore",
        label="events",
        figures=explore_figures(most),
        most=most,
    )
    vary.change(None, vary, None, js=SHOW, api_visibility="private")
    return View(found, start, stop, (vary, largest, tokens))


def wire(service: Service, stops: Stops, view: View, inputs: list[Any]) -> None:
    """What happens on a click; `inputs` are the prompt and the settings, in the order of `Form`'s fields."""
    starts(
        [view.start.click],
        follower(stops, partial(explore, service), Wanted),
        inputs=[*inputs, *view.controls],
        outputs=[view.found, view.start, view.stop],
        name="explore",
        queue_limit=service.settings.queue_limit,
    )
    view.stop.click(stopper(stops), api_name="stop_explore", api_visibility="private", queue=False)


def explore(service: Service, wanted: Wanted, cancelled: Cancelled) -> Iterator[str]:
    """All events so far, again and again, a few times a second while a run is measured."""
    return grow(_events(service, wanted, cancelled), UPDATES_PER_SECOND)


def _events(service: Service, wanted: Wanted, cancelled: Cancelled) -> Generator[str, None, None]:
    """Every event of a sweep, from its place in the line to what was found."""
    ways, asked = wanted.ways(service.offers), wanted.bare()
    for way in ways:
        service.check(way.request(asked))
    with service.join() as ticket:
        yield line("plan", vary=wanted.vary)
        yield from waiting(ticket, cancelled)
        yield from Sweep(service, wanted.vary, asked, ticket, cancelled).events(ways)


class Sweep:
    """Runs in one place of the line: `runs` so far, and `refused`, why a way could not be warmed up."""

    def __init__(
        self, service: Service, vary: Kind, asked: GenerationRequest, ticket: Ticket, cancelled: Cancelled
    ) -> None:
        self._service, self._vary, self._asked = service, vary, asked
        self._ticket, self._cancelled = ticket, cancelled
        self._ends = monotonic() + service.settings.max_seconds
        self._tell, self._conclude = TELL[vary]
        self.runs: list[Run] = []
        self.refused: dict[Way, str] = {}

    def events(self, ways: list[Way]) -> Iterator[str]:
        """Warm up, then step by step what is measured and what is known by then; at the end what was found."""
        yield from self._warm_up(ways)
        plan = take_turns([way for way in ways if way not in self.refused])
        for place, way in enumerate(plan):
            if self._over():
                break
            yield line("step", text=findings.label(way, models=self._vary == "models"), n=place + 1, of=len(plan))
            run = yield from self._measured(place, way)
            if run:
                self.runs.append(run)
                yield line(self._vary, **self._tell(self.runs, self.refused))
        yield self._ending(len(plan))

    def _warm_up(self, ways: list[Way]) -> Iterator[str]:
        """Each pair once; one whose models do not fit costs itself only, where models vary."""
        for way in {(way.target, way.draft): way for way in ways}.values():
            if self._over():
                return
            yield line("warming" if self._service.holds(way.target, way.draft) else "loading")
            try:
                warm_up(self._service, way.request(self._asked), self._ticket, self._over)
            except SpecdecError as error:
                if self._vary == "lookahead":
                    raise
                self.refused[way] = sentence(str(error))

    def _measured(self, place: int, way: Way) -> Generator[str, None, Run | None]:
        """A run, its progress told now and then; None where it was cut."""
        request = way.request(self._asked)
        rounds: list[Round] = []
        tokens = told = 0
        records = self._service.stream(request, cancelled=self._over, ticket=self._ticket.lend())
        with closing(records):
            for record in records:
                if isinstance(record, Round):
                    rounds.append(record)
                    tokens += len(record.tokens)
                    share = tokens / request.params.max_tokens
                    if share * PROGRESS >= told + 1:
                        told = int(share * PROGRESS)
                        yield line("round", done=round(place + share, 2))
        return Run.of(way, rounds) if rounds and rounds[-1].last else None

    def _over(self) -> bool:
        return self._cancelled() or monotonic() > self._ends

    def _ending(self, planned: int) -> str:
        done = f"{len(self.runs)} of {planned} runs"
        if self._cancelled():
            return line("stopped", text=f"Stopped after {done}.")
        cut = len(self.runs) < planned
        if cut and not drafted(self.runs):
            return line("stopped", text=f"The time limit was reached after {done}: ask for fewer tokens a run.")
        note = f"The time limit was reached after {done}." if cut else "Finished."
        return line("found", note=note, **self._conclude(self.runs, self.refused))
