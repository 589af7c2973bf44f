"""What a terminal is given: harmless text, in colours that end where they begin."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec.cli.terminal import RESET, STYLES, Painter, figures, in_force, printable, styled, wants_colour
from specdec.records import Finished, Proposal, Record, Round, Token
from specdec.stats import Stats
from tests.cli.conftest import Terminal
from tests.example_run import FINISHED, ROUNDS, RUN, STARTED

STRUCK = re.compile(re.escape(STYLES["rejected"]) + r"[^\x1b]*" + re.escape(RESET))
CODES = re.compile(r"\x1b\[[0-9;]*m")
pieces = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=4)


def painted(records: tuple[Record, ...]) -> str:
    painter = Painter()
    said = [painter.round(record) for record in records if isinstance(record, Round)]
    return "".join([*said, *(painter.tail(record) for record in records if isinstance(record, Finished))])


def readable(text: str) -> str:
    """What is left of painted text without the rejected tokens and the colours."""
    return CODES.sub("", STRUCK.sub("", text))


def test_a_run_in_colours():
    """Accepted green, rejected struck through before what replaced it, bonus and recovered in their own styles."""
    green, struck, corrected, bonus = (STYLES[style] for style in ("accepted", "rejected", "recovered", "bonus"))
    assert painted(RUN) == (
        f"{green}Once{RESET}{green} upon{RESET}{green} a{RESET}{bonus} time{RESET}"
        f"{green} there{RESET}{struck} is{RESET}{corrected} was{RESET}"
        f" the{green} end{RESET}"
    )
    assert readable(painted(RUN)) == FINISHED.text


def step(text: str, *tokens: Token, rejected: str = "") -> Round:
    refused = (Proposal(0, rejected, 0.5, 0.1, 0.2, 0.9, "rejected"),) if rejected else ()
    return Round(0, refused, tokens, text, 0, 0, 0, 0)


def test_half_a_character_waits_for_its_other_half():
    """An emoji over three tokens and two rounds is shown once, whole, and what follows has its own colour."""
    half = "\ufffd"
    rounds = (
        step("", Token(1, half, "accepted"), Token(2, half, "bonus")),
        step("🙂 yes", Token(3, half, "accepted"), Token(4, " yes", "recovered"), rejected=" no"),
    )
    said = painted(rounds)
    assert readable(said) == "🙂 yes"
    assert said.endswith(styled(" yes", "recovered"))


def test_held_back_text_keeps_its_colour():
    """A token whose end may begin a stop string is shown in two parts of one colour."""
    rounds = (step("on", Token(1, "one", "accepted")), step("e two", Token(2, " two", "bonus")))
    assert painted(rounds) == "".join([styled("on", "accepted"), styled("e", "accepted"), styled(" two", "bonus")])


def test_a_space_that_a_decoder_drops_is_dropped():
    """Text that begins without the space of its first token keeps its colours."""
    rounds = (step("Once upon", Token(1, " Once", "accepted"), Token(2, " upon", "bonus")),)
    assert painted(rounds) == styled("Once", "accepted") + styled(" upon", "bonus")


@given(st.lists(st.tuples(pieces, st.sampled_from(["accepted", "bonus", "plain"])), max_size=8), st.data())
def test_colours_never_change_the_text(tokens, data):
    """However the text lags the tokens, and whatever the pieces say, the text comes out whole and in order."""
    text = "".join(piece for piece, _ in tokens)
    shown = data.draw(st.sampled_from([text, text.replace("a", "b"), text[1:], ""]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(shown)), min_size=len(tokens), max_size=len(tokens))))
    painter, said, at = Painter(), "", 0
    for (piece, source), cut in zip(tokens, cuts, strict=True):
        said += painter.round(step(shown[at:cut], Token(0, piece, source), rejected="x"))
        at = cut
    said += painter.tail(Finished("length", (), shown, shown[at:]))
    assert readable(said) == printable(shown)


@given(st.text())
def test_no_control_character_reaches_a_terminal(text):
    """Only line ends and tabs pass: no escape sequence, bell, carriage return, C1, surrogate or reordering."""
    for character in printable(text):
        assert character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs")
        assert character not in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@pytest.mark.parametrize(
    "text, shown",
    [
        ("\x1b[2J\x07", "␛[2J␇"),
        ("a\r\nb\tc", "a␍\nb\tc"),
        ("\x9b31m\x7f", "\\x9b31m␡"),
        ("\u202etxt", "\\u202etxt"),
        ("\ud800", "\ufffd"),
        ("naïve 🙂 e\u0301 👩\u200d🚀", "naïve 🙂 e\u0301 👩\u200d🚀"),
    ],
)
def test_control_characters_are_made_visible(text, shown):
    """Shown as signs; ordinary text, joiners and combining marks pass."""
    assert printable(text) == shown


@given(st.text(), st.sampled_from([*STYLES, "plain"]))
def test_every_line_ends_its_own_colour(text, style):
    """Whatever is cut off, no colour is left switched on at a line's end."""
    for line in styled(text, style).split("\n"):
        assert line.count("\x1b") in (0, 2)
        assert "\x1b" not in line or line.endswith(RESET)


def test_rejected_line_ends_stay_on_their_line():
    """A rejected newline is a sign, and breaks no line."""
    assert "\n" not in painted((step("", rejected="\n\t"),))
    assert "⏎⇥" in painted((step("", rejected="\n\t"),))


def test_colour_is_for_terminals(monkeypatch):
    """No colour where the stream is none, NO_COLOR is set to anything, or the terminal is dumb."""
    stream = Terminal()
    assert wants_colour(stream)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(stream)
    monkeypatch.setenv("NO_COLOR", "")
    assert wants_colour(stream)
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour(stream)


def test_the_closing_lines():
    """Figures of the example run, and what was in force."""
    rates = "acceptance rate 75% (6 of 8 drafted) · τ 2.25"
    said = f"9 tokens in 4 rounds · 3.3 tokens/s · {rates} · TTFT 1875 ms · ended: eos"
    assert figures(Stats.of(RUN), "eos") == said
    assert in_force(STARTED) == "target big · draft small · k 3 · exactness bitwise · seed 7"


def test_plain_decoding_claims_no_acceptance():
    """Where nothing was drafted, no rate is shown."""
    said = figures(Stats.of([STARTED, ROUNDS[2]]), "length")
    assert "acceptance" not in said
    assert "τ" not in said
