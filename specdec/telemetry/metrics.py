"""A run as numbers: each record adds to the instruments, so that a long run is seen while it goes on."""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from specdec.records import Round
from specdec.stats import Stats, ratio
from specdec.telemetry import names
from specdec.telemetry.names import Metric

Attributes = Mapping[str, str | int]
Reading = float | Mapping[str, float]


class Metrics:
    """All instruments of a meter, by the `Metric`s that describe them."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._made: dict[Metric, Any] = {}
        self._making = threading.Lock()
        self._cached: dict[str, float] = {"target": 0, "draft": 0}
        self.read(names.CACHED, lambda: dict(self._cached))

    def add(self, metric: Metric, value: float, attributes: Attributes) -> None:
        """Add to a counter, or record in a histogram."""
        instrument = self._made.get(metric) or self._make(metric)
        (instrument.add if metric.kind == "counter" else instrument.record)(value, attributes)

    def read(self, metric: Metric, reading: Callable[[], Reading]) -> None:
        """Ask `reading` whenever the metrics are read: a number, or one for each value of the metric's attribute.

        It must be quick and hold no lock for long. A counter's reading is its total so far.
        """

        def observe(options: CallbackOptions) -> Iterable[Observation]:
            read = reading()
            if isinstance(read, Mapping):
                return [Observation(value, {metric.attributes[0]: key}) for key, value in read.items()]
            return [Observation(read)]

        counts = metric.kind == "counter"
        make: Any = self._meter.create_observable_counter if counts else self._meter.create_observable_gauge
        self._made[metric] = make(metric.name, callbacks=[observe], unit=metric.unit, description=metric.says)

    def cached(self, target: float, draft: float) -> None:
        """Say how many positions the caches of the running request hold."""
        self._cached.update(target=target, draft=draft)

    def _make(self, metric: Metric) -> Any:
        described = (metric.name, metric.unit, metric.says)
        with self._making:
            if metric not in self._made and metric.kind == "counter":
                self._made[metric] = self._meter.create_counter(*described)
            elif metric not in self._made:
                buckets = metric.buckets
                self._made[metric] = self._meter.create_histogram(
                    *described, explicit_bucket_boundaries_advisory=buckets
                )
            return self._made[metric]


@dataclass(slots=True)
class Fold:
    """A run that adds itself to the metrics as it goes."""

    metrics: Metrics
    attributes: Attributes
    stats: Stats = field(default_factory=Stats)
    first: int = 0

    def add(self, step: Round) -> None:
        """One more round."""
        if self.stats.rounds:
            self._add(names.LATENCY, step.seconds)
        else:
            self.first = len(step.tokens)
            self._add(names.TTFT, step.seconds)
        self.stats = self.stats.add(step)
        self._add(names.ROUNDS, 1)
        self._add(names.GENERATED, len(step.tokens))
        self._speculation(step)
        for phase in ("prefill", "draft", "verify", "sample"):
            self._add(names.ENGINE_TIME, getattr(step, f"{phase}_s"), {names.PHASE: phase})
        self.metrics.cached(step.target_cache, step.draft_cache or 0)

    def _speculation(self, step: Round) -> None:
        if step.fault:
            self._add(names.FAULTS, 1)
        if not step.drafted:
            return
        self._add(names.DRAFTS, 1)
        self._add(names.DRAFT_TOKENS, step.drafted)
        self._add(names.ACCEPTED_TOKENS, step.accepted)
        self._add(names.REJECTED_TOKENS, step.rejected)
        for position in range(step.accepted):
            self._add(names.ACCEPTED_AT, 1, {names.POSITION: position})

    def end(self, reason: str, seconds: float, error: str = "") -> None:
        """The run ended for a reason, so long after it was asked for; `error` is the kind of what it failed with."""
        self.metrics.cached(0, 0)
        self._add(names.ENDED, 1, {names.REASON: reason})
        self._add(names.DURATION, seconds, {names.ERROR: error} if error else {})
        if not self.stats.rounds:
            return
        self._add(names.SPEED, self.stats.tokens_per_second)
        self._add(names.TOKEN_USAGE, self.stats.prompt_tokens, {names.TOKEN_TYPE: "input"})
        self._add(names.TOKEN_USAGE, self.stats.tokens, {names.TOKEN_TYPE: "output"})
        if self.stats.tokens > self.first:
            after = self.stats.prefill_s + self.stats.decode_s - self.stats.ttft_s
            self._add(names.TIME_PER_TOKEN, ratio(after, self.stats.tokens - self.first))

    def _add(self, metric: Metric, value: float, more: Attributes | None = None) -> None:
        self.metrics.add(metric, value, {**self.attributes, **(more or {})})
