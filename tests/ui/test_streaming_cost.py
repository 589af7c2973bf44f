"""What it costs the engine that a page watches: `scripts/test tests/ui/test_streaming_cost.py -m load -s`."""

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing

import pytest

from specdec.checkpoints import DEFAULT_DRAFT, DEFAULT_TARGET
from specdec.config import SamplingParams, SpeculativeConfig
from specdec.records import Record
from specdec.serving import GenerationRequest, Service
from specdec.stats import Stats
from specdec.ui.traces import retold
from specdec.ui.watch import TOP, grow

TOKENS, PAIRS = 160, 9
REQUEST = GenerationRequest(
    "Once upon a time there was a little dragon who was afraid of the dark. One night,",
    DEFAULT_TARGET,
    DEFAULT_DRAFT,
    params=SamplingParams(temperature=0, max_tokens=TOKENS),
    speculation=SpeculativeConfig(3, top=TOP),
)


def drained(records: Iterable[Record]) -> None:
    """Read, and nothing else."""
    for _ in records:
        pass


def watched(records: Iterable[Record]) -> None:
    """Folded into events and grown as the page does it."""
    for _ in grow(retold(records, REQUEST)):  # type: ignore[arg-type]
        pass


def measured(service: Service, read: Callable[[Iterable[Record]], None]) -> tuple[float, float]:
    """Tokens a second on the engine's clock and on the wall's, decoding alone."""
    kept: list[Record] = []

    def keeping(records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            kept.append(record)
            yield record

    began = time.perf_counter()
    with closing(service.stream(REQUEST)) as records:
        read(keeping(records))
    wall_s = time.perf_counter() - began
    stats = Stats.of(kept)
    return stats.tokens_per_second, stats.tokens / (wall_s - stats.prefill_s)


@pytest.mark.load
def test_streaming_slows_the_engine_by_five_percent_at_most():
    """The default pair, 160 greedy tokens, with and without the page's events in turn: medians of nine pairs each."""
    service = Service()
    measured(service, watched)
    pairs = [(measured(service, drained), measured(service, watched)) for _ in range(PAIRS)]
    for clock, name in enumerate(("engine", "wall")):
        ratio = statistics.median(page[clock] / alone[clock] for alone, page in pairs)
        speeds = [statistics.median(run[clock] for run in runs) for runs in zip(*pairs, strict=True)]
        print(f"{name}: {speeds[0]:.1f} tokens/s alone, {speeds[1]:.1f} streamed, ratio {ratio:.3f}")
        assert ratio >= 0.95
