"""Watches runs and HTTP requests go by, and tells metrics and spans."""

import secrets
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from opentelemetry import context as contexts
from opentelemetry.metrics import Meter
from opentelemetry.trace import Span, Status, StatusCode, Tracer

from specdec.records import Finished, Record, Round, Started
from specdec.stats import Stats
from specdec.telemetry import names
from specdec.telemetry.metrics import Fold, Metrics, Reading
from specdec.telemetry.spans import RunSpan, http_span, named, request_id, traceparent

METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"}
Records = Generator[Record, None, None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is told of a request: never its text. `model` and `draft` come from a closed list of names."""

    operation: str
    model: str
    draft: str
    max_tokens: int
    temperature: float

    @property
    def labels(self) -> dict[str, str]:
        """What all of its metrics say."""
        return dict(zip(names.RUN, (self.operation, "specdec", self.model, self.draft), strict=True))

    @property
    def attributes(self) -> dict[str, str | int | float]:
        """What its span says."""
        return {**self.labels, names.MAX_TOKENS: self.max_tokens, names.TEMPERATURE: self.temperature}


class Telemetry:
    """Metrics and spans of a service. Safe to share between threads."""

    def __init__(self, tracer: Tracer, meter: Meter) -> None:
        self._tracer = tracer
        self._metrics = Metrics(meter)

    def read(self, metric: names.Metric, reading: Callable[[], Reading]) -> None:
        """Have a gauge or counter read through a callable, see `Metrics.read`."""
        self._metrics.read(metric, reading)

    def watched(self, asked: Asked, records: Records) -> Records:
        """The same records, told as they go by. A run is told of from its first record on, with the wait before."""
        context = contexts.get_current()
        if not request_id(context):
            context = named(secrets.token_hex(16), context)
        return self._watched(asked, records, context, time.time_ns())

    def _watched(self, asked: Asked, records: Records, context: contexts.Context, began: int) -> Records:
        name = f"{asked.operation} {asked.model}"
        run = _Run(
            Fold(self._metrics, asked.labels), RunSpan(self._tracer, name, context, asked.attributes, began), began
        )
        try:
            with closing(records):
                for record in records:
                    run.see(record)
                    yield record
        except Exception as error:
            run.end("error", type(error).__name__)
            raise
        finally:
            run.end("cancelled")

    @contextmanager
    def exchange(self, headers: Mapping[str, str], own_id: str) -> Iterator["Exchange"]:
        """An HTTP request while it lasts."""
        with http_span(self._tracer, headers, own_id) as span:
            exchange = Exchange(span)
            began = time.perf_counter()
            try:
                yield exchange
            finally:
                self._metrics.add(names.HTTP, time.perf_counter() - began, exchange.labels)


@dataclass(slots=True)
class Exchange:
    """An HTTP request: its span, and how it was answered."""

    span: Span
    labels: dict[str, str | int] = field(default_factory=dict)

    @property
    def traceparent(self) -> str:
        """Its place in the trace."""
        return traceparent(self.span)

    def answered(self, method: str, route: str, status: int) -> None:
        """Say how it ended. `route` is a pattern of ours, empty where there is none."""
        method = method if method in METHODS else "_OTHER"
        self.labels = {names.METHOD: method, names.ROUTE: route, names.STATUS: status}
        self.span.update_name(f"{method} {route}".strip())
        self.span.set_attributes(self.labels)
        if status >= 500:
            self.span.set_attribute(names.ERROR, str(status))
            self.span.set_status(Status(StatusCode.ERROR))


@dataclass(slots=True)
class _Run:
    """One run, told once to the metrics and once to the spans; what comes after its end is not told."""

    fold: Fold
    span: RunSpan
    began: int
    ended: bool = False

    def see(self, record: Record) -> None:
        if isinstance(record, Started):
            self.fold.stats = Stats(prompt_tokens=len(record.prompt_ids))
        elif isinstance(record, Round):
            self.fold.add(record)
            self.span.add(record)
        elif isinstance(record, Finished):
            self.end(record.reason)

    def end(self, reason: str, error: str = "") -> None:
        if not self.ended:
            self.ended = True
            self.fold.end(reason, (time.time_ns() - self.began) / 1e9, error)
            self.span.end(reason, self.fold.stats, error)
