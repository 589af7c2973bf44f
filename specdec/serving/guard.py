"""A drafter behind a circuit breaker and a deadline, so that the engine meets nothing but a drafter.

A call that hangs is not waited for: it is made in a helper thread, one hand-over for each round. What it then still
does reaches its own session only, which is not asked again.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Protocol, TypeVar

from specdec.config import Lookahead, SamplingParams
from specdec.decoding import Drafted
from specdec.decoding.protocols import COLD, Drafter, DraftSession, Model, Reader
from specdec.errors import VocabularyError
from specdec.serving.helper import TooLate

T = TypeVar("T")
CHUNK = 128  # tokens read for which a call gets its seconds once more


class Watcher(Protocol):
    """Who decides whether a drafter may be asked, and hears of what it does."""

    @property
    def closed(self) -> bool:
        """Whether it may not be asked any more."""
        ...

    def asked(self) -> None:
        """It is asked for drafts."""
        ...

    def failed(self, error: Exception) -> None:
        """It failed where no round tells of it, or was too late."""
        ...

    def call(self, task: Callable[[], T], units: int) -> T:
        """What `task` returns or raises; TooLate where that takes longer than so many times a call's seconds."""
        ...


class GuardedDrafter:
    """A `Drafter` for one request, whose calls have a deadline, and which is not asked once its watcher says so."""

    def __init__(self, drafter: Drafter, watcher: Watcher) -> None:
        self._drafter = drafter
        self._watcher = watcher

    @property
    def name(self) -> str:
        """The drafter's own."""
        return self._drafter.name

    @property
    def num_speculative_tokens(self) -> Lookahead:
        """The drafter's own."""
        return self._drafter.num_speculative_tokens

    def start(self, target: Model, params: SamplingParams, seed: int, capacity: int) -> "GuardedSession":
        """Begin a request; what the drafter raises, or TooLate."""

        def begin() -> tuple[DraftSession, int | None, int | None]:
            session = self._drafter.start(target, params, seed, capacity)
            return session, session.cache_length, session.context_length

        try:
            session, held, context = self._watcher.call(begin, 1)
        except VocabularyError:
            raise
        except Exception as error:
            self._watcher.failed(error)
            raise
        return GuardedSession(session, self._watcher, held, context)


class GuardedSession:
    """A session of which the engine is told what was last known of it.

    What it has to forget it is told before it is next asked, so that a round costs one call.
    """

    def __init__(self, session: DraftSession, watcher: Watcher, held: int | None, context: int | None) -> None:
        self._session = session
        self._watcher = watcher
        self._held = held
        self._cut: int | None = None
        self._read = 0
        self.context_length = context

    @property
    def cache_length(self) -> int | None:
        """Tokens in the draft's cache, those left out that it is going to be told to forget."""
        return self._held if self._held is None or self._cut is None else min(self._held, self._cut)

    def prefill(self, prompt: Sequence[int], reader: Reader = COLD) -> None:
        """Show it the prompt."""
        text = tuple(prompt)
        self._do(lambda: self._session.prefill(text, reader), len(text))

    def propose(self, tokens: Sequence[int], k: int) -> Drafted:
        """Its drafts; none once it may not be asked any more."""
        if self._watcher.closed:
            return Drafted()
        self._watcher.asked()
        text = tuple(tokens)
        return self._do(lambda: _handed_over(self._session, text, k), len(text))

    def truncate(self, length: int) -> None:
        """Have it forget all behind `length` before it is next asked."""
        self._cut = length if self._cut is None else min(self._cut, length)

    def _do(self, task: Callable[[], T], length: int) -> T:
        """One call about a text of so many tokens, with what is due before it and asked after it."""
        session, cut, self._cut = self._session, self._cut, None

        def work() -> tuple[T, int | None]:
            if cut is not None:
                session.truncate(cut)
            return task(), session.cache_length

        try:
            result, self._held = self._watcher.call(work, 1 + (length - self._read) // CHUNK)
        except TooLate as error:
            self._watcher.failed(error)
            raise
        self._read = length
        return result


def _handed_over(session: DraftSession, text: tuple[int, ...], k: int) -> Drafted:
    """What it proposes, with all the work that is in it; of too many drafts one, which is refused."""
    draft = session.propose(text, k)
    return Drafted(tuple(islice(draft.tokens, k + 1)), draft.q)
