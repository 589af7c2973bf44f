"""Real servers over toy models: uvicorn on a free port, in a thread or in a process of its own."""

import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from specdec.serving import Offer, Service, Settings
from specdec.serving.http.server import ApiServer, listening
from specdec.serving.store import Loader
from tests.serving.toys import Toy, load_toy, toy
from tests.source_tree import ROOT

OFFERS = (Offer("target", 7_000_000, "target"), Offer("draft", 400_000, "draft"), Offer("other", None, "target"))
ANYBODY = Settings(requests_per_minute=0, max_new_tokens=100_000, breaker_losing=0.0)  # drafting never pays for toys
WAIT_S = 60


def service_of(settings: Settings = ANYBODY, loader: Loader = load_toy, warm: bool = True) -> Service:
    """A service of toys, ready to answer."""
    service = Service(settings, loader, OFFERS)
    if warm:
        service.warm_up("target", "draft")
    return service


@contextmanager
def serving(service: Service, buffer: int = 0, told: Any = None) -> Iterator[httpx.Client]:
    """A client of the API over a service; `buffer`: bytes that the system holds unread; `told`: telemetry."""
    server = ApiServer(service, told)
    with listening("127.0.0.1", 0) as listener:
        if buffer:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            until(lambda: server.started)
            with httpx.Client(base_url=address, timeout=WAIT_S) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(WAIT_S)


@contextmanager
def program(*arguments: str, log: int = subprocess.PIPE) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`python -m <arguments>` and the address that it prints; ended by whoever has not ended it before.

    Nobody reads its log before it ends: where that gets longer than a pipe holds, it must go elsewhere.
    """
    command = [sys.executable, "-m", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True) as process:
        try:
            assert process.stdout
            said = process.stdout.readline()
            address = re.search(r"http://\S+", said)
            assert address, said
            yield process, address[0]
        finally:
            process.terminate()
            process.communicate(timeout=WAIT_S)


def until(true: Any, seconds: float = WAIT_S) -> None:
    """Wait until something holds."""
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, "it did not come to hold"
        time.sleep(0.005)


def is_free(service: Service) -> bool:
    """Whether a request would be served at once."""
    with service.join() as ticket:
        return ticket.wait(0)


def parse(lines: Iterator[str]) -> Iterator[tuple[str | None, Any]]:
    """Server-sent events as they come: their names and JSON values; comments are ("comment", None)."""
    name: str | None = None
    for line in lines:
        if line.startswith(":"):
            yield "comment", None
        elif line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            data = line.removeprefix("data: ")
            yield name, data if data == "[DONE]" else json.loads(data)
            name = None


def streamed(
    client: httpx.Client, path: str, body: dict[str, Any], headers: dict[str, str] | None = None
) -> list[tuple[str | None, Any]]:
    """All events of an answer."""
    with client.stream("POST", path, json=body, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        return list(parse(answer.iter_lines()))


def chatty(name: str) -> Toy:
    """A loader of toys with chat templates."""
    model = load_toy(name)
    model.tokenizer.has_chat_template = True
    return model


def gated(gate: threading.Event) -> Loader:
    """A loader of toys whose target waits at a gate."""
    return lambda name: toy(name, gate=gate if name == "target" else None)


def slowed(seconds: float) -> Loader:
    """A loader of toys whose passes take so long."""

    def load(name: str) -> Toy:
        model = load_toy(name)
        quick = model.network.forward
        model.network.forward = lambda *a, **o: (time.sleep(seconds), quick(*a, **o))[1]  # type: ignore[method-assign, func-returns-value]
        return model

    return load


def passes(service: Service) -> int:
    """Passes of the target so far."""
    return service._store.get("target").network.passes  # type: ignore[attr-defined]
