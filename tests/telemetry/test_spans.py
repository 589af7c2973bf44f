"""A request as a tree of times, in its caller's trace, under the names that its log lines have."""

import json
import logging
from collections.abc import Iterator
from itertools import pairwise

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from specdec.config import SamplingParams
from specdec.records import Round
from specdec.serving import GenerationRequest
from specdec.serving.http.observing import observe
from specdec.stats import Stats
from specdec.telemetry import names
from specdec.telemetry.providers import Providers
from tests.serving.http.servers import service_of, serving, streamed, until
from tests.serving.http.test_tracing import PARENT, TRACE, Lines
from tests.telemetry.test_metrics import BODY, request

Exporter = InMemorySpanExporter


@pytest.fixture
def exporter() -> Exporter:
    return InMemorySpanExporter()


@pytest.fixture
def providers(exporter: Exporter) -> Providers:
    return Providers({}, SimpleSpanProcessor(exporter))


@pytest.fixture
def lines() -> Iterator[list[str]]:
    handler, logger = Lines(), logging.getLogger("specdec")
    usual = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler.lines
    logger.removeHandler(handler)
    logger.setLevel(usual)


def spans(exporter: Exporter, name: str) -> list[ReadableSpan]:
    """Those of a name, in the order in which they ended."""
    return [span for span in exporter.get_finished_spans() if span.name == name]


def place(span: ReadableSpan) -> str:
    """A span as `traceparent` says it."""
    own = span.get_span_context()
    return f"00-{own.trace_id:032x}-{own.span_id:016x}-{own.trace_flags:02x}"


def test_a_request_is_a_tree_in_its_callers_trace(providers: Providers, exporter: Exporter, lines: list[str]):
    """HTTP request, generation, and in it prefill, draft and verify; id and trace are those of the log line."""
    headers = {"traceparent": PARENT, "x-request-id": "mine"}
    with serving(service_of(), told=providers) as client:
        client.post("/v1/completions", json=BODY, headers=headers)
        until(lambda: spans(exporter, "POST /v1/completions") and lines)
    (http,) = spans(exporter, "POST /v1/completions")
    (run,) = spans(exporter, "text_completion target")
    assert http.kind is SpanKind.SERVER
    assert http.parent and f"{http.parent.span_id:016x}" == PARENT[36:52]
    assert run.parent == http.get_span_context()
    parts = [part for name in ("prefill", "draft", "verify") for part in spans(exporter, name)]
    assert {part.name for part in parts} == {"prefill", "draft", "verify"}
    assert all(part.parent == run.get_span_context() for part in parts)
    everything = exporter.get_finished_spans()
    assert {f"{span.get_span_context().trace_id:032x}" for span in everything} == {TRACE}
    assert {span.attributes[names.REQUEST_ID] for span in everything} == {"mine"}
    line = next(line for line in map(json.loads, lines) if line["message"] == "request")
    assert (line["request_id"], line["traceparent"]) == ("mine", place(http))


def test_times_and_counts_are_those_of_the_rounds(providers: Providers, exporter: Exporter):
    """A span for each part of each round, as long as the round says, none beginning before its run or overlapping."""
    service = service_of()
    observe(service, providers.telemetry)
    records = list(service.stream(request()))
    rounds = [record for record in records if isinstance(record, Round)]
    (run,) = spans(exporter, "text_completion target")
    for name in ("draft", "verify"):
        parts = spans(exporter, name)
        told = [getattr(step, f"{name}_s") for step in rounds if getattr(step, f"{name}_s")]
        assert [(part.end_time - part.start_time) / 1e9 for part in parts] == pytest.approx(told, abs=1e-6)
    assert [part.attributes[names.ACCEPTED] for part in spans(exporter, "verify")] == [s.accepted for s in rounds]
    parts = [span for span in exporter.get_finished_spans() if span is not run]
    assert all(before.end_time <= after.start_time for before, after in pairwise(parts))
    assert run.start_time <= parts[0].start_time
    assert parts[-1].end_time <= run.end_time
    stats = Stats.of(records)
    said = {names.OUTPUT_TOKENS: stats.tokens, names.INPUT_TOKENS: stats.prompt_tokens}
    said |= {names.DRAFTED: stats.drafted, names.ACCEPTED: stats.accepted, names.FINISH_REASONS: ("length",)}
    assert said.items() <= dict(run.attributes).items()


def test_runs_beside_the_api_have_ids_of_their_own(providers: Providers, exporter: Exporter):
    """As the page makes them: each a trace of its own, all of whose spans have one id."""
    service = service_of()
    observe(service, providers.telemetry)
    for _ in range(2):
        list(service.stream(request()))
    everything = exporter.get_finished_spans()
    pairs = {(span.get_span_context().trace_id, span.attributes[names.REQUEST_ID]) for span in everything}
    assert len(pairs) == 2


@pytest.mark.parametrize("sent", ["nonsense", PARENT + "-more", PARENT.replace(TRACE, "0" * 32), ""])
def test_a_malformed_trace_is_not_continued(providers: Providers, exporter: Exporter, sent: str):
    """The request begins a trace."""
    with serving(service_of(), told=providers) as client:
        client.get("/v1/models", headers={"traceparent": sent})
        until(lambda: spans(exporter, "GET /v1/models"))
    (http,) = spans(exporter, "GET /v1/models")
    assert http.parent is None


def test_a_caller_that_does_not_sample_is_heeded(providers: Providers, exporter: Exporter):
    """Flag 00: nothing is exported."""
    with serving(service_of(), told=providers) as client:
        client.post("/v1/completions", json=BODY, headers={"traceparent": PARENT[:-2] + "00"})
    assert exporter.get_finished_spans() == ()


def test_no_text_is_in_any_span(providers: Providers, exporter: Exporter):
    """Neither prompt nor answer, nor a path, a query or an error's message."""
    with serving(service_of(), told=providers) as client:
        done = streamed(client, "/generate", BODY | {"prompt": "SECRET#0"})[-1][1]
        client.post("/generate", json={"prompt": "SECRET", "SECRET": 1})
        client.get("/v1/SECRET?SECRET=SECRET")
        client.get("/healthz"), client.get("/metrics")
        until(lambda: len(spans(exporter, "GET")) == 1)
    said = " ".join(span.to_json() for span in exporter.get_finished_spans())
    assert " one two" in done["text"]
    assert "SECRET" not in said
    assert " two" not in said
    assert "/healthz" not in said
    assert "/metrics" not in said


def test_a_failure_is_told_by_its_kind(providers: Providers, exporter: Exporter):
    """Status and `error.type`, no message and no traceback."""
    service = service_of()
    service._prepared = lambda request: 1 / 0
    observe(service, providers.telemetry)
    with pytest.raises(ZeroDivisionError):
        list(service.stream(GenerationRequest("#0", "target", params=SamplingParams(max_tokens=3))))
    (run,) = exporter.get_finished_spans()
    assert (run.status.is_ok, run.attributes[names.ERROR], run.events) == (False, "ZeroDivisionError", ())
