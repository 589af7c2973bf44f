"""Writing down what a round did: its drafts with their judgement, and the tokens it emitted."""

from collections.abc import Callable, Sequence

from specdec.decoding.drafting import Drafts
from specdec.decoding.verification import Verdict
from specdec.records import Outcome, Proposal, Source, Token

Piece = Callable[[int], str]


def proposals(drafts: Drafts, verdict: Verdict, emitted: int, piece: Piece) -> tuple[Proposal, ...]:
    """Every draft and its outcome. What lies behind the run's end or the first refusal was never judged: discarded."""
    accepted = min(verdict.accepted, emitted)
    judged = accepted if emitted <= verdict.accepted else len(verdict.judged)
    return tuple(
        _proposal(drafts, verdict, i, "accepted" if i < accepted else "rejected" if i < judged else "discarded", piece)
        for i in range(len(drafts.tokens))
    )


def _proposal(drafts: Drafts, verdict: Verdict, i: int, outcome: Outcome, piece: Piece) -> Proposal:
    token, q = drafts.tokens[i], drafts.probability(i)
    if outcome == "discarded":
        return Proposal(token, piece(token), q, None, None, None, outcome)
    judged = verdict.judged[i]
    return Proposal(token, piece(token), q, judged.p, judged.acceptance, judged.u, outcome)


def tokens(ids: Sequence[int], verdict: Verdict, logprobs: Sequence[float] | None, piece: Piece) -> tuple[Token, ...]:
    """The emitted tokens: accepted drafts, then the target's own."""
    return tuple(
        Token(token, piece(token), _source(verdict, i), None if logprobs is None else logprobs[i])
        for i, token in enumerate(ids)
    )


def _source(verdict: Verdict, i: int) -> Source:
    return "accepted" if i < verdict.accepted else verdict.kind
