"""What a run is made of: Started, Round after Round, Finished. Every consumer folds these same immutable records.

The UI, the HTTP API, metrics, logs, trace files and the benchmark read nothing else, so that a figure is computed in
one place. Times are seconds of engine time (`time.perf_counter` around the work, never what a reader took).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal

Outcome = Literal["accepted", "rejected", "discarded"]
Source = Literal["accepted", "recovered", "bonus", "plain"]
FinishReason = Literal["eos", "stop", "length", "context", "cancelled"]
Exactness = Literal["bitwise", "near-ties", "off"]
Breaking = Literal["closed", "half-open", "open"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that might have come, and how likely that was."""

    id: int
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class Token:
    """A token that the run emitted. `source` "plain" is a step without drafts; `logprob` is log p under the target.

    `top`, where it was asked for: the likeliest of what the target drew it from, in order. That is p, but for a token
    recovered by the rule `rejection`: norm(max(0, p − q)). Empty for an accepted draft, which was drawn from q.
    """

    id: int
    text: str
    source: Source
    logprob: float | None = None
    top: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """A draft token and its judgement.

    p, q: the target's and the draft's probability of it after all processors; acceptance: the probability with
    which the rule accepts it; u: the uniform it was judged by. All but q are None where it was never judged.
    target_top, draft_top, where they were asked for and it was judged: the likeliest tokens of p and of q, in order,
    without those of probability 0 (`SpeculativeConfig.top` says what they are under greedy decoding).
    """

    id: int
    text: str
    q: float
    p: float | None
    acceptance: float | None
    u: float | None
    outcome: Outcome
    target_top: tuple[Candidate, ...] = ()
    draft_top: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Started:
    """First record of a run: what was asked, and what is really in force.

    `breaker` is the state of the circuit breaker around the drafter: "open" where nothing is drafted because of it,
    "half-open" where this run is the trial. `note` says why.
    """

    target: str
    drafter: str
    prompt_ids: tuple[int, ...]
    seed: int
    exactness: Exactness
    settings: Mapping[str, Any]
    note: str = ""
    breaker: Breaking = "closed"


@dataclass(frozen=True, slots=True)
class Round:
    """One draft phase and one verification pass.

    `tokens` are emitted by this round, in order: the accepted drafts, then the one the target sampled (absent where
    the run ended inside the accepted drafts). `text` is what became readable: it lags `tokens` where a character or
    a possible stop string is still unfinished. `prefill_s` is non-zero in the first round only, and so is
    `cached_tokens`: tokens of the prompt that the target did not have to read, because a prefix cache had them. `fault`
    says why the drafter failed, where it did; `paused` why nothing is drafted from here on, where the circuit breaker
    opened. `last`: only `Finished` follows.
    """

    index: int
    proposals: tuple[Proposal, ...]
    tokens: tuple[Token, ...]
    text: str
    draft_s: float
    verify_s: float
    sample_s: float
    target_cache: int
    draft_cache: int | None = None
    prefill_s: float = 0.0
    fault: str = ""
    last: bool = False
    cached_tokens: int = 0
    paused: str = ""

    @property
    def accepted(self) -> int:
        """Drafts accepted."""
        return sum(proposal.outcome == "accepted" for proposal in self.proposals)

    @property
    def rejected(self) -> int:
        """Drafts refused: 0 or 1."""
        return sum(proposal.outcome == "rejected" for proposal in self.proposals)

    @property
    def drafted(self) -> int:
        """Drafts that count: all, but for those behind the end of the run."""
        return len(self.proposals) if self.rejected else self.accepted

    @property
    def seconds(self) -> float:
        """Engine time of the round, prefill included."""
        return self.prefill_s + self.draft_s + self.verify_s + self.sample_s


@dataclass(frozen=True, slots=True)
class Finished:
    """Last record of a run. `tail` is text that was held back and is released now; `text` is all of it."""

    reason: FinishReason
    ids: tuple[int, ...]
    text: str
    tail: str = ""


Record = Started | Round | Finished


