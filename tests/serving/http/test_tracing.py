"""A request has one name: in its answer, and in every line that the log has of it."""

import asyncio
import json
import logging
import random
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec.serving.http import create_api
from specdec.serving.http.logs import JsonLines
from specdec.serving.http.tracing import Ids
from tests.serving.http.servers import program, service_of, serving, until
from tests.serving.toys import Toy, load_toy

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


class Lines(logging.Handler):
    """What the log would write."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def lines() -> Iterator[list[str]]:
    handler, logger = Lines(), logging.getLogger("specdec")
    usual = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler.lines
    logger.removeHandler(handler)
    logger.setLevel(usual)


@pytest.mark.parametrize("request_id", ["a", "A.b_c-9", "x" * 128])
def test_a_good_request_id_comes_back(client: httpx.Client, request_id: str):
    """On answers and refusals alike."""
    for path in ("/healthz", "/v1/models", "/nowhere", "/generate"):
        assert client.get(path, headers={"x-request-id": request_id}).headers["x-request-id"] == request_id


@pytest.mark.parametrize("request_id", ["", "x" * 129, "a b", "a\tb", 'a"b', "ä", "a,b", "../a", "<script>", "{{a}}"])
def test_any_other_is_replaced(client: httpx.Client, request_id: str):
    """By one of the server's own, a new one each time."""
    headers = {b"x-request-id": request_id.encode("latin-1")}
    answered = [client.get("/healthz", headers=headers).headers["x-request-id"] for _ in "ab"]
    assert all(re.fullmatch("[0-9a-f]{32}", own) for own in answered)
    assert answered[0] != answered[1]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (PARENT, True),
        (PARENT.replace("00-4", "cc-4"), True),
        (PARENT.replace("00-4", "cc-4") + "-more", True),
        (PARENT + "-more", False),
        (PARENT.replace("00-4", "ff-4"), False),
        (PARENT.upper(), False),
        (PARENT.replace(TRACE, "0" * 32), False),
        (PARENT.replace("00f067aa0ba902b7", "0" * 16), False),
        (PARENT + "\n", False),
        ("", False),
    ],
)
def test_a_trace_goes_on_where_it_is_well_formed(sent: str, kept: bool):
    """The caller's trace id and flags are kept, with a span of our own; otherwise a trace begins here."""
    own = Ids.of({"traceparent": sent}).traceparent
    assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", own)
    assert (own[3:35] == TRACE) is kept
    assert own[36:52] != PARENT[36:52]
    assert own.endswith("-01") is kept


@given(st.text(st.characters(max_codepoint=255)), st.text(st.characters(max_codepoint=255)))
def test_nothing_else_gets_into_the_log(request_id: str, traceparent: str):
    """Whatever is sent, both names are of the few characters that they may have."""
    ids = Ids.of({"x-request-id": request_id, "traceparent": traceparent})
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", ids.request_id)
    assert re.fullmatch(r"[0-9a-f-]{55}", ids.traceparent)


def test_every_request_is_one_line(client: httpx.Client, lines: list[str]):
    """A JSON object with both names; neither prompt nor answer is in it, nor a line end."""
    sent = [
        ("/generate", {"prompt": "SECRET\n#0", "max_tokens": 3}, 200),
        ("/v1/completions", {"model": "target", "prompt": "SECRET", "tools": ["SECRET"]}, 400),
        ("/no%0Awhere", {"SECRET": 1}, 404),
    ]
    for number, (path, body, _) in enumerate(sent):
        client.post(path, json=body, headers={"x-request-id": f"id-{number}", "traceparent": PARENT}).read()
    until(lambda: len(lines) >= 3)
    assert len(lines) == 3
    for number, line in enumerate(lines):
        said: dict[str, Any] = json.loads(line)
        assert (said["request_id"], said["status"]) == (f"id-{number}", sent[number][2])
        assert said["traceparent"].startswith(f"00-{TRACE}-")
        assert (said["method"], said["path"], said["level"]) == ("POST", unquote(sent[number][0]), "info")
        assert "SECRET" not in line
        assert "\n" not in line
        assert line.isascii()


