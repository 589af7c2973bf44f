"""The server's own process asks nobody outside of this machine for anything: not at its start, not for a run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from gradio_client import Client

from tests.ui.conftest import running

WATCHER = """
import os, sys

ASKED = {"connect": 1, "sendto": 1, "sendmsg": 1, "getaddrinfo": 0, "gethostbyname": 0, "gethostbyaddr": 0}
HERE = (None, "", "localhost", "127.0.0.1", b"127.0.0.1", "::1")

def watch(event, given):
    part, _, name = event.partition(".")
    if part != "socket" or name not in ASKED:
        return
    address = given[ASKED[name]]
    host = address[0] if isinstance(address, tuple) else address
    if host in HERE or (name == "connect" and not isinstance(address, tuple)):  # the latter: a socket that is a file
        return
    with open(os.environ["WATCHED"], "a") as record:
        record.write(f"{name} {host}\\n")
    raise OSError(f"{host} is outside of this machine")

sys.addaudithook(watch)
"""


def test_the_server_asks_nobody_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """From the start of Python on, each such call would be recorded and refused; a control shows that it would."""
    record = tmp_path / "record"
    (tmp_path / "sitecustomize.py").write_text(WATCHER)
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("WATCHED", str(record))
    with running("app.py", "--port", "PORT") as address:
        client = Client(address, verbose=False, analytics_enabled=False)
        answer = client.predict("Once upon a time", max_tokens=8, api_name="/complete")
        client.close()
    assert answer["stats"]["tokens"] == 8
    assert not record.exists(), record.read_text()
    code = "import socket; socket.create_connection(('192.0.2.1', 9))"
    assert subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL, check=False).returncode == 1
    assert record.read_text() == "getaddrinfo 192.0.2.1\n"
