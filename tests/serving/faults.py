"""A drafter that misbehaves where, when and how it is told to; otherwise it drafts as the one inside."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.decoding import Drafted, Engine, ModelDrafter
from specdec.records import Finished, Record, Round
from specdec.serving import GenerationRequest, Service, Settings
from tests.decoding.toys import Toy, ToyCodec, hashed, noisy_copy

V = 16
PLACES = ("start", "prefill", "propose", "truncate", "cache_length", "context_length")
LATE_S = 0.02
CODEC = ToyCodec([chr(ord("a") + i) for i in range(V)])
TARGET = hashed(1, V, tokenizer=CODEC)
CLOSE = noisy_copy(TARGET, 2, 0.7)


def raises(tokens: Any, k: int) -> Any:
    raise RuntimeError("the GPU fell off")


def hangs(tokens: Any, k: int) -> Any:
    time.sleep(LATE_S)
    return Drafted()


def rewrites_the_text(tokens: Any, k: int) -> Any:
    tokens[:] = [0] * len(tokens)
    return Drafted((0,) * k)


FAULTS: dict[str, Callable[[Any, int], Any]] = {
    "raises": raises,
    "hangs": hangs,
    "is of no use": lambda tokens, k: "x",
    "NaN": lambda tokens, k: float("nan"),
}
PROPOSALS: dict[str, Callable[[Any, int], Any]] = FAULTS | {
    "q of NaN": lambda tokens, k: Drafted((1,) * k, np.full((k, V), np.nan)),
    "q of another size": lambda tokens, k: Drafted((1,) * k, np.full((k, V - 1), 1 / (V - 1))),
    "q of complex numbers": lambda tokens, k: Drafted((1,) * k, np.full((k, V), 1 / V + 0j)),
    "q that sums to 2": lambda tokens, k: Drafted((1,) * k, np.full((k, V), 2 / V)),
    "too many": lambda tokens, k: Drafted((1,) * (k + 1)),
    "no end of drafts": lambda tokens, k: Drafted(repeat(1)),  # type: ignore[arg-type]
    "ids out of range": lambda tokens, k: Drafted((V,) * k),
    "ids that are none": lambda tokens, k: Drafted((1.5,) * k),  # type: ignore[arg-type]
    "always wrong": lambda tokens, k: Drafted((int(TARGET.network.table.argmin() % V),) * k),
    "rewrites the text": rewrites_the_text,
}
CASES = [(place, fault) for place in PLACES for fault in (PROPOSALS if place == "propose" else FAULTS)]


@dataclass
class Plan:
    """`fault` at `place`, each time that `due` says so."""

    place: str
    fault: str
    due: Callable[[], bool] = lambda: True
    misdeeds: int = 0

    def at(self, place: str, tokens: Any, k: int, otherwise: Callable[[], Any]) -> Any:
        if place != self.place or not self.due():
            return otherwise()
        self.misdeeds += 1
        return PROPOSALS[self.fault](tokens, k)


class FaultyDrafter:
    """Drafts by `inner`, but for what the plan says."""

    name = "faulty"

    def __init__(self, plan: Plan, inner: Any = None) -> None:
        self.plan = plan
        self.inner = inner or ModelDrafter(CLOSE)
        self.num_speculative_tokens = self.inner.num_speculative_tokens

    def start(self, target: Toy, params: SamplingParams, seed: int, capacity: int) -> Any:
        inner = self.inner.start(target, params, seed, capacity)
        return self.plan.at("start", [], 0, lambda: FaultySession(self.plan, inner))


class FaultySession:
    """The same of a session."""

    def __init__(self, plan: Plan, inner: Any) -> None:
        self.plan = plan
        self.inner = inner

    @property
    def cache_length(self) -> Any:
        return self.plan.at("cache_length", [], 0, lambda: self.inner.cache_length)

    @property
    def context_length(self) -> Any:
        return self.plan.at("context_length", [], 0, lambda: self.inner.context_length)

    def prefill(self, prompt: Sequence[int], reader: object = None) -> None:
        self.plan.at("prefill", prompt, 0, lambda: self.inner.prefill(prompt))

    def propose(self, tokens: Sequence[int], k: int) -> Any:
        return self.plan.at("propose", tokens, k, lambda: self.inner.propose(tokens, k))

    def truncate(self, length: int) -> None:
        self.plan.at("truncate", [], 0, lambda: self.inner.truncate(length))


MODES = {
    "greedy": (SamplingParams(), SpeculativeConfig(3)),
    "match": (SamplingParams(temperature=1.0), SpeculativeConfig(3, "match")),
    "rejection": (SamplingParams(temperature=1.0), SpeculativeConfig(3)),
    "auto": (SamplingParams(), SpeculativeConfig("auto")),
    "default": (SamplingParams(), SpeculativeConfig()),
}


def ask(mode: str, seed: int = 0, tokens: int = 16, draft: str = "ngram") -> GenerationRequest:
    """A request whose prompt depends on its seed; it names "ngram" because that is no model to be loaded."""
    params, speculation = MODES[mode]
    params = SamplingParams(params.temperature, seed=seed, max_tokens=tokens)
    prompt = "".join(CODEC.words[(seed * step) % V].decode() for step in (1, 3, 5))
    return GenerationRequest(prompt, "target", draft, params=params, speculation=speculation)


def plainly(request: GenerationRequest) -> tuple[int, ...]:
    """What the target alone says."""
    plain = SpeculativeConfig(0, request.speculation.acceptance)
    return Engine(TARGET).generate(request.prompt, request.params, plain).ids


def service_of(clock: Callable[[], float], **settings: Any) -> Service:
    """A service over the target; the drafter is the test's to put in."""
    kept: dict[str, Any] = {"breaker_call_seconds": 5.0, "breaker_wait_seconds": 30.0} | settings
    return Service(Settings(**kept), lambda name: TARGET, clock=clock)  # type: ignore[arg-type, return-value]


def run(service: Service, request: GenerationRequest) -> tuple[list[Record], tuple[int, ...]]:
    """All records of a run, and its tokens."""
    records = list(service.stream(request))
    assert isinstance(records[-1], Finished)
    return records, records[-1].ids


def rounds(records: Sequence[Record]) -> Iterator[Round]:
    return (record for record in records if isinstance(record, Round))
