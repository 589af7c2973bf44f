"""The badge "lossless" and its test, run here and now: what `specdec.serving.losslessness` finds, row by row."""

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr

from specdec.serving import Examination, Finding, Service, Verdict
from specdec.ui.assets import page_file
from specdec.ui.handlers import follower, starts, stopper
from specdec.ui.view import line
from specdec.ui.watch import Form, Stops, grow, waiting

HONEST = "import(new URL('ui/honest.js', document.baseURI)).then((honest) => honest.start(element, props, watch));"
TESTS = {
    "greedy": "Greedy: the same tokens as without drafts",
    "match": "Sampling by exact match, same seed: the same tokens as without drafts",
    "plain": "Plain draws: total variation from the target's law",
    "verifier": "Rejection sampling, the rule itself: total variation",
    "control": "Control, a verifier that keeps every draft: total variation",
    "engine": "Rejection sampling, whole runs: total variation",
}
EQUAL = ("greedy", "match")
VERDICTS = {"passed": "✓ passed", "failed": "✗ failed", "untold": "– cannot tell"}
ENDINGS = {
    "passed": "All passed, and the broken verifier was caught: lossless.",
    "untold": "All passed, but target and draft agree too well here for a broken verifier to show: try another prompt.",
    "failed": "Something failed. For a sound engine that is a chance of less than one in a thousand: run it again.",
    "stopped": "Stopped.",
    "late": "The time limit was reached before the test was done: try a smaller target.",
}

Cancelled = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class View:
    """The components that take part: the dialog, and the two buttons that it presses."""

    dialog: gr.HTML
    run: gr.Button
    stop: gr.Button


def panel() -> View:
    """What the badge opens; nothing of it is seen before."""
    dialog = gr.HTML(
        "",
        html_template=page_file("honest.html"),
        js_on_load=HONEST,
        apply_default_css=False,
        elem_id="honest",
        label="events",
    )
    run = gr.Button("Run the test", visible="hidden", elem_id="honest-run")
    return View(dialog, run, gr.Button("Stop the test", visible="hidden", interactive=False, elem_id="honest-stop"))


def wire(service: Service, stops: Stops, view: View, inputs: list[Any]) -> None:
    """What happens on a click; `inputs` are the prompt and the settings, in the order of `Form`'s fields."""
    starts(
        [view.run.click],
        follower(stops, partial(examine, service)),
        inputs=inputs,
        outputs=[view.dialog, view.run, view.stop],
        name="test_losslessness",
        queue_limit=service.settings.queue_limit,
    )
    view.stop.click(stopper(stops), api_name="stop_test", api_visibility="private", queue=False)


def examine(service: Service, form: Form, cancelled: Cancelled) -> Iterator[str]:
    """All events so far, again and again, as `grow` sends them."""
    return grow(_events(service, form, cancelled))


def _events(service: Service, form: Form, cancelled: Cancelled) -> Generator[str, None, None]:
    request = form.request()
    service.check(request)
    with service.join() as ticket:
        yield from waiting(ticket, cancelled)
        if not (cancelled() or service.holds(request.target, request.draft)):
            yield line("loading")
        ends = time.monotonic() + service.settings.max_seconds
        over = partial(_over, cancelled, ends)
        verdicts = set()
        for finding in () if over() else Examination(service, request, over).findings():
            yield line("row", **row(finding))
            verdicts.add(finding.verdict)
    early = "stopped" if cancelled() else "late" if over() else ""
    yield line("end", about=f"{request.target}, drafts by {request.draft}", **ending(verdicts, early))


def _over(cancelled: Cancelled, ends: float) -> bool:
    return cancelled() or time.monotonic() > ends


def row(finding: Finding) -> dict[str, Any]:
    """A finding as a row of the table: test, figure, critical value, verdict."""
    equal, caught = finding.test in EQUAL, finding.test == "control" and finding.verdict == "passed"
    if equal:
        cells = [TESTS[finding.test], f"{finding.figure:.0f} of {finding.of}", "all"]
    else:
        cells = [f"{TESTS[finding.test]} ({finding.of:,} draws)", f"{finding.figure:.4f}", f"{finding.limit:.4f}"]
    if finding.verdict is None:
        said = "running …" if equal else f"{finding.draws:,} of {finding.of:,}"
    else:
        said = "✓ fails, as it must" if caught else VERDICTS[finding.verdict]
    return {"test": finding.test, "cells": [*cells, said], "state": finding.verdict or "going"}


def ending(verdicts: set[Verdict | None], early: str = "") -> dict[str, str]:
    """What all rows come to: passed only where the broken verifier was caught, without which nothing is shown.

    `early`, where it ended before its end: "stopped" or "late".
    """
    found = (each for each in ("failed", "untold", "passed") if each in verdicts)
    outcome = early or next(found, "stopped")
    return {"state": outcome, "text": ENDINGS[outcome]}
