"""The likeliest tokens of a row, for whoever wants to see what the target and the draft thought.

Nothing here chooses anything: rows are read after the round was judged, and only where lists were asked for.
k drafts, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specdec.decoding.drafting import Drafts
from specdec.decoding.protocols import Floats
from specdec.decoding.verification import leftover
from specdec.records import Candidate, Source

Piece = Callable[[int], str]
_LIKELY = 1e-3  # at most a thousand tokens have more, and mostly enough have: no row need be partitioned


@dataclass(frozen=True, slots=True)
class Tops:
    """One round's lists, at most `count` tokens each; all empty where `p`, (k + 1, V), is None.

    `residual`: whether the target draws a recovered token from what the refused draft leaves of p.
    """

    p: Floats | None
    drafts: Drafts
    residual: bool
    count: int
    piece: Piece

    def target(self, i: int) -> tuple[Candidate, ...]:
        """The target's likeliest tokens at draft i's position."""
        return () if self.p is None else likeliest(self.p[i], self.count, self.piece)

    def draft(self, i: int) -> tuple[Candidate, ...]:
        """The draft's; without q that is its choice and nothing else."""
        if self.p is None:
            return ()
        if self.drafts.q is None:
            token = self.drafts.tokens[i]
            return (Candidate(token, self.piece(token), 1.0),)
        return likeliest(self.drafts.q[i], self.count, self.piece)

    def drawn(self, i: int, source: Source) -> tuple[Candidate, ...]:
        """The likeliest of what the round's token i was drawn from by the target; accepted drafts were not."""
        if self.p is None or source == "accepted":
            return ()
        if source != "recovered" or not self.residual:
            return self.target(i)
        q = None if self.drafts.q is None else self.drafts.q[i]
        return likeliest(leftover(self.p[i], self.drafts.tokens[i], q), self.count, self.piece)


def likeliest(row: Floats, count: int, piece: Piece) -> tuple[Candidate, ...]:
    """At most `count` ≥ 1 tokens of probability above 0 in `row`, (V,), likeliest first, of equal ones the lower id."""
    ids = np.flatnonzero(row > _LIKELY)
    if len(ids) < count:
        least = np.partition(row, -count).item(-count) if count < len(row) else 0.0
        ids = np.flatnonzero(row >= least if least > 0 else row > 0)
    ids = ids[np.argsort(-row[ids], kind="stable")[:count]]
    return tuple(
        Candidate(token, piece(token), value) for token, value in zip(ids.tolist(), row[ids].tolist(), strict=True)
    )
