"""What a run is made of: Started, Round after Round, Finished. Every consumer folds these same immutable records.

The UI, the HTTP API, metrics, logs, trace files and the benchmark read nothing else. Times are seconds of engine time
(`time.perf_counter` around the work, never what a reader took).
"""

from collections.abc import Mapping
from dataclasses import dataclass
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
