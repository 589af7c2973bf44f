"""What telemetry costs while it is on: `scripts/test tests/telemetry/test_cost.py -m load -s`."""

import statistics
import time
from contextlib import closing

import pytest
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from specdec.checkpoints import DEFAULT_DRAFT, DEFAULT_TARGET
from specdec.config import SamplingParams, SpeculativeConfig
from specdec.serving import GenerationRequest, Service
from specdec.serving.http.observing import observe
from specdec.telemetry.providers import Providers

PAIRS = 15
REQUEST = GenerationRequest(
    "Once upon a time there was a little dragon who was afraid of the dark. One night,",
    DEFAULT_TARGET,
    DEFAULT_DRAFT,
    params=SamplingParams(temperature=0, max_tokens=128),
    speculation=SpeculativeConfig(3),
)


def seconds(service: Service) -> float:
    """How long a request takes, from its place in the line to its last record."""
    began = time.perf_counter()
    with closing(service.stream(REQUEST)) as records:
        for _ in records:
            pass
    return time.perf_counter() - began


@pytest.mark.load
def test_telemetry_costs_three_percent_at_most():
    """The default pair, 128 greedy tokens, metrics and spans of every round on and off in turn: median of 15 ratios."""
    spans = InMemorySpanExporter()
    watched, alone = Service(), Service()
    observe(watched, Providers({}, BatchSpanProcessor(spans)).telemetry)
    seconds(watched), seconds(alone)
    ratios = [seconds(watched) / seconds(alone) for _ in range(PAIRS)]
    print(f"telemetry on ÷ off: {statistics.median(ratios):.3f} ({min(ratios):.3f} … {max(ratios):.3f})")
    assert len(spans.get_finished_spans()) > PAIRS
    assert statistics.median(ratios) <= 1.03
