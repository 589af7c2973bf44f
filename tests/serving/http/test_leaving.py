"""Clients that leave, that do not read, and that have to wait."""

import gc
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

import httpx
import pytest

from tests.serving.http.servers import (
    ANYBODY,
    gated,
    is_free,
    parse,
    passes,
    service_of,
    serving,
    slowed,
    streamed,
    until,
)
from tests.serving.http.test_refusals import refused
from tests.serving.test_service import counted

LONG = {"prompt": "#0", "max_tokens": 100_000, "draft": "none"}
OPENAI = {"model": "target", "prompt": "#0", "max_tokens": 100_000, "draft": "none"}
STREAMS = [("/generate", LONG), ("/v1/completions", OPENAI | {"stream": True})]
SLOW = slowed(0.002)


@pytest.mark.parametrize(("path", "body"), STREAMS)
def test_a_client_that_leaves_stops_its_run(path: str, body: dict[str, Any]):
    """Fifty times after three events: the place is free, no pass is made afterwards, no thread is left."""
    service = service_of(loader=SLOW)
    with serving(service) as client:
        threads = 0
        for turn in range(50):
            with client.stream("POST", path, json=body) as answer:
                assert len(list(islice(parse(answer.iter_lines()), 3))) == 3
            until(lambda: is_free(service), 10)
            threads = threads or threading.active_count()
            assert turn < 1 or threading.active_count() <= threads + 1
        made = passes(service)
        time.sleep(0.1)
        assert passes(service) == made


@pytest.mark.parametrize(("path", "body"), STREAMS)
def test_after_a_client_has_left_two_passes_are_made_at_most(path: str, body: dict[str, Any]):
    """Five times with passes of 50 ms: the one that is being made, and one that may begin until the leave is heard."""
    service = service_of(loader=slowed(0.05))
    with serving(service) as client:
        for _ in range(5):
            with client.stream("POST", path, json=body) as answer:
                assert len(list(islice(parse(answer.iter_lines()), 3))) == 3
            left = passes(service)
            until(lambda: is_free(service), 10)
            assert passes(service) - left <= 2


def test_a_client_that_leaves_before_its_answer_stops_it_too():
    """An answer that is not streamed is not finished for nobody; one that waits leaves the line."""
    service = service_of(loader=SLOW)
    with serving(service) as client:
        for _ in range(3):
            with pytest.raises(httpx.ReadTimeout):
                client.post("/v1/completions", json=OPENAI, timeout=0.2)
            until(lambda: is_free(service), 10)
        with service.join() as inside:
            with pytest.raises(httpx.ReadTimeout):
                client.post("/v1/completions", json=OPENAI, timeout=0.2)
            with service.join() as ticket:
                until(lambda: ticket.place == 1, 10)
            assert inside.place == 0


@contextmanager
def reader_of_nothing(client: httpx.Client) -> Iterator[None]:
    """A client that asks for a long answer and does not read it."""
    body = json.dumps(LONG)
    head = f"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        raw.connect((client.base_url.host, client.base_url.port))
        raw.sendall(f"{head}\r\n\r\n{body}".encode())
        assert raw.recv(10)
        yield


def test_a_slow_reader_slows_the_engine():
    """No pass is made for a client that does not read, others are answered, and its leave frees the place."""
    service = service_of()
    with serving(service, buffer=4_096) as client:
        with reader_of_nothing(client):
            before = -1
            while passes(service) != before:
                before = passes(service)
                time.sleep(0.5)
            assert before < 2_000
            assert client.get("/healthz").status_code == 200
            assert not is_free(service)
        until(lambda: is_free(service), 10)


def test_a_reader_that_takes_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch):
    """After a while its place goes to the next one."""
    monkeypatch.setattr("specdec.serving.http.wire.STALL_S", 0.5)
    service = service_of()
    with serving(service, buffer=4_096) as client, reader_of_nothing(client):
        until(lambda: is_free(service), 30)


