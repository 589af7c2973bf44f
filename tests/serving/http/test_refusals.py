"""What cannot be meant is refused by name, in one shape, before the engine is asked for anything."""

import json
import socket
from typing import Any

import httpx
import pytest

from specdec.config import LIMITS
from specdec.serving import Service, Settings
from specdec.serving.http.body import MAX_BYTES
from tests.serving.http.servers import passes, service_of, serving, streamed

COMPLETION: dict[str, Any] = {"model": "target", "prompt": "#0"}
CHAT: dict[str, Any] = {"model": "target", "messages": [{"role": "user", "content": "hello"}]}
GENERATE: dict[str, Any] = {"prompt": "#0"}
ENDPOINTS = {"/generate": GENERATE, "/v1/completions": COMPLETION, "/v1/chat/completions": CHAT}
JSON = {"content-type": "application/json"}
SECRETS = ("Traceback", 'File "', "/specdec/", ".py", "SECRET")


def refused(answer: httpx.Response, status: int = 400) -> dict[str, Any]:
    """The error of an answer, of which it is all; nothing in it of the machine or of a prompt."""
    assert answer.status_code == status, answer.text
    assert not [secret for secret in SECRETS if secret in answer.text]
    assert set(answer.json()) == {"error"}
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert isinstance(error["message"], str) and len(error["message"]) > 10
    return error


WRONG = [
    *(
        (name, value)
        for name in ("max_tokens", "seed", "top_k")
        for value in ("true", '"5"', "5.0", "1e400", "-1", "[]")
    ),
    *(
        (name, value)
        for name in ("temperature", "top_p")
        for value in ("true", '"1"', "NaN", "1e400", "-1", "Infinity")
    ),
    *(("frequency_penalty", value) for value in ("NaN", "11", "{}")),
    *(("stop", value) for value in ("1", '""', "[1]", json.dumps(["x"] * 17), json.dumps("x" * 257))),
    *(("logit_bias", value) for value in ('{"x": 1}', '{"1": "1"}', '{"-1": 1}', '{"99": 1}', "[]", '{"1": NaN}')),
    *(("num_speculative_tokens", value) for value in ("true", "16", "-1", '"fast"', "2.0")),
    ("acceptance", '"always"'),
    ("draft", "1"),
    ("ignore_eos", "1"),
    ("unknown", "1"),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_each_wrong_value_is_named(client: httpx.Client, service: Service, name: str, value: str):
    """Wrong kinds, NaN, infinity, out of range, unknown: 400 with the field, on each endpoint, and no pass made."""
    before = passes(service)
    for path, body in ENDPOINTS.items():
        text = json.dumps(body)[:-1] + f', "{name}": {value}}}'
        error = refused(client.post(path, content=text, headers=JSON))
        assert (error["param"] or error["message"]).startswith(name) or name in error["message"].replace(" ", "_")
        assert error["type"] == "invalid_request_error"
    assert passes(service) == before


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/generate", {}, "prompt"),
        ("/generate", GENERATE | {"max_tokens": None}, "max_tokens"),
        ("/generate", GENERATE | {"stop_token_ids": [True]}, "stop_token_ids.0"),
        ("/generate", {"prompt": ["a"]}, "prompt"),
        ("/v1/completions", {"prompt": "a"}, "model"),
        ("/v1/completions", COMPLETION | {"prompt": ["a", "b"]}, "prompt"),
        ("/v1/completions", COMPLETION | {"prompt": [1, 2]}, "prompt"),
        ("/v1/completions", COMPLETION | {"n": 2}, "n"),
        ("/v1/completions", COMPLETION | {"n": True}, "n"),
        ("/v1/completions", COMPLETION | {"stream": 1}, "stream"),
        ("/v1/completions", COMPLETION | {"stream": True, "stream_options": {"x": 1}}, "stream_options.x"),
        ("/v1/chat/completions", CHAT | {"messages": []}, "messages"),
        ("/v1/chat/completions", CHAT | {"messages": [{"role": "tool", "content": "a"}]}, "messages.0.role"),
        ("/v1/chat/completions", CHAT | {"messages": [{"role": "user", "content": None}]}, "messages.0.content"),
        ("/v1/chat/completions", CHAT | {"messages": [{"role": "user"}]}, "messages.0.content"),
        ("/v1/chat/completions", CHAT | {"top_logprobs": 2}, "top_logprobs"),
        (
            "/v1/chat/completions",
            CHAT | {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]},
            "messages.0.content",
        ),
    ],
)
def test_each_endpoint_names_its_own(client: httpx.Client, path: str, body: dict[str, Any], param: str):
    """Missing fields, and those that only this endpoint has."""
    assert refused(client.post(path, json=body))["param"] == param


@pytest.mark.parametrize(
    ("path", "body", "name"),
    [
        ("/generate", GENERATE, "top"),
        ("/v1/completions", COMPLETION, "logprobs"),
        ("/v1/chat/completions", CHAT | {"logprobs": True}, "top_logprobs"),
    ],
)
def test_ten_likeliest_tokens_and_no_more(client: httpx.Client, path: str, body: dict[str, Any], name: str):
    """Ten are given (of a vocabulary of eight: all), eleven refused, under the name that each endpoint has for them."""
    assert client.post(path, json=body | {name: 10, "max_tokens": 2}).status_code == 200
    error = refused(client.post(path, json=body | {name: 11, "max_tokens": 2}))
    assert error["param"] == name
    assert "10" in error["message"]


