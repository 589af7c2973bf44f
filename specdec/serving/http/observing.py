"""Telemetry of a service: what is told of its requests, and what is read from it when its metrics are read."""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from specdec.checkpoints import known_models
from specdec.errors import MissingExtraError
from specdec.serving.breaker import Condition
from specdec.serving.cutting import Records
from specdec.serving.http.names import public
from specdec.serving.service import NO_MODEL_DRAFTS, GenerationRequest, Service
from specdec.settings import Settings

if TYPE_CHECKING:
    from specdec.telemetry.metrics import Reading
    from specdec.telemetry.names import Metric
    from specdec.telemetry.providers import Providers
    from specdec.telemetry.watching import Telemetry

OTHER = "other"


def providers(settings: Settings, environment: Mapping[str, str] = os.environ) -> "Providers | None":
    """OpenTelemetry as the environment would have it; None where it is off, and then nothing of it is imported.

    MissingExtraError where it is not installed.
    """
    if settings.telemetry == "off":
        return None
    try:
        from specdec.telemetry.providers import Providers
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in ("opentelemetry", "prometheus_client"):
            raise
        raise MissingExtraError("opentelemetry-sdk", "telemetry") from error
    return Providers(environment)


def observe(service: Service, telemetry: "Telemetry") -> None:
    """Have all runs of a service told, and its state read."""
    for metric, reading in readings(service).items():
        telemetry.read(metric, reading)
    labels = _labels(service)

    def watched(request: GenerationRequest, records: Records) -> Records:
        from specdec.telemetry.watching import Asked

        asked = Asked(
            operation="chat" if request.chat else "text_completion",
            model=labels.get(request.target, OTHER),
            draft=labels.get(request.draft, OTHER),
            max_tokens=request.params.max_tokens,
            temperature=request.params.temperature,
        )
        return telemetry.watched(asked, records)

    service.observe = watched


def readings(service: Service) -> "dict[Metric, Callable[[], Reading]]":
    """What is read from a service whenever its metrics are: one line each."""
    from specdec.telemetry import names

    return {
        names.RUNNING: lambda: min(service.standing, 1),
        names.WAITING: lambda: max(service.standing - 1, 0),
        names.PREFIX_QUERIES: lambda: service.prefixes.stats().query_tokens,
        names.PREFIX_HITS: lambda: service.prefixes.stats().hit_tokens,
        names.PREFIX_SIZE: lambda: service.prefixes.stats().bytes,
        names.BREAKERS: lambda: {"closed": 0, "open": 0, "half-open": 0} | Counter(b.state for b in _breakers(service)),
        names.OPENED: lambda: sum(breaker.opened for breaker in _breakers(service)),
    }


def _breakers(service: Service) -> list[Condition]:
    return [condition for pair in service.drafting for condition in (pair.faults, pair.losses)]


def _labels(service: Service) -> dict[str, str]:
    """The models that are called by name: those on offer now, and those the project knows. Others come and go."""
    offered = {offer.name: public(offer) for offer in service.offers}
    return {name: name for name in (*NO_MODEL_DRAFTS, *(model.name for model in known_models()))} | offered
