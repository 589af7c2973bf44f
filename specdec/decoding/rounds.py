"""Writing down what a round did: its drafts with their judgement, and the tokens it emitted."""

from collections.abc import Sequence

from specdec.decoding.drafting import Drafts
from specdec.decoding.tops import Piece, Tops
from specdec.decoding.verification import Verdict
from specdec.records import Outcome, Proposal, Source, Token


def proposals(drafts: Drafts, verdict: Verdict, emitted: int, tops: Tops, piece: Piece) -> tuple[Proposal, ...]:
    """Every draft and its outcome. What lies behind the run's end or the first refusal was never judged: discarded."""
    accepted = min(verdict.accepted, emitted)
    judged = accepted if emitted <= verdict.accepted else len(verdict.judged)
    k = len(drafts.tokens)
    outcomes: list[Outcome] = [
        "accepted" if i < accepted else "rejected" if i < judged else "discarded" for i in range(k)
    ]
    return tuple(_proposal(drafts, verdict, i, outcomes[i], tops, piece) for i in range(k))


def _proposal(drafts: Drafts, verdict: Verdict, i: int, outcome: Outcome, tops: Tops, piece: Piece) -> Proposal:
    token, q = drafts.tokens[i], drafts.probability(i)
    if outcome == "discarded":
        return Proposal(token, piece(token), q, None, None, None, outcome)
    judged = verdict.judged[i]
    numbers = (q, judged.p, judged.acceptance, judged.u)
    return Proposal(token, piece(token), *numbers, outcome, tops.target(i), tops.draft(i))


def tokens(
    ids: Sequence[int], verdict: Verdict, logprobs: Sequence[float] | None, tops: Tops, piece: Piece
) -> tuple[Token, ...]:
    """The emitted tokens: accepted drafts, then the target's own."""
    sources = [_source(verdict, i) for i in range(len(ids))]
    return tuple(
        Token(token, piece(token), sources[i], None if logprobs is None else logprobs[i], tops.drawn(i, sources[i]))
        for i, token in enumerate(ids)
    )


def _source(verdict: Verdict, i: int) -> Source:
    return "accepted" if i < verdict.accepted else verdict.kind
