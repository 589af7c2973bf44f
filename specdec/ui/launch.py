"""From a service to an open page, as fast as it goes: models load while the page is imported.

Gradio writes a type stub beside each of its components whenever it is imported, for which it parses their sources:
half of the time until the page is open, and in vain where the environment cannot be written to. It passes over a
component whose source file is not to be found; so, while it is imported, none is.
"""

import gc
import inspect
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from specdec.errors import SpecdecError
from specdec.serving import Service

log = logging.getLogger(__name__)


def launch(service: Service, host: str, port: int) -> None:
    """Import the page and serve it until interrupted; ConfigError where the address cannot be listened on."""
    threading.Thread(target=_warm_up, args=(service,), name="warm-up", daemon=True).start()
    with without_stubs(), _without_collections():
        from specdec.ui.server import serve
    serve(service, host, port)


@contextmanager
def without_stubs() -> Iterator[None]:
    """Let Gradio be imported without looking at the sources of its components."""
    usual = inspect.getfile

    def getfile(object: Any) -> str:
        if type(object).__name__ == "ComponentMeta":
            raise OSError("not now")
        return usual(object)

    inspect.getfile = getfile
    try:
        yield
    finally:
        inspect.getfile = usual


@contextmanager
def _without_collections() -> Iterator[None]:
    """No garbage collection while hundreds of modules are made, nearly nothing of which is garbage."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _warm_up(service: Service) -> None:
    """Load the default pair and take a step with it, so that the first visitor need not wait for that."""
    target = next((offer.name for offer in service.offers if offer.role != "draft"), None)
    draft = next((offer.name for offer in service.offers if offer.role != "target"), "none")
    try:
        if target:
            service.warm_up(target, draft)
    except SpecdecError as error:
        log.warning("the default models could not be warmed up: %s", error)
