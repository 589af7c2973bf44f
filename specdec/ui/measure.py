"""What a comparison does before it measures: one seed for all, the bare settings, a warm-up that does not count."""

import secrets
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from specdec.config import SpeculativeConfig
from specdec.serving import GenerationRequest, Service, Ticket

WARM_UP_TOKENS = 8
UPDATES_PER_SECOND = 4  # of progress; each costs the processor that is being measured

Cancelled = Callable[[], bool]


def bare(asked: GenerationRequest) -> GenerationRequest:
    """The same with a seed for all runs, and without what a page wants recorded: that would be measured too."""
    seed = secrets.randbits(32) if asked.params.seed is None else asked.params.seed
    lookahead, rule = asked.speculation.num_speculative_tokens, asked.speculation.acceptance
    return replace(asked, params=replace(asked.params, seed=seed), speculation=SpeculativeConfig(lookahead, rule))


def plain(asked: GenerationRequest) -> GenerationRequest:
    """The same without drafts."""
    return replace(asked, draft="none", speculation=replace(asked.speculation, num_speculative_tokens=0))


def warm_up(service: Service, request: GenerationRequest, ticket: Ticket, cancelled: Cancelled) -> None:
    """Load the models and generate a few tokens in the caller's place; the service's errors."""
    short = replace(request.params, max_tokens=min(WARM_UP_TOKENS, request.params.max_tokens))
    with closing(service.stream(replace(request, params=short), cancelled=cancelled, ticket=ticket.lend())) as records:
        for _ in records:
            pass
