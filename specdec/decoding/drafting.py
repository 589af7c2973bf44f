"""A drafter at arm's length: whatever it does, it costs that round's drafts and never the request.

k drafts, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from specdec.config import LIMITS
from specdec.decoding.protocols import Draft, DraftSession, Floats

T = TypeVar("T")

MAX_FAILURES = 3  # in a row; then the drafter is not asked again in this run
_SLACK = 1e-3  # how far a row of q may sum from 1


@dataclass(frozen=True, slots=True)
class Drafts:
    """A draft that was checked; empty, with the reason in `fault`, where there was none to be had."""

    tokens: tuple[int, ...] = ()
    q: Floats | None = None
    fault: str = ""

    def probability(self, i: int) -> float:
        """q of draft i."""
        return 1.0 if self.q is None else float(self.q.item(i, self.tokens[i]))


class Drafting:
    """One request's drafter session, or none at all."""

    def __init__(self, session: DraftSession | None, vocab_size: int) -> None:
        self._session = session
        self._vocab_size = vocab_size
        self._failures = 0

    @property
    def cache_length(self) -> int | None:
        """Tokens in the draft's cache; None where there is no cache or no drafter."""
        return self._ask(lambda session: session.cache_length, None)[0]

    def room(self, length: int) -> int:
        """How many drafts may follow a text of `length` tokens, as far as the drafter is concerned."""
        if self._session is None:
            return 0
        context, fault = self._ask(lambda session: session.context_length, None)
        if fault:
            return 0
        return LIMITS.max_speculative_tokens if context is None else max(0, context - length)

    def prefill(self, prompt: Sequence[int]) -> str:
        """Show the drafter the prompt; what went wrong, if anything."""
        return self._ask(lambda session: session.prefill(prompt), None)[1]

    def propose(self, tokens: Sequence[int], k: int) -> Drafts:
        """At most `k` drafts; none where k is 0, or the drafter fails or hands over what no drafter may."""
        if k == 0 or self._session is None:
            return Drafts()
        drafts, fault = self._ask(lambda session: self._checked(session.propose(tokens, k), k), Drafts())
        if fault:
            return Drafts(fault=fault)
        self._failures = 0
        return drafts

    def truncate(self, length: int) -> str:
        """Have the drafter forget all behind `length`; what went wrong, if anything."""
        return self._ask(lambda session: session.truncate(length), None)[1]

    def _ask(self, question: Callable[[DraftSession], T], otherwise: T) -> tuple[T, str]:
        """The session's answer and no fault, or `otherwise` and the fault."""
        if self._session is None:
            return otherwise, ""
        try:
            return question(self._session), ""
        except Exception as error:
            return otherwise, self._failed(error)

    def _failed(self, error: Exception) -> str:
        self._failures += 1
        fault = f"the drafter failed: {type(error).__name__}: {str(error)[:200]}"
        if self._failures < MAX_FAILURES:
            return fault
        self._session = None
        return f"{fault}; it failed {MAX_FAILURES} times in a row and is not asked again in this run"

    def _checked(self, draft: Draft, k: int) -> Drafts:
        tokens = tuple(map(int, draft.tokens))
        if len(tokens) > k:
            raise ValueError(f"{len(tokens)} drafts where {k} were asked for")
        for token in tokens:
            if not 0 <= token < self._vocab_size:
                raise ValueError(f"draft {token} lies outside the vocabulary of {self._vocab_size}")
        if draft.q is None or not tokens:
            return Drafts(tokens)
        check_q(draft.q, tokens, self._vocab_size)
        return Drafts(tokens, draft.q)


def check_q(q: Floats, tokens: Sequence[int], vocab_size: int) -> None:
    """Raise ValueError unless the rows of `q` are distributions that the drafts can have been drawn from."""
    if q.shape != (len(tokens), vocab_size):
        raise ValueError(f"q has shape {q.shape}, not {(len(tokens), vocab_size)}")
    if q.min() < 0 or not all(abs(total - 1) <= _SLACK for total in q.sum(axis=-1).tolist()):
        raise ValueError("a row of q is no distribution")
    if not all(q.item(i, token) > 0 for i, token in enumerate(tokens)):
        raise ValueError("a draft has no probability under the q it was drawn from")
