"""Drafts from the text's own repetitions: what followed the last few tokens when they occurred before.

Prompt lookup (Saxena 2023; vLLM's "ngram"). The index grows with the text and is never rebuilt. Where the copy runs
into the end of the text it goes on with what it has drafted, as in LZ77, so that a repeating text is drafted in full.
"""

from collections.abc import Sequence

from specdec.config import Lookahead, SamplingParams, require_int, require_lookahead
from specdec.decoding.drafters.draft import Drafted
from specdec.decoding.protocols import COLD, Model, Reader

_LOOK_BACK = 64  # tokens that must agree for the text to be taken as the one seen before


class NgramDrafter:
    """Looks for the longest of the last `max_ngram` … `min_ngram` tokens that occurred before. Needs no model."""

    name = "ngram"

    def __init__(self, num_speculative_tokens: Lookahead = 5, max_ngram: int = 4, min_ngram: int = 2) -> None:
        require_lookahead(num_speculative_tokens)
        require_int("max_ngram", max_ngram, 1, 32)
        require_int("min_ngram", min_ngram, 1, max_ngram)
        self.num_speculative_tokens = num_speculative_tokens
        self.max_ngram = max_ngram
        self.min_ngram = min_ngram

    def start(self, target: Model, params: SamplingParams, seed: int, capacity: int) -> "NgramDraftSession":
        """Begin a request; any target will do."""
        return NgramDraftSession(self.max_ngram, self.min_ngram)


class NgramDraftSession:
    """One request's text and the index of its n-grams."""

    def __init__(self, max_ngram: int, min_ngram: int) -> None:
        self._indices = [NgramIndex(size) for size in range(max_ngram, min_ngram - 1, -1)]
        self._tokens: list[int] = []

    cache_length: int | None = None
    context_length: int | None = None

    def prefill(self, prompt: Sequence[int], reader: Reader = COLD) -> None:
        """Index the prompt."""
        self._follow(prompt)

    def propose(self, tokens: Sequence[int], k: int) -> Drafted:
        """What followed the latest earlier occurrence of the longest known n-gram; nothing where there is none."""
        self._follow(tokens)
        for index in self._indices:
            start = index.find(self._tokens)
            if start is not None:
                return Drafted(self._copy(start, k))
        return Drafted()

    def truncate(self, length: int) -> None:
        """Forget all behind `length`."""
        if length < len(self._tokens):
            del self._tokens[length:]
            for index in self._indices:
                index.truncate(length)

    def _follow(self, tokens: Sequence[int]) -> None:
        """Make `tokens` the text: forget what differs, index what is new.

        Only where the last tokens known differ is all of the text compared.
        """
        known = len(self._tokens)
        if list(tokens[max(0, known - _LOOK_BACK) : known]) != self._tokens[-_LOOK_BACK:]:
            self.truncate(common_length(self._tokens, tokens))
        self._tokens += tokens[len(self._tokens) :]
        for index in self._indices:
            index.extend(self._tokens)

    def _copy(self, start: int, k: int) -> tuple[int, ...]:
        period = len(self._tokens) - start
        return tuple(self._tokens[start + i % period] for i in range(k))


class NgramIndex:
    """Where each n-gram of a text last occurred with a token behind it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._next: dict[tuple[int, ...], int] = {}  # n-gram -> position of the token behind it
        self._log: list[int | None] = []  # what each entry replaced, oldest first
        self._text: list[tuple[int, ...]] = []

    def extend(self, tokens: Sequence[int]) -> None:
        """Index the n-grams of `tokens`, which begins with the text so far."""
        for position in range(self._size + len(self._log), len(tokens)):
            gram = tuple(tokens[position - self._size : position])
            self._log.append(self._next.get(gram))
            self._text.append(gram)
            self._next[gram] = position

    def truncate(self, length: int) -> None:
        """Undo all entries that need more than `length` tokens."""
        while self._log and self._size + len(self._log) > length:
            gram, before = self._text.pop(), self._log.pop()
            if before is None:
                del self._next[gram]
            else:
                self._next[gram] = before

    def find(self, tokens: Sequence[int]) -> int | None:
        """Position behind the latest earlier occurrence of the last n tokens; None where there is none."""
        return self._next.get(tuple(tokens[-self._size :])) if len(tokens) >= self._size else None


def common_length(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens two texts begin with alike."""
    size = min(len(a), len(b))
    return next((i for i in range(size) if a[i] != b[i]), size)