def test_fifty_at_once():
    """One runs, sixteen wait, the rest are told at once to come again; all admitted finish, in their order."""
    gate = threading.Event()
    service = service_of(loader=gated(gate), warm=False)
    service.ready = True
    order: list[int] = []

    def post(number: int) -> tuple[int, float, httpx.Response]:
        began = time.perf_counter()
        body = {"model": "target", "prompt": f"#{number % 8}", "max_tokens": 3, "temperature": 0, "draft": "none"}
        answer = client.post("/v1/completions", json=body)
        order.append(number)
        return number, time.perf_counter() - began, answer

    with serving(service) as client, ThreadPoolExecutor(50) as pool:
        futures = []
        for number in range(17):
            futures.append(pool.submit(post, number))
            until(lambda: len(service._gate._line) == number + 1, 30)  # noqa: B023
        late = [pool.submit(post, number) for number in range(17, 50)]
        rejected = [future.result(30) for future in late]
        assert client.get("/healthz").status_code == 200
        gate.set()
        admitted = [future.result(60) for future in futures]
    for _, _, answer in rejected:
        error = refused(answer, 503)
        assert error["code"] == "queue_full"
        assert int(answer.headers["retry-after"]) > 0
    for number, _, answer in admitted:
        assert answer.json()["choices"][0]["text"] == counted(number % 8, 3)
    assert order[33:] == list(range(17))


def test_a_wait_may_be_so_long():
    """Whoever waited for that long is told, with when to come again."""
    service = service_of(replace(ANYBODY, max_wait_seconds=0.2))
    with serving(service) as client, service.join():
        for path, body in (("/generate", LONG), ("/v1/completions", OPENAI)):
            answer = client.post(path, json=body)
            error = refused(answer, 503)
            assert (error["code"], "0.2 seconds" in error["message"]) == ("queue_timeout", True)
            assert answer.headers["retry-after"]


def test_a_run_may_be_so_long():
    """A generation that meets the deadline ends there with its text, and says "length"."""
    with serving(service_of(replace(ANYBODY, max_seconds=0.3), SLOW)) as client:
        answer = client.post("/v1/completions", json=OPENAI | {"temperature": 0}).json()
        assert answer["choices"][0]["finish_reason"] == "length"
        tokens = answer["usage"]["completion_tokens"]
        assert 0 < tokens < 1_000
        assert answer["choices"][0]["text"] == counted(0, tokens)


def test_requests_at_once_do_not_mix():
    """Twenty clients, streaming or not, with all drafts: each gets its own answer."""
    service = service_of(replace(ANYBODY, queue_limit=50))
    with serving(service) as client, ThreadPoolExecutor(20) as pool:

        def ask(number: int) -> str:
            draft = ("none", "ngram", "draft")[number % 3]
            body = {"prompt": f"#{number % 8}", "max_tokens": 10 + number, "draft": draft}
            if number % 2:
                return streamed(client, "/generate", body)[-1][1]["text"]
            answer = client.post("/v1/completions", json=body | {"model": "target", "temperature": 0})
            return answer.json()["choices"][0]["text"]

        answers = list(pool.map(ask, range(20)))
    assert answers == [counted(number % 8, 10 + number) for number in range(20)]
    gc.collect()
    assert is_free(service)


def test_seeds_at_once_do_not_mix():
    """Twelve seeds at temperature 2 over a drafting model: together each says what it says alone, not all the same."""
    with serving(service_of()) as client, ThreadPoolExecutor(12) as pool:

        def ask(seed: int) -> str:
            body = {"prompt": "#0", "max_tokens": 24, "temperature": 2.0, "draft": "draft", "seed": seed}
            return str(streamed(client, "/generate", body | {"num_speculative_tokens": 3})[-1][1]["text"])

        alone = list(map(ask, range(12)))
        assert list(pool.map(ask, range(12))) == alone
    assert len(set(alone)) > 1
