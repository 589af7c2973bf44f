"""The page's API for programs: `/complete` gives a finished run in one answer, through the same door as the page.

    from gradio_client import Client
    answer = Client("http://127.0.0.1:7860").predict("Once upon a time", api_name="/complete")

Its parameters are the page's own controls, so that names, choices, limits and defaults are those of the page.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import fields
from typing import Any

import gradio as gr

from specdec.errors import RequestError, SpecdecError
from specdec.records import Record, Started
from specdec.serving import Service
from specdec.trace import Trace
from specdec.ui.handlers import ENGINE, engine_limit, takes_form
from specdec.ui.watch import Form, Stops, sentence

OPTIONAL = "seed"
ABOUT = (
    "Continue a prompt, and wait for all of it. Returns {text, stats, trace}: what was said, its figures (times in "
    "seconds), and the run as the page saves it. Every parameter but the prompt can be left as the page has it."
)

log = logging.getLogger(__name__)


def wire(service: Service, stops: Stops, controls: list[Any]) -> None:
    """Offer `/complete`; `controls` are the prompt and the settings, in the order of `Form`'s fields."""
    gr.on(
        [],
        completer(service, stops),
        inputs=controls,
        outputs=gr.JSON(visible=False, label="run"),
        api_name="complete",
        api_description=ABOUT,
        concurrency_id=ENGINE,
        concurrency_limit=engine_limit(service.settings.queue_limit),
    )


def completer(service: Service, stops: Stops) -> Callable[..., dict[str, Any]]:
    """The function behind `/complete`: gr.Error with one sentence where it cannot be done."""

    @takes_form
    def complete(request: gr.Request, *values: Any) -> dict[str, Any]:
        try:
            with stops.flag(request.session_hash or "") as flag:
                trace = _run(service, values, flag.is_set)
        except SpecdecError as error:
            raise gr.Error(sentence(str(error)), print_exception=False) from error
        except Exception as error:
            log.exception("a generation failed")
            raise gr.Error("Something went wrong inside the engine.", print_exception=False) from error
        return {"text": trace.text, "stats": trace.stats.to_dict(), "trace": trace.to_dict()}

    return complete


def _run(service: Service, values: Iterable[Any], cancelled: Callable[[], bool]) -> Trace:
    """The whole run; RequestError where a value is missing or the run was stopped before it began."""
    given = dict(zip((spec.name for spec in fields(Form)), values, strict=True))
    missing = [name for name, value in given.items() if value is None and name != OPTIONAL]
    if missing:
        raise RequestError(f"{missing[0]} is missing")
    with closing(service.stream(Form(**given).request(), cancelled=cancelled)) as records:
        return _collected(list(records))


def _collected(records: list[Record]) -> Trace:
    if not isinstance(records[0], Started):
        raise RequestError("this run was stopped before it began")
    return Trace.collect(records)
