"""The dashboard is made from the names, and a real Prometheus answers each of its queries."""

import json
import math
import re
import runpy
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from specdec.telemetry.names import METRICS
from tests.serving.http.servers import program, until
from tests.source_tree import ROOT
from tests.ui.conftest import free_port

SCRIPT = runpy.run_path(str(ROOT / "scripts" / "dashboard.py"))
PROMETHEUS = "/usr/bin/prometheus"
INTERVAL = "2m"
PATIENCE_S = 90
PROMPT = "Once upon a time there was a fox. " * 30  # long enough for the prefix cache
DRAFTS = ("specdec-draft-2x128", "ngram", "none")


def panels() -> list[dict[str, Any]]:
    """All but the rows."""
    made = json.loads(SCRIPT["DASHBOARD"].read_text(encoding="utf-8"))
    return [panel for panel in made["panels"] if panel["type"] != "row"]


def queries() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def test_the_dashboard_is_fresh():
    """It is what `python scripts/dashboard.py` makes."""
    assert SCRIPT["DASHBOARD"].read_text(encoding="utf-8") == SCRIPT["page"]()


def test_every_metric_is_on_it():
    """None is collected that nobody can see."""
    asked = " ".join(queries())
    assert [metric.name for metric in METRICS if metric.prometheus not in asked] == []


def test_panels_say_what_they_show():
    """Title, description with the names of metrics, the chosen data source; intervals and denominators."""
    for panel in panels():
        assert panel["title"]
        assert "From `" in panel["description"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "$datasource"}
    for query in queries():
        assert re.findall(r"\[(.*?)\]", query) == ["$__rate_interval"] * query.count("rate(")
        assert query.count(" / ") == query.count(" > 0)")


@contextmanager
def prometheus(folder: Path, scraped: str) -> Iterator[httpx.Client]:
    """A client of a Prometheus that reads a server's metrics every second."""
    port = free_port()
    config = folder / "prometheus.yml"
    job = {"job_name": "specdec", "static_configs": [{"targets": [scraped.removeprefix("http://")]}]}
    often = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    config.write_text(json.dumps({"global": often, "scrape_configs": [job]}))
    places = (f"--config.file={config}", f"--storage.tsdb.path={folder}", f"--web.listen-address=127.0.0.1:{port}")
    with subprocess.Popen([PROMETHEUS, *places], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
                until(lambda: answers(client))
                yield client
        finally:
            process.terminate()


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/-/ready").status_code == 200
    except httpx.TransportError:
        return False


def ask(client: httpx.Client, query: str) -> list[float]:
    """The values that a query has now."""
    for name, value in (("$__rate_interval", INTERVAL), ("$model", ".*")):
        query = query.replace(name, value)
    answer = client.get("/api/v1/query", params={"query": query}).json()
    assert answer["status"] == "success", (query, answer)
    return [float(sample["value"][1]) for sample in answer["data"]["result"]]


def load(address: str) -> None:
    """A run of each kind."""
    for draft in DRAFTS:
        body = {"prompt": PROMPT, "max_tokens": 12, "draft": draft, "num_speculative_tokens": 3}
        assert httpx.post(f"{address}/generate", json=body, timeout=60).status_code == 200


def asked_under_load(client: httpx.Client, address: str) -> dict[str, list[float]]:
    """The values of each query, as soon as all have some: each rate needs two readings."""
    ends = time.monotonic() + PATIENCE_S
    while True:
        load(address)
        found = {query: ask(client, query) for query in queries()}
        if all(map(is_told, found.values())) or time.monotonic() > ends:
            return found


def is_told(values: list[float]) -> bool:
    return bool(values) and all(map(math.isfinite, values))


def test_a_real_prometheus_answers_every_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Finite values for each, from a server under load; acceptance is a share and τ at least 1."""
    assert Path(PROMETHEUS).exists(), "apt-get install prometheus"
    monkeypatch.setenv("SPECDEC_TELEMETRY", "on")
    monkeypatch.setenv("SPECDEC_REQUESTS_PER_MINUTE", "0")
    with program("specdec", "serve", "--port", "0") as (_, address), prometheus(tmp_path, address) as client:
        found = asked_under_load(client, address)
    assert [query for query, values in found.items() if not is_told(values)] == []
    values = {panel["title"]: [found[target["expr"]] for target in panel["targets"]] for panel in panels()}
    assert all(0 < share <= 1 for shares in values["Acceptance"] for share in shares)
    assert values["Mean acceptance length τ"][0][0] >= 1
    assert sum(values["Where engine time goes"][0]) == pytest.approx(1)
