"""What a run cost and how speculation went: OpenAI's `usage`, with an object of our own under vLLM's names."""

from collections.abc import Sequence
from typing import Any

from specdec.records import Record, Round, Started
from specdec.stats import Stats


def usage(records: Sequence[Record], started: Started) -> dict[str, Any]:
    """Counts of tokens; rejected drafts are none. Where nothing was drafted there is no acceptance rate."""
    stats = Stats.of(records)
    return {
        "prompt_tokens": stats.prompt_tokens,
        "completion_tokens": stats.tokens,
        "total_tokens": stats.prompt_tokens + stats.tokens,
        "prompt_tokens_details": {"cached_tokens": stats.cached_tokens},
        "speculation": {
            "mean_acceptance_length": stats.mean_acceptance_length,
            "draft_acceptance_rate": stats.acceptance_rate if stats.drafted else None,
            "acceptance_histogram": list(stats.acceptance_histogram),
            "num_rounds": stats.rounds,
            "num_drafts": sum(isinstance(record, Round) and record.drafted > 0 for record in records),
            "num_draft_tokens": stats.drafted,
            "num_accepted_tokens": stats.accepted,
            "num_speculative_tokens": started.settings["lookahead"],
            "acceptance": started.settings["acceptance"],
            "exactness": started.exactness,
            "seed": started.seed,
            "note": started.note,
            **_breaker(records, started),
        },
    }


def _breaker(records: Sequence[Record], started: Started) -> dict[str, Any]:
    """The circuit breaker's state as the run left it, and why it is not closed; null where it is."""
    paused = next((record.paused for record in records if isinstance(record, Round) and record.paused), "")
    state = "open" if paused else started.breaker
    return {"breaker": state, "reason": None if state == "closed" else paused or started.note}
