"""The page and the API in one process: `python app.py`."""

import subprocess
import sys
import time

import httpx
import pytest

from specdec.checkpoints import DEFAULT_TARGET
from tests.serving.http.servers import parse, program, until
from tests.serving.http.test_refusals import refused
from tests.source_tree import ROOT
from tests.ui.conftest import free_port


def test_both_answer_at_one_address():
    """Each keeps its paths and headers; a forged address is not believed; SIGTERM ends both with status 0.

    The signal comes while a text is streamed: that ends with its last event, the process within ten seconds.
    """
    with (
        program("app", "--port", str(free_port()), "--requests-per-minute", "12") as (process, address),
        httpx.Client(base_url=address) as client,
    ):
        until(lambda: client.get("/readyz", timeout=60).status_code == 200)
        assert "specdec" in client.get("/", timeout=60).text
        assert "x-request-id" not in client.get("/ui/tokens.css").headers
        assert client.get("/docs").status_code == client.get("/openapi.json").status_code == 404
        answer = client.post(
            "/v1/completions",
            json={"model": DEFAULT_TARGET, "prompt": "Once upon a time", "max_tokens": 7, "temperature": 0},
            headers={"x-request-id": "mine"},
            timeout=60,
        )
        assert answer.json()["choices"][0]["text"] == ", there was a little girl named"
        assert answer.headers["x-request-id"] == "mine"
        assert refused(client.get("/v1/nowhere"), 404)
        assert not [name for name in answer.headers if name.startswith("access-control")]
        body = {"prompt": "Once upon a time", "max_tokens": 512, "ignore_eos": True}
        with client.stream("POST", "/generate", json=body, timeout=60) as stream:
            events = parse(stream.iter_lines())
            assert next(name for name, _ in events if name == "token")
            for last in range(1, 13):
                answer = client.get("/v1/models", headers={"x-forwarded-for": f"1.2.3.{last}"})
            assert refused(answer, 429)
            began = time.monotonic()
            process.terminate()
            *_, (name, done) = events
        assert process.wait(10) == 0
        assert time.monotonic() - began <= 10
    assert (name, done["finish_reason"]) == ("done", "cancelled")


def test_the_command_lines_key_comes_before_the_environments(monkeypatch: pytest.MonkeyPatch):
    """--api-key, then SPECDEC_API_KEY."""
    monkeypatch.setenv("SPECDEC_API_KEY", "one")
    with program("specdec", "serve", "--port", "0", "--api-key", "two") as (_, address):
        for key, status in (("one", 401), ("two", 200)):
            answer = httpx.get(f"{address}/v1/models", headers={"authorization": f"Bearer {key}"})
            assert answer.status_code == status


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("--port", "99999"), "port 99999 of 127.0.0.1 cannot be used"), (("--model", "nobody"), "no model")],
)
def test_what_cannot_be_served_is_said_in_a_sentence(arguments: tuple[str, ...], message: str):
    """On standard error, with status 1."""
    command = [sys.executable, "-m", "specdec", "serve", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.load
def test_health_is_told_while_a_text_is_made():
    """99 of 100 answers within 200 ms, while the bundled models work; needs two cores to itself."""
    with program("specdec", "serve", "--port", "0") as (_, address), httpx.Client(base_url=address) as client:
        until(lambda: client.get("/readyz").status_code == 200)
        body = {"prompt": "Once upon a time", "max_tokens": 512, "ignore_eos": True}
        with client.stream("POST", "/generate", json=body) as answer:
            next(answer.iter_lines())
            seconds = sorted(httpx.get(f"{address}/healthz").elapsed.total_seconds() for _ in range(100))
    assert seconds[98] <= 0.2
