"""What the page's buttons call: a run that is followed until it ends, and the Stop that ends it. Nothing but wiring."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from typing import Any, TypeVar

import gradio as gr

from specdec.ui.watch import Form, Stops

Handler = TypeVar("Handler", bound=Callable[..., Any])
Asked = TypeVar("Asked", bound=Form)

ENGINE = "engine"  # what may run at the same time is counted together, whoever starts it
STREAM = (
    "Follow a run as the page does: submit it and read its updates, each of them all events so far, one JSON object a "
    "line. For a finished run in one answer there is /complete."
)


def takes_form(handle: Handler, form: type[Form] = Form) -> Handler:
    """Let the last parameters of a handler, `*values`, bear the names of the form's fields in the page's API."""
    given = [each for each in inspect.signature(handle).parameters.values() if each.kind is not each.VAR_POSITIONAL]
    named = [
        inspect.Parameter(
            spec.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if spec.default is MISSING else spec.default,
        )
        for spec in fields(form)
    ]
    handle.__signature__ = inspect.Signature(given + named)  # type: ignore[attr-defined]
    return handle


def follower(
    stops: Stops,
    follow: Callable[[Asked, Callable[[], bool]], Iterator[str]],
    form: type[Asked] = Form,  # type: ignore[assignment]
) -> Callable[..., Iterator[tuple[Any, Any, Any]]]:
    """The handler that starts a run: its outputs are the view of its events, the button pressed, its Stop."""

    def handle(request: gr.Request, *values: Any) -> Iterator[tuple[Any, Any, Any]]:
        with stops.flag(request.session_hash or "") as flag:
            shown = None
            for events in follow(form(*values), flag.is_set):
                buttons = (gr.skip(), gr.skip()) if shown is not None else _buttons(running=True)
                yield (events if events != shown else gr.skip(), *buttons)
                shown = events
            yield (gr.skip(), *_buttons(running=False))

    return takes_form(handle, form)


def engine_limit(queue_limit: int) -> int:
    """Calls that may be at the service's door at once: those that run or wait, and one to be told that it is full."""
    return queue_limit + 2


def starts(
    triggers: list[Any],
    handle: Callable[..., Iterator[tuple[Any, Any, Any]]],
    *,
    inputs: list[Any],
    outputs: list[Any],
    name: str,
    queue_limit: int,
) -> None:
    """Let `triggers` start a run: once a session at a time, and as many at once as the service lets wait."""
    gr.on(
        triggers,
        handle,
        inputs=inputs,
        outputs=outputs,
        api_name=name,
        api_description=STREAM,
        show_progress="hidden",
        trigger_mode="once",
        concurrency_id=ENGINE,
        concurrency_limit=engine_limit(queue_limit),
    )


def stopper(stops: Stops) -> Callable[[gr.Request], None]:
    """The handler that ends this session's runs before their next round."""

    def stop(request: gr.Request) -> None:
        """End this session's runs before their next round."""
        stops.stop(request.session_hash or "")

    return stop


def _buttons(*, running: bool) -> tuple[Any, Any]:
    return gr.update(interactive=not running), gr.update(interactive=running)
