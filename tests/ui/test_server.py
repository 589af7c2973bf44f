"""The web application: its switches are pinned, and it gives out nothing but the page."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import app as front
from specdec.errors import ConfigError
from specdec.serving import Offer, Service, Settings
from specdec.threads import VARIABLES
from specdec.ui.assets import served
from specdec.ui.server import create_app, serve
from tests.serving.toys import load_toy

OFFERS = [Offer("target", 7_340_032, "target"), Offer("draft", 400_000, "draft")]


@pytest.fixture(scope="module")
def app() -> FastAPI:
    async def inside_a_loop() -> FastAPI:  # outside of one, Gradio makes several and never closes them
        return create_app(Service(Settings(queue_limit=5), load_toy, OFFERS))

    return asyncio.run(inside_a_loop())


@pytest.fixture(scope="module")
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app) as client:
        yield client


@pytest.fixture(scope="module")
def blocks(app: FastAPI) -> Any:
    (mounted,) = [route for route in app.routes if getattr(route, "path", None) == ""]
    return mounted.app.get_blocks()  # type: ignore[attr-defined]


def test_the_page_and_its_files_are_there(client: TestClient):
    """The page opens, and each of its own files is given out with a fitting type."""
    assert "specdec" in client.get("/").text
    kinds = {"css": "text/css", "js": "text/javascript", "png": "image/png"}
    for name in served():
        answer = client.get(f"/ui/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kinds[name.rpartition(".")[2]])


def test_plotly_is_sent_compressed(client: TestClient):
    """4.8 MB go out as less than 1.6 MB, and arrive whole."""
    answer = client.get("/ui/plotly.min.js", headers={"accept-encoding": "gzip"})
    assert int(answer.headers["content-length"]) < 1_600_000
    assert answer.content == served()["plotly.min.js"].read_bytes()


@pytest.mark.parametrize(
    "path",
    [
        "/gradio_api/file=app.py",
        "/gradio_api/file=.env",
        "/gradio_api/file=../pyproject.toml",
        "/gradio_api/file=/etc/passwd",
        "/gradio_api/file=specdec/ui/server.py",
        "/ui/../app.py",
        "/ui/..%2Fapp.py",
        "/ui/..%2f..%2f..%2fetc%2fpasswd",
        "/ui/header.html",
        "/ui/",
        "/monitoring",
        "/docs",
        "/openapi.json",
    ],
)
def test_nothing_else_is_given_out(client: TestClient, path: str):
    """No file of the project or the machine, no dashboard, no generated documentation that loads from elsewhere."""
    answer = client.get(path)
    assert answer.status_code in (403, 404)
    assert "root:" not in answer.text


def test_a_foreign_origin_gets_no_cors_header(client: TestClient):
    """Another site's script may not read answers, whatever host name this one runs under."""
    for host in ("127.0.0.1", "demo.example.org"):
        for path in ("/", "/config", "/ui/tokens.css"):
            answer = client.get(path, headers={"origin": "https://evil.example", "host": host})
            assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_switches_are_pinned(blocks: Any):
    """Share, errors, monitoring, history, server-side rendering off; uploads small; the queue bounded."""
    assert not blocks.share
    assert blocks.show_error is False
    assert blocks.enable_monitoring is False
    assert blocks.run_history is False
    assert blocks.ssr_mode is False
    assert blocks.pwa is False
    assert blocks.mcp_server is False
    assert blocks.api_open is False
    assert blocks.allowed_paths == []
    assert blocks.max_file_size == 1_000_000 or blocks.max_file_size == 1 << 20
    assert 5 < blocks._queue.max_size <= 50


def test_generation_is_wired_as_it_must_be(blocks: Any):
    """Its own name, one engine, no fading of the live panel, no second click while it runs."""
    users = [fn for fn in blocks.fns.values() if fn.concurrency_id == "engine"]
    assert [fn.api_name for fn in users] == ["generate", "test_losslessness", "race", "explore", "complete"]
    assert [fn.concurrency_limit for fn in users] == [7] * 5
    for fn in users[:4]:
        assert fn.show_progress == "hidden"
        assert fn.trigger_mode == "once"
    (stop,) = [fn for fn in blocks.fns.values() if fn.api_name == "stop"]
    assert stop.queue is False


def test_only_offered_models_can_be_chosen(blocks: Any):
    """Lists with sizes, no free text; target and draft keep to their roles."""
    choices = {
        block.elem_id: block.choices
        for block in blocks.blocks.values()
        if getattr(block, "elem_id", "") in ("target", "draft")
    }
    assert choices["target"] == [("target · 7.34 M params", "target")]
    assert [value for _, value in choices["draft"]] == ["draft", "ngram", "none"]


def test_templates_are_constant(blocks: Any):
    """The live panel's template evaluates nothing, so that no text of a user or model can be run by Gradio."""
    live = next(block for block in blocks.blocks.values() if block.elem_id == "live")
    assert not [mark for mark in ("${", "{{", "`", "\\") if mark in live.html_template + live.css_template]


def test_environment_is_set_before_the_libraries_are_imported():
    """app.py sets thread counts while NumPy is not there yet, specdec.ui the switches before Gradio is."""
    code = (
        "import sys, os, app; chosen = app.options(['--port', '7000']); app.limit_threads(chosen.threads);"
        "assert not {'numpy', 'gradio'} & set(sys.modules);"
        "import specdec.ui; assert 'gradio' not in sys.modules;"
        "print(*map(os.environ.get, ['GRADIO_ANALYTICS_ENABLED', 'OPENBLAS_NUM_THREADS', 'SPECDEC_THREADS']),"
        "chosen.host, chosen.port)"
    )
    free = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    environment = free | {"CPU_CORES": "2", "GRADIO_SERVER_NAME": "0.0.0.0", "GRADIO_SERVER_PORT": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["False", "1", "2", "0.0.0.0", "7000"], done.stderr


@pytest.mark.parametrize(
    ("environment", "arguments", "threads"),
    [
        ({}, [], None),
        ({"CPU_CORES": ""}, [], None),
        ({"CPU_CORES": "2"}, [], 2),
        ({"CPU_CORES": "2", "SPECDEC_THREADS": "3"}, [], 3),
        ({"CPU_CORES": "2", "SPECDEC_THREADS": "3"}, ["--threads", "1"], 1),
    ],
)
def test_the_command_line_comes_before_the_environment(
    environment: dict[str, str], arguments: list[str], threads: int | None, monkeypatch: pytest.MonkeyPatch
):
    """--threads, then SPECDEC_THREADS, then CPU_CORES; an empty variable is as good as none."""
    for name in ("CPU_CORES", "SPECDEC_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    chosen = front.options(arguments).threads
    monkeypatch.setattr(os, "environ", dict(os.environ))
    front.limit_threads(chosen)
    assert chosen == threads
    assert os.environ.get("SPECDEC_THREADS") == (str(threads) if threads else None)


def test_a_port_can_come_from_the_environment_alone(monkeypatch: pytest.MonkeyPatch):
    """As Gradio's own programs take it."""
    monkeypatch.setenv("GRADIO_SERVER_PORT", "9999")
    assert front.options([]).port == 9999


def test_a_taken_port_is_said_in_one_sentence():
    """Before anything is built: what is wrong, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} of 127.0.0.1 .* choose another with --port"):
            serve(Service(loader=load_toy), "127.0.0.1", port)
