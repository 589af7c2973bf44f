"""The promise put to the test, on a user's own models, prompt and settings: is speculative decoding lossless here?

Ids of whole runs must be equal where they can be (greedy; `match`, same seed). Where tokens are drawn they have to have
the right law, see `specdec.decoding.losslessness`: many draws through the acceptance rule itself, fewer through the
whole engine, plain draws beside them, and a broken rule that must fail or else the test tells nothing.
"""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count, takewhile
from typing import Literal

import numpy as np

from specdec.config import AcceptanceRule, SamplingParams, SpeculativeConfig
from specdec.decoding import Engine
from specdec.decoding.drafters.ngram import common_length
from specdec.decoding.losslessness import Place, Tally, first_token, most_telling, plain_token, trusting
from specdec.decoding.protocols import Drafter
from specdec.decoding.request import prompt_ids
from specdec.decoding.verification import rejection
from specdec.errors import RequestError
from specdec.records import Round
from specdec.serving.service import GenerationRequest, Service

Test = Literal["greedy", "match", "verifier", "engine", "plain", "control"]
Verdict = Literal["passed", "failed", "untold"]
Cancelled = Callable[[], bool]

RUN = 64  # tokens of the runs whose ids are compared
DRAWS = (2_000, 20_000)  # through the rule: at least, at most
RUNS = (40, 400)  # through the whole engine
PATIENCE_S = 5.0  # for each kind of draws; how many that allows is settled before the first one counts
STEPS = 10  # of progress


@dataclass(frozen=True, slots=True)
class Finding:
    """A test's figure and what it must not fall short of (ids equal) or exceed (total variation).

    `draws`: tokens compared or drawn so far of the `of` there will be; `verdict` None until all are. "untold": a
    control that no test of this size could tell from the real thing, because the two models agree too well.
    """

    test: Test
    figure: float
    limit: float
    draws: int
    of: int
    verdict: Verdict | None = None


class Examination:
    """All tests of one request, for a caller whose turn it is in the line; errors as in `Service.stream`.

    RequestError where nothing would be drafted.
    """

    def __init__(
        self, service: Service, request: GenerationRequest, cancelled: Cancelled, seed: int | None = None
    ) -> None:
        if request.draft == "none" or request.speculation.num_speculative_tokens == 0:
            raise RequestError("choose a drafter and a lookahead k of 1 or more: there must be drafts to be tested")
        self._engine, prompt = service.engine(request)
        self._prompt = prompt_ids(self._engine.target, prompt)
        self._cancelled = cancelled
        self._seed = secrets.randbits(32) if seed is None else seed
        asked = request.speculation.num_speculative_tokens
        self._lookahead = asked if isinstance(asked, int) else None  # "auto" might draft nothing
        tokens = min(RUN, service.settings.max_new_tokens)
        self._params = replace(request.params, max_tokens=tokens, seed=self._seed)

    @property
    def sampled(self) -> SamplingParams:
        """The user's settings, at temperature 1 and without top-k where they leave nothing to chance."""
        return replace(self._params, temperature=1.0, top_k=0) if self._params.greedy else self._params

    def findings(self) -> Iterator[Finding]:
        """Each test's finding as it firms up, with its verdict at last. Ends early once cancelled."""
        yield from self._same_ids("greedy", replace(self._params, temperature=0.0), "rejection")
        yield from self._same_ids("match", self.sampled, "match")
        if not self._cancelled():
            yield from self._laws(_required(self._engine.drafter))

    def _same_ids(self, test: Test, params: SamplingParams, rule: AcceptanceRule) -> Iterator[Finding]:
        """Plain and speculative runs of the same request, token for token."""
        yield Finding(test, 0, params.max_tokens, 0, params.max_tokens)
        plain = self._ids(Engine(self._engine.target), params, SpeculativeConfig(0, rule))
        fast = self._ids(self._engine, params, SpeculativeConfig(self._lookahead, rule))
        if not self._cancelled():
            equal, length = common_length(plain, fast), max(len(plain), len(fast))
            yield Finding(test, equal, length, length, length, "passed" if equal == length else "failed")

    def _ids(self, engine: Engine, params: SamplingParams, speculation: SpeculativeConfig) -> list[int]:
        with closing(engine.stream(self._prompt, params, speculation)) as records:
            rounds = (record for record in records if isinstance(record, Round))
            return [token.id for step in takewhile(self._going_on, rounds) for token in step.tokens]

    def _going_on(self, _: object = None) -> bool:
        return not self._cancelled()

    def _laws(self, drafter: Drafter) -> Iterator[Finding]:
        """Draws of the first token at one place, in four ways, each against the target's own law."""
        place = most_telling(self._engine.target, drafter, self._prompt, self.sampled)
        chance = np.random.default_rng(self._seed)
        yield from self._law("plain", place, lambda: plain_token(rejection, place, chance.random(4).tolist()), DRAWS)
        yield from self._law("verifier", place, lambda: first_token(rejection, place, chance.random(4).tolist()), DRAWS)
        yield from self._law("control", place, lambda: first_token(trusting, place, chance.random(4).tolist()), DRAWS)
        yield from self._law("engine", place, self._rounds(place).__next__, RUNS)

    def _rounds(self, place: Place) -> Iterator[int]:
        """The first token of whole runs from the place on, each with a seed of its own."""
        for seed in count(self._seed):
            params = replace(self.sampled, seed=seed, ignore_eos=True)
            with closing(self._engine.stream(place.prefix, params, SpeculativeConfig(self._lookahead))) as records:
                yield next(record.tokens[0].id for record in records if isinstance(record, Round))

    def _law(self, test: Test, place: Place, token: Callable[[], int], bounds: tuple[int, int]) -> Iterator[Finding]:
        """Draw as often as patience allows, and compare with p."""
        draws, tally = _affordable(token, *bounds), Tally(place.p)
        while self._going_on() and tally.draws < draws:
            tally.add(token() for _ in range(min(-(-draws // STEPS), draws - tally.draws)))
            finding = Finding(test, tally.variation, tally.critical, tally.draws, draws)
            yield finding if tally.draws < draws else replace(finding, verdict=_verdict(finding))


def _verdict(finding: Finding) -> Verdict:
    """A control is right if it was caught, anything else if it was not."""
    within = finding.figure <= finding.limit
    if finding.test == "control":
        return "untold" if within else "passed"
    return "passed" if within else "failed"


def _affordable(token: Callable[[], int], least: int, most: int) -> int:
    """How many draws `PATIENCE_S` is enough for, judged by two that do not count."""
    token()
    began = time.perf_counter()
    token()
    return max(least, min(most, int(PATIENCE_S / max(time.perf_counter() - began, 1e-9))))


def _required(drafter: Drafter | None) -> Drafter:
    if drafter is None:
        raise RequestError("there is no drafter to be tested")
    return drafter
