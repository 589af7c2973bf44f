"""What a terminal is given: colours, and text without the control characters that would steer it."""

import os
import unicodedata
from collections import deque
from collections.abc import Iterator
from typing import Literal, TextIO

from specdec.records import Finished, Proposal, Round, Source, Started
from specdec.stats import Stats

Style = Source | Literal["rejected", "faint"]

RESET = "\x1b[0m"
STYLES: dict[Style, str] = {
    "accepted": "\x1b[32m",
    "rejected": "\x1b[31;9m",
    "recovered": "\x1b[33;4m",
    "bonus": "\x1b[36;1m",
    "faint": "\x1b[2m",
}
KEPT = "\n\t"
REORDERING = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}  # explicit directions
PICTURES = 0x2400  # U+2400 … U+2421 show U+0000 … U+0020 and U+007F


def wants_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal whose user wants colours (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def printable(text: str) -> str:
    """The text with every character that could steer a terminal, or reorder what it shows, made visible."""
    return "".join(character if character in KEPT else _visible(character) for character in text)


def _visible(character: str) -> str:
    code, category = ord(character), unicodedata.category(character)
    if category == "Cc":
        return chr(PICTURES + code) if code < 0x20 else "␡" if code == 0x7F else f"\\x{code:02x}"
    if category == "Cs":
        return "\ufffd"
    if code in REORDERING:
        return f"\\u{code:04x}"
    return character


def styled(text: str, style: Style) -> str:
    """The text in a style, line by line, so that no colour reaches beyond the end of a line."""
    code = STYLES.get(style, "")
    lines = (f"{code}{line}{RESET}" if code and line else line for line in printable(text).split("\n"))
    return "\n".join(lines)


class Painter:
    """Colours a run's text by where its tokens came from.

    A round's text lags its tokens (half a character, a possible stop string), so that tokens wait here until their
    text is out. Where pieces do not add up to the text (characters split over tokens), a piece's colour goes on up
    to the next piece that can be found.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, Style]] = deque()
        self._style: Style = "plain"

    def round(self, step: Round) -> str:
        """What to write for a round."""
        kept: list[tuple[str, Style]] = [(token.text, token.source) for token in step.tokens]
        refused = [_mark(proposal) for proposal in step.proposals if proposal.outcome == "rejected"]
        self._waiting += [*kept[: step.accepted], *refused, *kept[step.accepted :]]
        return self._paint(step.text)

    def tail(self, end: Finished) -> str:
        """What to write when the run is over."""
        return self._paint(end.tail)

    def _paint(self, text: str) -> str:
        return "".join(styled(part, style) for part, style in self._parts(text))

    def _parts(self, text: str) -> Iterator[tuple[str, Style]]:
        yield from self._refused()
        while text:
            length = self._match(text)
            yield text[:length], self._style
            text = text[length:]
            yield from self._refused()

    def _refused(self) -> Iterator[tuple[str, Style]]:
        """Rejected tokens whose turn has come: they are shown, and stand for no text."""
        while self._waiting and self._waiting[0][1] == "rejected":
            yield self._waiting.popleft()

    def _match(self, text: str) -> int:
        """Take the piece whose turn it is; how many characters of the text are its own."""
        if not self._waiting:
            return len(text)
        piece, self._style = self._waiting.popleft()
        if piece and text.startswith(piece):
            return len(piece)
        if piece.startswith(text):
            self._waiting.appendleft((piece[len(text) :], self._style))
            return len(text)
        return self._resume(text)

    def _resume(self, text: str) -> int:
        """Characters before the next waiting piece that the text has; pieces before that one are passed over."""
        for index, (piece, style) in enumerate(self._waiting):
            found = text.find(piece) if piece.strip("\ufffd") and style != "rejected" else -1
            if found >= 0:
                for _ in range(index):
                    self._waiting.popleft()
                return found
        self._waiting.clear()
        return len(text)


def _mark(proposal: Proposal) -> tuple[str, Style]:
    """A rejected token on one line: line ends are shown as signs."""
    return proposal.text.replace("\n", "⏎").replace("\t", "⇥"), "rejected"


def figures(stats: Stats, reason: str) -> str:
    """The closing line of a run."""
    parts = [f"{stats.tokens} tokens in {stats.rounds} rounds", f"{stats.tokens_per_second:.1f} tokens/s"]
    if stats.drafted:
        parts.append(f"acceptance rate {stats.acceptance_rate:.0%} ({stats.accepted} of {stats.drafted} drafted)")
        parts.append(f"τ {stats.mean_acceptance_length:.2f}")
    return " · ".join([*parts, f"TTFT {1_000 * stats.ttft_s:.0f} ms", f"ended: {reason}"])


def in_force(started: Started) -> str:
    """What a run really ran with, which may be less than was asked for."""
    k = started.settings.get("lookahead")
    parts = [f"target {started.target}", f"draft {started.drafter}"] + ([f"k {k}"] if k is not None else [])
    parts += [f"exactness {started.exactness}", f"seed {started.seed}"] + ([started.note] if started.note else [])
    return " · ".join(parts)
