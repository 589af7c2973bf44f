"""Where metrics and spans go: Prometheus text on request, and OTLP where the environment names a collector.

`OTEL_EXPORTER_OTLP_ENDPOINT` (or `…_TRACES_ENDPOINT`, `…_METRICS_ENDPOINT`) switches OTLP on; nothing is sent where
none is set. The other standard variables (headers, timeouts, sampler, service name, resource attributes, intervals,
`OTEL_SDK_DISABLED`) are read by OpenTelemetry itself.
https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
"""

import atexit
import threading
from collections.abc import Mapping, Sequence

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from specdec.errors import ConfigError
from specdec.telemetry.spans import RequestIds
from specdec.telemetry.watching import Telemetry

PROTOCOL = "http/protobuf"
GOODBYE_S = 3.0


class Providers:
    """OpenTelemetry's providers of a service, global to nobody.

    `spans` and `readers` receive what there is, beside Prometheus and what the environment asks for.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        spans: SpanProcessor | None = None,
        readers: Sequence[MetricReader] = (),
    ) -> None:
        self._registry = CollectorRegistry()
        self._reading = threading.Lock()
        resource = Resource.create({SERVICE_NAME: environment.get("OTEL_SERVICE_NAME") or "specdec"})
        prometheus = PrometheusMetricReader(scope_info_enabled=False, registry=self._registry)
        if sent := _sent(environment, "METRICS"):
            readers = (*readers, PeriodicExportingMetricReader(OTLPMetricExporter()))
        if spans is None and _sent(environment, "TRACES"):
            spans, sent = BatchSpanProcessor(OTLPSpanExporter()), True
        tracers = TracerProvider(None if spans else ALWAYS_OFF, resource, shutdown_on_exit=False)
        tracers.add_span_processor(RequestIds())
        if spans:
            tracers.add_span_processor(spans)
        meters = MeterProvider([prometheus, *readers], resource, shutdown_on_exit=False)
        self.telemetry = Telemetry(tracers.get_tracer("specdec"), meters.get_meter("specdec"))
        if sent:
            _send_the_rest(tracers, meters)

    def text(self, accept: str) -> tuple[bytes, str]:
        """All metrics as Prometheus reads them, and the media type, as the header `Accept` would have it."""
        encode, kind = choose_encoder(accept)
        with self._reading:  # the reader holds what it collected in one place for all
            return encode(self._registry), kind


def _send_the_rest(tracers: TracerProvider, meters: MeterProvider) -> None:
    """When the program ends have what is left sent, unless that takes too long: a collector may be silent.

    The thread that does so waits from now on, because none can be begun once the interpreter ends.
    """
    ending = threading.Event()

    def send() -> None:
        ending.wait()
        tracers.shutdown()
        meters.shutdown()

    sender = threading.Thread(target=send, name="telemetry", daemon=True)
    sender.start()
    atexit.register(sender.join, GOODBYE_S)
    atexit.register(ending.set)  # called before what was registered before it


def _sent(environment: Mapping[str, str], signal: str) -> bool:
    """Whether a signal goes to a collector; ConfigError where it would have to go in a way that is not there."""
    named = [f"OTEL_EXPORTER_OTLP_{signal}_", "OTEL_EXPORTER_OTLP_"]
    if not any(environment.get(f"{prefix}ENDPOINT") for prefix in named):
        return False
    exporter = environment.get(f"OTEL_{signal}_EXPORTER") or "otlp"
    asked = filter(None, (environment.get(f"{prefix}PROTOCOL") for prefix in named))
    protocol = next(asked, PROTOCOL)
    if exporter == "otlp" and protocol != PROTOCOL:
        raise ConfigError(f"OTLP is spoken as {PROTOCOL} here, not as {protocol!r}: see OTEL_EXPORTER_OTLP_PROTOCOL")
    return exporter == "otlp"