def test_fields_that_openai_knows_and_this_server_does_not(client: httpx.Client):
    """Refused by name, none of them passed over."""
    for name in ("tools", "response_format", "user", "best_of", "echo", "suffix", "store", "metadata", "service_tier"):
        for path in ("/v1/completions", "/v1/chat/completions"):
            error = refused(client.post(path, json=ENDPOINTS[path] | {name: None}))
            assert (error["param"], error["code"]) == (name, "unsupported_parameter")
    strange = "\u2028<script>" + "x" * 200
    error = refused(client.post("/generate", content=json.dumps(GENERATE | {strange: 1}), headers=JSON))
    assert error["param"] == strange[:80]
    refused(client.post("/generate", content=json.dumps(GENERATE | {"\ud800": 1}), headers=JSON))


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b'{"prompt": "SECRET', b"\xff\xfe", b"null", b"[]", b'"text"', b"[" * 60_000, b"1" * 5_000, b"NaN"],
)
def test_what_is_no_json_object(client: httpx.Client, body: bytes):
    """400 and a sentence."""
    for path in ENDPOINTS:
        refused(client.post(path, content=body, headers=JSON))


def test_json_must_say_that_it_is_json(client: httpx.Client):
    """Another type of content is refused with what to write: no other site's page can send this one unasked."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        error = refused(client.post("/generate", content=json.dumps(GENERATE), headers={"content-type": kind}))
        assert "Content-Type: application/json" in error["message"]


def test_a_body_may_be_so_long(client: httpx.Client):
    """At the limit it is read, one byte more is 413: told by its length, or found out in chunks without one."""
    text = json.dumps(GENERATE | {"max_tokens": 1}).encode()
    full = text + b" " * (MAX_BYTES - len(text))
    assert client.post("/generate", content=full, headers=JSON).status_code == 200
    assert refused(client.post("/generate", content=full + b" ", headers=JSON), 413)["code"] == "body_too_large"
    assert refused(client.post("/generate", content=iter([full, b" "]), headers=JSON), 413)
    assert client.post("/generate", content=iter([full[:100], full[100:]]), headers=JSON).status_code == 200
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("length", ["99999999999999999999", "100000"])
def test_a_length_is_believed_where_it_refuses(client: httpx.Client, length: str):
    """A body that only says that it is long is refused before any of it is sent."""
    head = f"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    with socket.create_connection((client.base_url.host, client.base_url.port or 80), 10) as raw:
        raw.sendall(head.encode())
        assert raw.recv(1_000).startswith(b"HTTP/1.1 413")


def test_a_body_that_does_not_come(client: httpx.Client, monkeypatch: pytest.MonkeyPatch):
    """A length that promises more than is sent ends with 408, and nothing was asked of the engine."""
    monkeypatch.setattr("specdec.serving.http.body.READ_S", 0.3)
    head = "POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{}"
    with socket.create_connection((client.base_url.host, client.base_url.port or 80), 10) as raw:
        raw.sendall(head.encode())
        assert raw.recv(1_000).startswith(b"HTTP/1.1 408")


def test_limits_hold_to_the_unit():
    """Prompt and answer: at the limit it works, one more is refused with both numbers."""
    with serving(service_of(Settings(max_new_tokens=30, max_prompt_characters=50, requests_per_minute=0))) as client:
        assert streamed(client, "/generate", GENERATE | {"max_tokens": 30})
        error = refused(client.post("/generate", json=GENERATE | {"max_tokens": 31}))
        assert error["message"] == "max_tokens is 31, 30 are allowed here"
        assert error["param"] == "max_tokens"
        assert streamed(client, "/generate", {"prompt": "x" * 50})
        error = refused(client.post("/generate", json={"prompt": "SECRET" + "x" * 45}))
        assert error["message"] == "the prompt has 51 characters, 50 are allowed"
        messages = [{"role": "user", "content": "x" * 25}] * 2
        assert (
            "51 characters"
            in refused(client.post("/v1/chat/completions", json=CHAT | {"messages": messages}))["message"]
        )
        for k in (0, LIMITS.max_speculative_tokens):
            assert streamed(client, "/generate", GENERATE | {"max_tokens": 3, "num_speculative_tokens": k})


def test_a_prompt_that_fills_the_context(client: httpx.Client, service: Service):
    """Refused with both numbers before the answer begins, though it is a stream."""
    network = service._store.get("target").network
    usual, network.context_length = network.context_length, 1  # type: ignore[misc]
    try:
        for path, body in ENDPOINTS.items():
            error = refused(client.post(path, json=body | ({} if path == "/generate" else {"stream": True})))
            assert error["code"] == "context_length_exceeded"
    finally:
        network.context_length = usual  # type: ignore[misc]


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "none", "ngram", "https://example.org/x", "\x00", "draft\n", ""]
)
def test_only_models_on_offer(client: httpx.Client, name: str):
    """404 for every other name, be it a path or an address."""
    assert refused(client.post("/generate", json=GENERATE | {"model": name}), 404)["param"] == "model"
    if name not in ("none", "ngram"):
        assert refused(client.post("/generate", json=GENERATE | {"draft": name}), 404)["param"] == "draft"


def test_paths_and_methods(client: httpx.Client):
    """404 and 405 have the shape too; a foreign origin is told nothing that would let it read an answer."""
    for path in ("/", "/v1", "/docs", "/openapi.json", "/generate/", "/v1/embeddings"):
        refused(client.get(path), 404)
    for method, path in (("GET", "/generate"), ("DELETE", "/v1/models"), ("PUT", "/healthz"), ("OPTIONS", "/generate")):
        answer = client.request(method, path, headers={"origin": "https://evil.example"})
        refused(answer, 405)
        assert answer.headers["allow"]
        assert not [name for name in answer.headers if name.startswith("access-control")]
