"""How a server ends, told to or killed: what everybody hears of it, and how soon it is over."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from specdec.serving.http import create_api
from tests.serving.http.servers import parse, program, service_of, until
from tests.serving.http.test_refusals import GENERATE, refused
from tests.serving.test_service import counted
from tests.ui.conftest import free_port

SLOW = "tests.serving.http.slow_server"
BODY: dict[str, Any] = {"model": "target", "prompt": "#0", "max_tokens": 5_000, "draft": "none"}


@pytest.mark.parametrize(
    ("path", "more"),
    [("/generate", {}), ("/v1/completions", {"stream": True}), ("/v1/completions", {})],
    ids=["rounds", "stream", "whole"],
)
def test_the_last_signal(path: str, more: dict[str, Any]):
    """SIGTERM: what waits gets 503, what runs its last word; status 0 within ten seconds of the signal."""
    with (
        program(SLOW) as (process, address),
        httpx.Client(base_url=address, timeout=60) as client,
        ThreadPoolExecutor(4) as pool,
    ):
        until(lambda: client.get("/readyz").status_code == 200)
        warm = client.get("/passes").json()
        running = pool.submit(client.post, path, json=BODY | more)
        until(lambda: client.get("/passes").json() > warm + 2)
        waiting = [pool.submit(client.post, "/v1/completions", json=BODY) for _ in range(3)]
        until(lambda: client.get("/line").json() == 4)
        began = time.monotonic()
        process.terminate()
        assert process.wait(10) == 0
        assert time.monotonic() - began <= 10
        last_word(running.result(10))
        for answer in [each.result(10) for each in waiting]:
            assert refused(answer, 503)["code"] == "shutting_down"
            assert answer.headers["retry-after"]


def last_word(answer: httpx.Response) -> None:
    """What is heard of a run that the server's end cuts short: its text so far and the reason, or a refusal."""
    if answer.headers["content-type"] == "application/json":
        assert refused(answer, 503)["code"] == "shutting_down"
        return
    events = list(parse(answer.iter_lines()))
    name, last = events[-1]
    if name == "done":
        assert last["finish_reason"] == "cancelled"
        assert last["usage"]["completion_tokens"] > 0
    else:
        assert "".join(chunk["choices"][0]["text"] for _, chunk in events[:-1]).startswith(" one two")
        assert last["error"]["code"] == "shutting_down"


def test_a_killed_server_is_back_at_its_port():
    """kill -9 in mid-stream: the reader gets a transport error; started again there it is ready, and counts as ever."""
    port = str(free_port())
    with program(SLOW, port) as (process, address), httpx.Client(base_url=address, timeout=60) as client:
        until(lambda: client.get("/readyz").status_code == 200)
        with client.stream("POST", "/generate", json=BODY) as answer, pytest.raises(httpx.TransportError):
            for name, _ in parse(answer.iter_lines()):
                if name == "token":
                    process.kill()
        assert process.wait(10) == -9
    with program(SLOW, port) as (_, again), httpx.Client(base_url=again, timeout=60) as client:
        assert again == address
        until(lambda: client.get("/readyz").status_code == 200)
        answer = client.post("/v1/completions", json=BODY | {"max_tokens": 12, "temperature": 0})
        assert answer.json()["choices"][0]["text"] == counted(0, 12)


def test_whoever_comes_when_it_ends_is_told():
    """Alive, but neither ready nor at anybody's service: 503 and when to come again."""

    async def answers() -> list[httpx.Response]:
        api = create_api(service_of())
        async with httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://here") as client:
            assert (await client.get("/readyz")).status_code == 200
            api.state.desk.close()
            return [
                await client.get("/healthz"),
                await client.get("/readyz"),
                await client.post("/generate", json=GENERATE),
            ]

    alive, *others = asyncio.run(answers())
    assert alive.status_code == 200
    for answer in others:
        assert refused(answer, 503)["code"] == "shutting_down"
        assert int(answer.headers["retry-after"]) > 0
