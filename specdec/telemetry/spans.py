"""A run as a tree of times: the HTTP request, the generation in it, and in that prefill, draft and verify by round.

The parts of a round are told after it: their beginnings are reckoned back from the seconds that the round carries.
https://www.w3.org/TR/trace-context for the parent, https://opentelemetry.io/docs/specs/semconv/gen-ai/ for attributes.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span as SdkSpan
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import (
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    format_span_id,
    format_trace_id,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from specdec.records import Round
from specdec.stats import Stats
from specdec.telemetry import names

KEY = contexts.create_key("specdec.request_id")
PARENTS = TraceContextTextMapPropagator()
NS = 1_000_000_000


class RequestIds(SpanProcessor):
    """Puts the id of its request on every span."""

    def on_start(self, span: SdkSpan, parent_context: Context | None = None) -> None:
        """See OpenTelemetry."""
        request_id = contexts.get_value(KEY, parent_context)
        if isinstance(request_id, str):
            span.set_attribute(names.REQUEST_ID, request_id)


def named(request_id: str, context: Context | None = None) -> Context:
    """A context whose spans carry a request's id."""
    return contexts.set_value(KEY, request_id, context)


def request_id(context: Context) -> str:
    """The id that a context's spans carry; empty where there is none."""
    return str(contexts.get_value(KEY, context) or "")


@contextmanager
def http_span(tracer: Tracer, headers: Mapping[str, str], own_id: str) -> Iterator[Span]:
    """The span of an HTTP request: its caller's child where `traceparent` says so; current while it lasts."""
    context = named(own_id, PARENTS.extract(dict(headers), Context()))
    span = tracer.start_span("HTTP", context, SpanKind.SERVER)
    token = contexts.attach(set_span_in_context(span, context))
    try:
        yield span
    finally:
        contexts.detach(token)
        span.end()


def traceparent(span: Span) -> str:
    """A span as W3C has it."""
    own = span.get_span_context()
    return f"00-{format_trace_id(own.trace_id)}-{format_span_id(own.span_id)}-{own.trace_flags:02x}"


@dataclass(slots=True)
class RunSpan:
    """The span of a run that began at `began` (ns), with those of its rounds."""

    tracer: Tracer
    name: str
    parent: Context
    attributes: Mapping[str, str | int | float]
    began: int
    span: Span = field(init=False)
    context: Context = field(init=False)

    def __post_init__(self) -> None:
        self.span = self.tracer.start_span(
            self.name, self.parent, SpanKind.INTERNAL, dict(self.attributes), start_time=self.began
        )
        self.context = set_span_in_context(self.span, self.parent)

    def add(self, step: Round) -> None:
        """Tell the parts of a round that ends now."""
        if not self.span.is_recording():
            return
        ends = time.time_ns() - int(step.sample_s * NS)
        verify = ends - int(step.verify_s * NS)
        draft = verify - int(step.draft_s * NS)
        if step.prefill_s:
            self._part("prefill", draft - int(step.prefill_s * NS), draft, {})
        counts = {names.ROUND: step.index, names.DRAFTED: step.drafted}
        if step.draft_s:
            self._part("draft", draft, verify, counts)
        self._part("verify", verify, ends, {**counts, names.ACCEPTED: step.accepted})

    def _part(self, name: str, begins: int, ends: int, attributes: Mapping[str, int]) -> None:
        self.tracer.start_span(name, self.context, attributes=dict(attributes), start_time=begins).end(ends)

    def end(self, reason: str, stats: Stats, error: str = "") -> None:
        """The run ended. Of an error only its kind is told: its message may hold a path."""
        counts = {names.INPUT_TOKENS: stats.prompt_tokens, names.OUTPUT_TOKENS: stats.tokens}
        counts |= {names.DRAFTED: stats.drafted, names.ACCEPTED: stats.accepted}
        self.span.set_attributes({**counts, names.FINISH_REASONS: [reason]})
        if error:
            self.span.set_attribute(names.ERROR, error)
            self.span.set_status(Status(StatusCode.ERROR))
        self.span.end()
