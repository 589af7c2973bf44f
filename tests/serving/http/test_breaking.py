"""A circuit breaker that opens is announced in the answer, wherever there is one."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import pytest

from specdec.serving.http.server import ApiServer, listening
from tests.decoding.toys import ToyDrafter
from tests.serving.http.servers import ANYBODY, service_of, serving, streamed, until
from tests.serving.test_service import counted

BODY = {"prompt": "#0", "max_tokens": 8, "temperature": 0}
WHY = "the drafter failed: RuntimeError: the GPU fell off"


def raising(tokens: list[int], k: int) -> list[int]:
    raise RuntimeError("the GPU fell off")


def test_an_open_breaker_is_told_by_every_endpoint(monkeypatch: pytest.MonkeyPatch):
    """The round that opens it, the answer of that run, and those after it; the text is the target's own."""
    service = service_of(replace(ANYBODY, breaker_failures=2))
    monkeypatch.setattr("specdec.serving.service._drafter", lambda *_: ToyDrafter(raising))
    with serving(service) as client:
        events = streamed(client, "/generate", BODY)
        paused = [value.get("paused", "") for name, value in events if name == "round"]
        assert paused[:3] == ["", f"drafting is paused for 30 s, because {WHY}", ""]
        assert events[0][1]["breaker"] == "closed"
        speculation = events[-1][1]["usage"]["speculation"]
        assert (speculation["breaker"], speculation["reason"]) == ("open", paused[1])
        assert events[-1][1]["text"] == counted(0, 8)

        started = streamed(client, "/generate", BODY)[0][1]
        assert (started["breaker"], started["draft"]) == ("open", "none")
        answer = client.post("/v1/completions", json=BODY | {"model": "target"}).json()
        assert answer["choices"][0]["text"] == counted(0, 8)
        assert answer["usage"]["speculation"]["breaker"] == "open"
        assert WHY in answer["usage"]["speculation"]["reason"]


def test_a_closed_one_has_no_reason():
    """As most of the time."""
    with serving(service_of()) as client:
        speculation = client.post("/v1/completions", json=BODY | {"model": "target"}).json()["usage"]["speculation"]
        assert (speculation["breaker"], speculation["reason"]) == ("closed", None)


def test_a_drafter_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch):
    """Told to end while it hangs, the server leaves after that call's deadline, and the answer has its last event."""
    entered, back = threading.Event(), threading.Event()

    def hang(tokens: list[int], k: int) -> list[int]:
        entered.set()
        back.wait(60)
        return []

    service = service_of(replace(ANYBODY, breaker_call_seconds=1.0))
    monkeypatch.setattr("specdec.serving.service._drafter", lambda *_: ToyDrafter(hang))
    server = ApiServer(service)
    with listening("127.0.0.1", 0) as listener, ThreadPoolExecutor(2) as pool:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        running = pool.submit(server.run, [listener])
        until(lambda: server.started)
        with httpx.Client(base_url=address, timeout=30) as client:
            answer = pool.submit(streamed, client, "/generate", BODY)
            assert entered.wait(30)
            server.should_exit = True
            began = time.monotonic()
            events = answer.result(30)
        running.result(30)
        assert time.monotonic() - began < 10
    back.set()
    assert events[-1][0] == "done"
    assert events[-1][1]["finish_reason"] == "cancelled"
