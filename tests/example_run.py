"""A run small enough to be counted by hand, for tests of records, traces and whoever reads them.

Lookahead 3. Round 0 keeps all its drafts and takes a bonus; round 1 refuses its second draft, so that the third is
never judged; round 2 is a plain step, because the drafter failed; round 3 accepts the end of the text as its second
draft: the run is over, and the third draft counts nowhere.
"""

from specdec.records import Finished, Outcome, Proposal, Record, Round, Source, Started, Token

WORDS = ("</s>", "Once", " upon", " a", " time", " there", " was", " is", " no", " the", " end", " or")
SETTINGS = {"lookahead": 3, "acceptance": "rejection", "exact": True, "params": {"temperature": 0.0, "stop": []}}
STARTED = Started("big", "small", (1, 2), 7, "bitwise", SETTINGS)


def proposal(text: str, outcome: Outcome) -> Proposal:
    """A draft token with its judgement, where it had one."""
    number = WORDS.index(text)
    if outcome == "discarded":
        return Proposal(number, text, 0.5, None, None, None, outcome)
    p = 0.625 if outcome == "accepted" else 0.125
    return Proposal(number, text, 0.5, p, min(1.0, p / 0.5), 0.375, outcome)


def token(text: str, source: Source) -> Token:
    """A token that was emitted."""
    return Token(WORDS.index(text), text, source, -0.25)


def proposals(**texts: tuple[str, ...]) -> tuple[Proposal, ...]:
    """Drafts by outcome."""
    return tuple(proposal(text, outcome) for outcome, group in texts.items() for text in group)  # type: ignore[arg-type]


def tokens(**texts: tuple[str, ...]) -> tuple[Token, ...]:
    """Emitted tokens by source."""
    return tuple(token(text, source) for source, group in texts.items() for text in group)  # type: ignore[arg-type]


ROUNDS = (
    Round(
        0,
        proposals(accepted=("Once", " upon", " a")),
        tokens(accepted=("Once", " upon", " a"), bonus=(" time",)),
        text="Once upon a time",
        draft_s=0.25,
        verify_s=0.5,
        sample_s=0.125,
        target_cache=5,
        draft_cache=4,
        prefill_s=1.0,
    ),
    Round(
        1,
        proposals(accepted=(" there",), rejected=(" is",), discarded=(" no",)),
        tokens(accepted=(" there",), recovered=(" was",)),
        text=" there was",
        draft_s=0.25,
        verify_s=0.5,
        sample_s=0.125,
        target_cache=7,
        draft_cache=7,
    ),
    Round(
        2,
        (),
        tokens(plain=(" the",)),
        text="",
        draft_s=0.0,
        verify_s=0.25,
        sample_s=0.0,
        target_cache=8,
        draft_cache=7,
        fault="the drafter failed",
    ),
    Round(
        3,
        proposals(accepted=(" end", "</s>"), discarded=(" or",)),
        tokens(accepted=(" end", "</s>")),
        text=" the",
        draft_s=0.25,
        verify_s=0.5,
        sample_s=0.0,
        target_cache=10,
        draft_cache=10,
    ),
)
FINISHED = Finished("eos", (1, 2, 3, 4, 5, 6, 9, 10, 0), "Once upon a time there was the end", " end")
RUN: tuple[Record, ...] = (STARTED, *ROUNDS, FINISHED)
