"""A drafter at arm's length: whatever it does, it costs that round's drafts and never the request.

k drafts, V vocabulary.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from specdec.config import LIMITS
from specdec.decoding.protocols import COLD, Draft, DraftSession, Floats, Reader

T = TypeVar("T")

MAX_FAILURES = 3  # rounds in a row; then the drafter is not asked again in this run
_SLACK = 1e-3  # how far a row of q may sum from 1


@dataclass(frozen=True, slots=True)
class Drafts:
    """A draft that was checked; empty where there was none to be had."""

    tokens: tuple[int, ...] = ()
    q: Floats | None = None

    def probability(self, i: int) -> float:
        """q of draft i."""
        return 1.0 if self.q is None else float(self.q.item(i, self.tokens[i]))


class Drafting:
    """One request's drafter session, or none at all."""

    def __init__(self, session: DraftSession | None, vocab_size: int) -> None:
        self._session = session
        self._vocab_size = vocab_size
        self._failures = 0
        self._faults: list[str] = []

    @property
    def cache_length(self) -> int | None:
        """Tokens in the draft's cache; None where there is no cache or no drafter."""
        return self._ask(lambda session: _whole(session.cache_length), None)

    def room(self, length: int) -> int:
        """How many drafts may follow a text of `length` tokens, as far as the drafter is concerned."""
        if self._session is None:
            return 0
        full: int | None = length  # no room where the session cannot say
        context = self._ask(lambda session: _whole(session.context_length), full)
        return LIMITS.max_speculative_tokens if context is None else max(0, context - length)

    def prefill(self, prompt: Sequence[int], reader: Reader = COLD) -> None:
        """Show the drafter the prompt."""
        self._ask(lambda session: session.prefill(prompt, reader), None)

    def propose(self, tokens: Sequence[int], k: int) -> Drafts:
        """At most `k` drafts; none where k is 0, or the drafter fails or hands over what no drafter may."""
        if k == 0:
            return Drafts()
        return self._ask(lambda session: self._checked(session.propose(tokens, k), k), Drafts())

    def truncate(self, length: int) -> None:
        """Have the drafter forget all behind `length`."""
        self._ask(lambda session: session.truncate(length), None)

    def end_round(self) -> str:
        """What went wrong in this round, if anything. A drafter that fails in several rounds in a row is let go."""
        faults, self._faults = list(dict.fromkeys(self._faults)), []
        self._failures = self._failures + 1 if faults else 0
        if self._session is not None and self._failures == MAX_FAILURES:
            self._session = None
            faults.append(f"it failed {MAX_FAILURES} times in a row and is not asked again in this run")
        return "; ".join(faults)

    def _ask(self, question: Callable[[DraftSession], T], otherwise: T) -> T:
        """The session's answer, or `otherwise` where there is no session or it fails."""
        if self._session is None:
            return otherwise
        try:
            return question(self._session)
        except Exception as error:
            self._faults.append(f"the drafter failed: {type(error).__name__}: {str(error)[:200]}")
            return otherwise

    def _checked(self, draft: Draft, k: int) -> Drafts:
        tokens = tuple(map(operator.index, draft.tokens))
        if len(tokens) > k:
            raise ValueError(f"{len(tokens)} drafts where {k} were asked for")
        for token in tokens:
            if not 0 <= token < self._vocab_size:
                raise ValueError(f"draft {token} lies outside the vocabulary of {self._vocab_size}")
        if draft.q is None or not tokens:
            return Drafts(tokens)
        check_q(draft.q, tokens, self._vocab_size)
        return Drafts(tokens, draft.q)


def _whole(length: int | None) -> int | None:
    return None if length is None else operator.index(length)


def check_q(q: Floats, tokens: Sequence[int], vocab_size: int) -> None:
    """Raise ValueError unless the rows of `q` are distributions that the drafts can have been drawn from."""
    if q.shape != (len(tokens), vocab_size):
        raise ValueError(f"q has shape {q.shape}, not {(len(tokens), vocab_size)}")
    if q.dtype.kind != "f":
        raise ValueError(f"q is made of {q.dtype}, not of floating-point numbers")
    if q.min() < 0 or not all(abs(total - 1) <= _SLACK for total in q.sum(axis=-1).tolist()):
        raise ValueError("a row of q is no distribution")
    if not all(q.item(i, token) > 0 for i, token in enumerate(tokens)):
        raise ValueError("a draft has no probability under the q it was drawn from")
