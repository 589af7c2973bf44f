"""From a service to an open page, as fast as it goes: models load while the page is imported.

Gradio writes a type stub beside each of its components whenever it is imported, for which it parses their sources:
half of the time until the page is open, and in vain where the environment cannot be written to. It passes over a
component whose source file is not to be found; so, while it is imported, none is.
"""

import gc
import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from specdec.serving import Service
from specdec.serving.defaults import warm_up


def launch(service: Service, host: str, port: int) -> None:
    """Import the page and serve it until interrupted; ConfigError where the address cannot be listened on."""
    threading.Thread(target=warm_up, args=(service,), name="warm-up", daemon=True).start()
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
