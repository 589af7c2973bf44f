"""The figures of a run, folded from its rounds. Each is computed here and nowhere else."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from specdec.records import Record, Round, Started


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