def test_no_body_gets_into_the_log(client: httpx.Client, lines: list[str]):
    """One that is no JSON, and 66,000 bytes whole and in chunks: 400, 413, 413, a line each, with nothing of them."""
    long = b"SECRET" * 11_000
    sent: list[Any] = [(b'{"prompt": "SECRET', 400), (long, 413), (iter([long[:40_000], long[40_000:]]), 413)]
    for body, status in sent:
        answer = client.post("/generate", content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, "SECRET" in answer.text) == (status, False)
    until(lambda: len(lines) >= 3)
    assert [json.loads(line)["status"] for line in lines] == [400, 413, 413]
    assert not [line for line in lines if "SECRET" in line]


def test_a_thousand_strange_requests_are_a_thousand_lines(lines: list[str]):
    """Random bytes as ids, random characters as prompts: each line is one JSON object whose id is the answer's own."""
    chance = random.Random(1)

    async def answers() -> list[httpx.Response]:
        there = httpx.ASGITransport(create_api(service_of()))
        async with httpx.AsyncClient(transport=there, base_url="http://here") as client:
            return [await client.post("/generate", **strange(chance)) for _ in range(1_000)]

    answered = asyncio.run(answers())
    said = list(map(json.loads, lines))
    assert len(said) == 1_000
    assert {type(line) for line in said} == {dict}
    assert not [line for line in lines if "\n" in line or "\r" in line]
    assert {answer.status_code for answer in answered} == {200}
    for line, answer in zip(said, answered, strict=True):
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", line["request_id"])
        assert line["request_id"] == answer.headers["x-request-id"]


def strange(chance: random.Random) -> dict[str, Any]:
    """A request with an id of random bytes, and a prompt of random characters, surrogates among them."""
    alphabet = chance.choice((range(0x80), range(0x11_0000), range(0xD800, 0xE000)))
    prompt = "".join(map(chr, chance.choices(alphabet, k=chance.randrange(20))))
    request_id = chance.randbytes(chance.randrange(6)) if chance.random() < 0.5 else b"%d" % chance.getrandbits(64)
    headers = {b"x-request-id": request_id, b"content-type": b"application/json"}
    body = {"prompt": f"{prompt}#0", "max_tokens": chance.randrange(2), "draft": "none"}
    return {"content": json.dumps(body), "headers": headers}


def test_what_failed_is_logged_with_the_same_name(lines: list[str]):
    """The reason and its traceback are one line of the log, found by the id that the client was told."""

    def broken(name: str) -> Toy:
        model = load_toy(name)
        if name == "other":
            model.network.forward = lambda *_, **__: 1 / 0  # type: ignore[method-assign, assignment, return-value]
        return model

    with serving(service_of(loader=broken)) as client:
        answer = client.post("/v1/completions", json={"model": "other", "prompt": "#0"})
    assert answer.status_code == 500
    assert "ZeroDivision" not in answer.text
    failed, request = map(json.loads, lines)
    assert "ZeroDivisionError" in failed["exception"]
    assert failed["request_id"] == request["request_id"] == answer.headers["x-request-id"]
    assert "\n" not in lines[0]


def test_the_programs_log_is_json_to_the_last_line():
    """Whatever `serve` writes on standard error is one JSON object a line."""
    with program("specdec", "serve", "--port", "0") as (process, address):
        httpx.get(f"{address}/healthz", headers={"x-request-id": "mine"})
        httpx.get(f"{address}/nowhere")
        process.terminate()
        assert process.stderr
        said = [json.loads(line) for line in process.stderr]
    assert [line["request_id"] for line in said if line.get("path") == "/healthz"] == ["mine"]
