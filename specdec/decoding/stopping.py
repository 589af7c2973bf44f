"""Where a run ends: EOS, a stop id, a stop string, its length; and what of its text may be shown until then.

The token that ends a run is the last of its ids. Its text ends before that of an EOS or stop id, and before a stop
string, wherever tokens and rounds divide it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from specdec.config import SamplingParams
from specdec.decoding.protocols import Codec
from specdec.records import FinishReason


class StopStrings:
    """Text passes through; what may be the beginning of a stop string is held back until it is known.

    Of several stop strings the one that is complete first ends the text, whichever way the text arrives in pieces.
    """

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = stops
        self._longest = max(map(len, stops), default=0)
        self._held = ""

    def push(self, text: str) -> tuple[str, bool]:
        """Text that is certain now, and whether a stop string was found behind it."""
        if not self._stops:
            return text, False
        text = self._held + text
        ends = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if ends:
            self._held = ""
            return text[: min(ends)[1]], True
        keep = self._possible(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep], False

    def flush(self) -> str:
        """What was held back: no stop string came of it. Nothing where one did."""
        held, self._held = self._held, ""
        return held

    def _possible(self, text: str) -> int:
        """Length of the longest end of `text` that begins a stop string."""
        for size in range(min(self._longest - 1, len(text)), 0, -1):
            if any(stop.startswith(text[-size:]) for stop in self._stops):
                return size
        return 0


@dataclass(frozen=True, slots=True)
class Cut:
    """What of a round's tokens is emitted, the text that became certain, and why the run ends here, if it does."""

    ids: tuple[int, ...]
    text: str
    reason: FinishReason | None


class Stopping:
    """Watches one run. `left` tokens may follow; `limit` is the reason where none may."""

    def __init__(
        self, params: SamplingParams, eos_ids: frozenset[int], codec: Codec | None, left: int, limit: FinishReason
    ) -> None:
        self.left = left
        self._limit = limit
        self._eos_ids = frozenset() if params.ignore_eos else eos_ids
        self._stop_ids = frozenset(params.stop_token_ids)
        self._decoder = None if codec is None else codec.decoder()
        self._strings = StopStrings(params.stop)
        self._found = False
        self._said: list[str] = []

    @property
    def text(self) -> str:
        """All text that was released."""
        return "".join(self._said)

    def cut(self, tokens: Iterable[int]) -> Cut:
        """Take tokens in order up to the first that ends the run; a stop that falls on the last one is the reason."""
        ids: list[int] = []
        said = len(self._said)
        reason: FinishReason | None = None
        for token in tokens:
            ids.append(token)
            self.left -= 1
            reason = self._take(token)
            if reason:
                break
        return Cut(tuple(ids), "".join(self._said[said:]), reason)

    def tail(self) -> str:
        """Text held back till now, at the end of the run; nothing where a stop string ended it."""
        if self._found or self._decoder is None:
            return ""
        said = len(self._said)
        self._say(self._decoder.flush())
        self._said.append(self._strings.flush())
        return "".join(self._said[said:])

    def _take(self, token: int) -> FinishReason | None:
        if token in self._eos_ids:
            return "eos"
        if token in self._stop_ids:
            return "stop"
        if self._decoder is not None:
            self._say(self._decoder.push(token))
        if self._found:
            return "stop"
        return None if self.left > 0 else self._limit

    def _say(self, text: str) -> None:
        released, self._found = self._strings.push(text)
        self._said.append(released)
