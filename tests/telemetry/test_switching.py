"""Telemetry is off unless it is asked for, costs nothing then, and goes where the environment says."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from specdec.errors import ConfigError
from specdec.serving import Settings
from specdec.serving.http.observing import providers
from specdec.serving.service import unobserved
from specdec.telemetry.providers import Providers
from tests.serving.http.servers import program, service_of, serving
from tests.serving.http.test_refusals import refused
from tests.source_tree import ROOT
from tests.telemetry.test_metrics import BODY, request

WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Refused(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter", "prometheus_client")):
            raise ModuleNotFoundError(f"{name} is not installed", name=name)

sys.meta_path.insert(0, Refused())
"""
OFF = """
from specdec.serving import Service
from specdec.serving.http import create_api
app = create_api(Service(offers=()))
ours = ("specdec.telemetry", "prometheus_client", "opentelemetry.sdk", "opentelemetry.exporter")
print([name for name in sys.modules if name.startswith(ours)])
print(app.state.providers)
"""
NOWHERE = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
TOYS = ("tests.serving.http.slow_server",)
SIGNALS = ("TRACES", "METRICS")


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter's answer."""
    command = [sys.executable, *(["-c", code] if "\n" in code else code.split())]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_off_nothing_of_it_is_imported():
    """The API comes up where OpenTelemetry's SDK is not installed, and asks for none of it."""
    run = python(WITHOUT + OFF)
    assert (run.stdout.split("\n")[:2], run.returncode) == (["[]", "None"], 0), run.stderr


def test_off_a_run_is_the_engines_own_stream():
    """Nothing stands between the service and whoever pulls."""
    service = service_of()
    with serving(service) as client:
        assert service.observe is unobserved
        assert service.stream(request()).gi_code is service._stream(request(), lambda: False, None).gi_code
        answer = client.get("/metrics")
    assert refused(answer, 404)["code"] == "telemetry_off"
    assert "SPECDEC_TELEMETRY=on" in answer.text
    assert "specdec[telemetry]" in answer.text


def test_on_without_the_extra_is_said_in_a_sentence():
    """With the command that brings it; the server does not begin."""
    code = WITHOUT + "from specdec.cli import main\nsys.exit(main(['serve', '--port', '0']))"
    run = python(code, SPECDEC_TELEMETRY="on")
    assert run.returncode == 1
    assert "pip install" in run.stderr
    assert "telemetry" in run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout == ""


def test_on_the_page_and_the_api_answer_with_metrics():
    """One settings variable switches it on, for `serve`; the media type is Prometheus's, or what it asks for."""
    told = providers(Settings(telemetry="on"), {})
    assert told
    with serving(service_of(), told=told) as client:
        client.post("/v1/completions", json=BODY)
        plain = client.get("/metrics")
        asked = client.get("/metrics", headers={"accept": "application/openmetrics-text;version=1.0.0"})
    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert asked.headers["content-type"].startswith("application/openmetrics-text")
    assert asked.text.endswith("# EOF\n")
    assert "spec_decode_num_drafts_total{" in plain.text


def test_metrics_are_behind_the_key():
    """As everything is but health; Prometheus sends it as `authorization: credentials`."""
    settings = Settings(api_key="s3cret", telemetry="on")
    with serving(service_of(settings), told=Providers({})) as client:
        assert refused(client.get("/metrics"), 401)
        assert client.get("/metrics", headers={"authorization": "Bearer s3cret"}).status_code == 200


class Collector(ThreadingHTTPServer):
    """Takes what OTLP sends, or keeps it waiting."""

    def __init__(self, *, patient: bool = True) -> None:
        self.taken: dict[str, list[bytes]] = {}
        self.gate = threading.Event()
        if patient:
            self.gate.set()
        super().__init__(("127.0.0.1", 0), _Taking)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Taking(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.taken.setdefault(self.path, []).append(body)
        self.server.gate.wait(60)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def collecting(*, patient: bool = True) -> Iterator[Collector]:
    collector = Collector(patient=patient)
    thread = threading.Thread(target=collector.serve_forever)
    thread.start()
    try:
        yield collector
    finally:
        collector.gate.set()
        collector.shutdown()
        thread.join()
        collector.server_close()


def switched_on(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setenv("SPECDEC_TELEMETRY", "on")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")


def ask(address: str) -> None:
    """One short run."""
    assert httpx.post(f"{address}/v1/completions", json=BODY, timeout=60).status_code == 200


def test_the_environment_sends_it_to_a_collector(monkeypatch: pytest.MonkeyPatch):
    """OTEL_EXPORTER_OTLP_ENDPOINT: what a server knows arrives there before it has ended, spans and metrics."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "ours")
    with collecting() as collector:
        switched_on(monkeypatch, collector.address)
        with program(*TOYS) as (process, address):
            ask(address)
            process.terminate()
            assert process.wait(10) == 0
        traces = [ExportTraceServiceRequest.FromString(body) for body in collector.taken["/v1/traces"]]
        metrics = [ExportMetricsServiceRequest.FromString(body) for body in collector.taken["/v1/metrics"]]
    found = [resource for trace in traces for resource in trace.resource_spans]
    spans = {span.name for resource in found for scope in resource.scope_spans for span in scope.spans}
    assert {"POST /v1/completions", "text_completion target", "prefill", "draft", "verify"} <= spans
    assert any(a.key == "service.name" and a.value.string_value == "ours" for a in found[0].resource.attributes)
    scopes = [scope for body in metrics for resource in body.resource_metrics for scope in resource.scope_metrics]
    assert "spec_decode_num_drafts" in {metric.name for scope in scopes for metric in scope.metrics}


@pytest.mark.parametrize("there", [False, True])
def test_a_collector_that_does_not_answer_holds_nothing_up(monkeypatch: pytest.MonkeyPatch, there: bool):
    """Refused or silent: requests are answered, and the server ends with 0 within 10 seconds."""
    with collecting(patient=False) as collector:
        switched_on(monkeypatch, collector.address if there else NOWHERE["OTEL_EXPORTER_OTLP_ENDPOINT"])
        with program(*TOYS) as (process, address):
            ask(address)
            process.terminate()
            assert process.wait(10) == 0


@pytest.mark.parametrize("environment", [{}, NOWHERE | {f"OTEL_{name}_EXPORTER": "none" for name in SIGNALS}])
def test_nothing_is_sent_where_no_collector_is_named(environment: dict[str, str]):
    """No thread that sends is begun."""
    before = threading.active_count()
    Providers(environment)
    assert threading.active_count() == before


def test_another_protocol_is_refused():
    """What is not installed is not silently replaced."""
    with pytest.raises(ConfigError, match="http/protobuf"):
        Providers(NOWHERE | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