def ratio(part: float, whole: float) -> float:
    """part / whole; 0.0 where nothing was there to divide by, or so little that the quotient is not finite."""
    quotient = part / whole if whole else 0.0
    return quotient if math.isfinite(quotient) else 0.0


@dataclass(frozen=True, slots=True)
class Stats:
    """A fold over rounds. `accepted_per_position[i]` counts rounds that accepted their draft i (vLLM's counter)."""

    prompt_tokens: int = 0
    tokens: int = 0
    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    rejected: int = 0
    accepted_per_position: tuple[int, ...] = ()
    prefill_s: float = 0.0
    draft_s: float = 0.0
    verify_s: float = 0.0
    sample_s: float = 0.0
    ttft_s: float = 0.0
    faults: int = 0
    cached_tokens: int = 0

    def add(self, step: Round) -> "Stats":
        """The statistics with one more round."""
        return Stats(
            prompt_tokens=self.prompt_tokens,
            tokens=self.tokens + len(step.tokens),
            rounds=self.rounds + 1,
            drafted=self.drafted + step.drafted,
            accepted=self.accepted + step.accepted,
            rejected=self.rejected + step.rejected,
            accepted_per_position=_count_positions(self.accepted_per_position, step.accepted),
            prefill_s=self.prefill_s + step.prefill_s,
            draft_s=self.draft_s + step.draft_s,
            verify_s=self.verify_s + step.verify_s,
            sample_s=self.sample_s + step.sample_s,
            ttft_s=self.ttft_s if self.rounds else step.seconds,
            faults=self.faults + bool(step.fault),
            cached_tokens=self.cached_tokens + step.cached_tokens,
        )

    @classmethod
    def of(cls, records: Iterable[Record]) -> "Stats":
        """Fold a whole run."""
        stats = cls()
        for record in records:
            if isinstance(record, Started):
                stats = cls(prompt_tokens=len(record.prompt_ids))
            elif isinstance(record, Round):
                stats = stats.add(record)
        return stats

    @property
    def acceptance_rate(self) -> float:
        """Accepted ÷ drafted (vLLM's draft acceptance rate); 0 where nothing was drafted."""
        return ratio(self.accepted, self.drafted)

    @property
    def alpha(self) -> float:
        """Accepted ÷ judged: the theory's per-token acceptance."""
        return ratio(self.accepted, self.accepted + self.rejected)

    @property
    def mean_acceptance_length(self) -> float:
        """Tokens emitted per round, the target's own included."""
        return ratio(self.tokens, self.rounds)

    @property
    def acceptance_histogram(self) -> tuple[int, ...]:
        """Rounds that accepted 0, 1, 2, … drafts."""
        reached = (self.rounds, *self.accepted_per_position, 0)
        return tuple(here - beyond for here, beyond in pairwise(reached))

    @property
    def decode_s(self) -> float:
        """Seconds of all rounds, prefill excluded."""
        return self.draft_s + self.verify_s + self.sample_s

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens per second of decoding, prefill excluded."""
        return self.tokens_per_second_since(Stats())

    def tokens_per_second_since(self, earlier: "Stats") -> float:
        """The same of the rounds that were added to `earlier`, statistics of the same run."""
        return ratio(self.tokens - earlier.tokens, self.decode_s - earlier.decode_s)

    @property
    def draft_share(self) -> float:
        """Part of the decoding time that was spent drafting."""
        return ratio(self.draft_s, self.decode_s)

    @property
    def verify_share(self) -> float:
        """Part of the decoding time that was spent on passes of the target."""
        return ratio(self.verify_s, self.decode_s)

    def to_dict(self) -> dict[str, Any]:
        """Counts, times and the figures derived from them, ready for JSON."""
        derived = ("acceptance_rate", "alpha", "mean_acceptance_length", "decode_s", "tokens_per_second")
        return asdict(self) | {name: getattr(self, name) for name in derived}


def _count_positions(counts: tuple[int, ...], accepted: int) -> tuple[int, ...]:
    padded = counts + (0,) * (accepted - len(counts))
    return tuple(count + (position < accepted) for position, count in enumerate(padded))
