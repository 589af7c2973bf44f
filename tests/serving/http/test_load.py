"""Two hundred clients at once, some slow, some gone before the end: every answer is right, and nothing stays behind."""

import asyncio
import gc
import re
import statistics
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from specdec.checkpoints import DEFAULT_TARGET
from tests.serving.http.servers import ANYBODY, gated, is_free, parse, program, service_of, serving, until
from tests.serving.http.test_refusals import refused
from tests.serving.test_service import counted
from tests.serving.toys import ToyCache

pytestmark = [pytest.mark.load, pytest.mark.timeout(1_500)]

CLIENTS, WAVES = 200, 3
OPENINGS = (
    "Once upon a time",
    "Tom had a red",
    "The sun was",
    "Lily and Ben",
    "One day, a cat",
    "Mom said",
    "In the park",
)
Client = Callable[[httpx.AsyncClient, dict[str, Any], str], Coroutine[Any, Any, None]]


async def reads(client: httpx.AsyncClient, body: dict[str, Any], expected: str, pause: float = 0.0) -> None:
    """All of a stream, as fast as it comes or slower."""
    events = []
    async with client.stream("POST", "/generate", json=body) as answer:
        async for line in answer.aiter_lines():
            events.append(line)
            await asyncio.sleep(pause)
    name, value = list(parse(iter(events)))[-1]
    assert (name, value["text"]) == ("done", expected)


async def reads_slowly(client: httpx.AsyncClient, body: dict[str, Any], expected: str) -> None:
    """Twenty milliseconds for each line."""
    await reads(client, body, expected, 0.02)


async def asks(client: httpx.AsyncClient, body: dict[str, Any], expected: str, patience: Any = 600) -> None:
    """An answer that comes whole."""
    answer = await client.post("/v1/completions", json=body, timeout=patience)
    assert answer.json()["choices"][0]["text"] == expected


async def leaves(client: httpx.AsyncClient, body: dict[str, Any], expected: str) -> None:
    """Three lines, and gone."""
    async with client.stream("POST", "/generate", json=body) as answer:
        lines = answer.aiter_lines()
        for _ in range(3):
            await anext(lines)


async def tires(client: httpx.AsyncClient, body: dict[str, Any], expected: str) -> None:
    """Gone before it is its turn, or soon after, unless the answer is there before that."""
    with suppress(httpx.ReadTimeout):
        await asks(client, body, expected, httpx.Timeout(60, read=0.05))


KINDS: tuple[Client, ...] = (reads, asks, reads_slowly, leaves, tires)


def wave(address: str, bodies: list[tuple[dict[str, Any], str]]) -> None:
    """All clients at once, each with a connection of its own; raises what goes wrong for one of them."""

    async def all_of_them() -> None:
        limits = httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=0)
        async with httpx.AsyncClient(base_url=address, timeout=600, limits=limits) as client:
            await asyncio.gather(
                *(KINDS[number % len(KINDS)](client, *bodies[number % len(bodies)]) for number in range(CLIENTS))
            )

    asyncio.run(all_of_them())


@contextmanager
def pulse(address: str) -> Iterator[list[float]]:
    """Seconds that `/healthz` took, asked ten times a second meanwhile, over a connection of its own each time."""
    seconds: list[float] = []
    over = threading.Event()

    def feel() -> None:
        while not over.wait(0.1):
            began = time.perf_counter()
            assert httpx.get(f"{address}/healthz", timeout=60).status_code == 200
            seconds.append(time.perf_counter() - began)

    thread = threading.Thread(target=feel)
    thread.start()
    try:
        yield seconds
    finally:
        over.set()
        thread.join()


def held(process: int) -> Counter[str]:
    """What a process holds: kilobytes of memory, threads, open files."""
    status = Path(f"/proc/{process}/status").read_text()
    names = {"memory": "VmRSS", "threads": "Threads"}
    found = {name: int(re.search(rf"{key}:\s+(\d+)", status)[1]) for name, key in names.items()}  # type: ignore[index]
    return Counter(found | {"files": len(list(Path(f"/proc/{process}/fd").iterdir()))})


def test_two_hundred_clients_of_the_bundled_models():
    """Three waves in which 40 clients each read, ask, read slowly, leave after three lines, or tire of waiting.

    All that stay get the words that the first, alone, got. From the second wave to the third memory grows by less than
    8 MiB, files and threads not at all; health answers within 200 ms in 99 of 100 cases.
    """
    options = ("--port", "0", "--queue-limit", "300", "--max-wait-seconds", "900", "--requests-per-minute", "0")
    with program("specdec", "serve", *options, log=subprocess.DEVNULL) as (process, address):
        with httpx.Client(base_url=address, timeout=60) as client:
            until(lambda: client.get("/readyz").status_code == 200)
            bodies = []
            for opening in OPENINGS:
                body = {"model": DEFAULT_TARGET, "prompt": opening, "max_tokens": 12, "temperature": 0}
                answer = client.post("/v1/completions", json=body).json()
                bodies.append((body, answer["choices"][0]["text"]))
        after = []
        with pulse(address) as seconds:
            for _ in range(WAVES):
                wave(address, bodies)
                time.sleep(1)
                after.append(held(process.pid))
        _, first, last = after
        longest = statistics.quantiles(seconds, n=100)[-1]
        print(f"health: median {statistics.median(seconds):.3f} s, 99 of 100 within {longest:.3f} s")
        print("held:", *map(dict, after), sep="\n  ")
        assert last["memory"] - first["memory"] <= 8 * 1024
        assert (last["files"], last["threads"]) <= (first["files"] + 1, first["threads"])
        assert longest <= 0.2
        process.terminate()
        assert process.wait(10) == 0


def test_nothing_of_two_hundred_clients_stays():
    """No task, no cache, no thread, once they have gone: as many after each wave as after the first, at most."""
    service = service_of(replace(ANYBODY, queue_limit=300, max_wait_seconds=900))
    with serving(service) as client:
        body: dict[str, Any] = {"model": "target", "max_tokens": 12, "temperature": 0}
        bodies = [(body | {"prompt": f"#{number}"}, counted(number, 12)) for number in range(7)]
        left = []
        for _ in range(3):
            wave(str(client.base_url), bodies)
            until(lambda: is_free(service))
            time.sleep(0.5)
            gc.collect()
            there = gc.get_objects()
            kinds = [sum(isinstance(each, kind) for each in there) for kind in (asyncio.Task, ToyCache)]
            left.append((*kinds, threading.active_count()))
        assert all(now <= then for later in left[1:] for now, then in zip(later, left[0], strict=True)), left


def test_a_full_line_says_so_at_once():
    """One request runs, sixteen wait: of fifty more each is told within 100 ms to come again."""
    gate = threading.Event()
    service = service_of(loader=gated(gate), warm=False)
    body = {"model": "target", "prompt": "#0", "max_tokens": 3, "draft": "none"}
    with serving(service) as client, ThreadPoolExecutor(17) as pool:
        for _ in range(17):
            pool.submit(client.post, "/v1/completions", json=body)
        until(lambda: service.standing == 17)
        late = [client.post("/v1/completions", json=body) for _ in range(50)]
        gate.set()
    assert {refused(answer, 503)["code"] for answer in late} == {"queue_full"}
    assert max(answer.elapsed.total_seconds() for answer in late) <= 0.1
