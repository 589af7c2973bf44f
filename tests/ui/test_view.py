"""What the page is told: records in, lines of JSON out."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.records import Candidate, Finished, FinishReason, Proposal, Record, Round, Started, Token
from specdec.serving import GenerationRequest
from specdec.stats import Stats
from specdec.ui import view
from specdec.ui.meter import Meter
from specdec.ui.traces import ending

STARTED = Started("big", "small", (1, 2, 3), 7, "bitwise", {"temperature": 0.8}, note="")
REQUEST = GenerationRequest("Once", "big", "small", params=SamplingParams(max_tokens=9))


def draft(text: str, outcome: Any, p: float | None = 0.5) -> Proposal:
    judged = None if outcome == "discarded" else p
    return Proposal(1, text, 0.25, judged, judged and 1.0, None if judged is None else 0.123456, outcome)


def step(index: int, *proposals: Proposal, final: Token | None = None, **more: Any) -> Round:
    kept = tuple(Token(item.id, item.text, "accepted") for item in proposals if item.outcome == "accepted")
    tokens = (*kept, final) if final else kept
    return Round(index, proposals, tokens, "".join(t.text for t in tokens), 0.01, 0.02, 0.01, 9, **more)


REFUSED = step(
    0,
    draft(" a", "accepted"),
    draft(" b", "rejected"),
    draft(" c", "discarded"),
    final=Token(5, " x", "recovered"),
    prefill_s=0.1,
)
KEPT = step(1, draft(" d", "accepted"), draft(" e", "accepted"), final=Token(6, " f", "bonus"))
PLAIN = step(2, final=Token(7, " g", "plain"))


def told(records: Iterable[Record]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in view.fold(records, REQUEST, Meter())]


def test_one_line_for_each_record_but_the_last():
    """Start, rounds: in order, each a JSON object on a line of its own. The end waits for what comes before it."""
    lines = list(view.fold([STARTED, REFUSED, KEPT, Finished("length", (), "")], REQUEST, Meter()))
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in lines)
    assert [json.loads(line)["event"] for line in lines] == ["start", "round", "round"]
    assert [view.is_round(line) for line in lines] == [False, True, True]


def test_a_refused_draft_is_followed_at_once_by_its_correction():
    """Reading order: kept, refused, correction, then those nobody judged."""
    assert [chip[:2] for chip in view.chips(REFUSED)] == [["a", " a"], ["r", " b"], ["c", " x"], ["d", " c"]]


def test_a_full_acceptance_ends_with_the_bonus_and_a_plain_step_is_plain():
    """No drafts refused, nothing struck out; no drafts at all, nothing but the target's own token."""
    assert [chip[:2] for chip in view.chips(KEPT)] == [["a", " d"], ["a", " e"], ["b", " f"]]
    assert view.chips(PLAIN) == [["p", " g"]]


def test_drafts_behind_the_end_of_the_run_are_discarded():
    """A run that ends inside its accepted drafts has no token of the target's own."""
    last = step(3, draft(" d", "accepted"), draft(" e", "discarded"))
    assert [chip[:2] for chip in view.chips(last)] == [["a", " d"], ["d", " e"]]


def test_a_chip_carries_p_q_u_and_acceptance():
    """In this order, rounded to four digits; None, or nothing at the end, where a draft was never judged."""
    assert view.chips(REFUSED)[0] == ["a", " a", 0.5, 0.25, 0.1235, 1.0]
    assert view.chips(REFUSED)[3] == ["d", " c", None, 0.25]


def lists(*chances: float) -> tuple[Candidate, ...]:
    return tuple(Candidate(i, f" {i}", chance) for i, chance in enumerate(chances, 1))


LISTED = step(
    0,
    replace(draft(" 1", "accepted"), target_top=lists(0.71239, 0.2), draft_top=lists(1.0)),
    replace(draft(" 9", "rejected"), id=9, target_top=lists(0.5, 0.0001), draft_top=lists(0.6)),
    draft(" c", "discarded"),
    final=Token(2, " 2", "recovered", top=lists(0.0012345, 0.001)),
)


def test_lists_come_last_and_say_where_the_token_itself_is():
    """By what they hold: place of the token or −1, then text and probability in turn, to three digits, no 0.000."""
    kept, refused, own, unread = view.chips(LISTED)
    assert kept[6:] == [{"p": [0, " 1", 0.712, " 2", 0.2], "q": [0, " 1", 1.0]}]
    assert refused[6:] == [{"p": [-1, " 1", 0.5], "q": [-1, " 1", 0.6]}]
    assert own == ["c", " 2", None, None, None, None, {"r": [1, " 1", 0.00123, " 2", 0.001]}]
    assert len(unread) == 4
    bonus = step(1, final=Token(1, " 1", "bonus", top=lists(0.5)))
    assert view.chips(bonus)[0][6] == {"p": [0, " 1", 0.5]}


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"acceptance": "rejection", "params": {"temperature": 0.8, "top_k": 0}}, [["p", "q"], ["p", "q"], ["r"]]),
        ({"acceptance": "match", "params": {"temperature": 0.8, "top_k": 0}}, [["p", "q"], ["p", "q"], ["p"]]),
        ({"acceptance": "rejection", "params": {"temperature": 0.0, "top_k": 0}}, [["s", "q"], ["s", "q"], ["s"]]),
        ({"acceptance": "match", "params": {"temperature": 0.8, "top_k": 1}}, [["s", "q"], ["s", "q"], ["s"]]),
        ({"acceptance": [], "params": "?"}, [["p", "q"], ["p", "q"], ["r"]]),
        ({}, [["p", "q"], ["p", "q"], ["r"]]),
    ],
)
def test_lists_are_named_by_what_they_hold(settings: dict[str, Any], names: list[list[str]]):
    """p, q, what was left of p, the softmax of a greedy run: as the run's own record says, whatever a file says."""
    lines = told([replace(STARTED, settings=settings), LISTED])
    assert [list(chip[6]) for chip in lines[1]["chips"][:3]] == names


def test_a_round_tells_the_figures_that_it_changed():
    """Put together, those of all rounds are the figures of the run; what stays the same is told once."""
    records = [STARTED, REFUSED, KEPT, PLAIN]
    meter = Meter()
    rounds = [json.loads(line).get("figures") for line in view.fold(records, REQUEST, meter)][1:]
    together = rounds[0] | rounds[1] | rounds[2]
    assert together == meter.figures()
    assert rounds[0].keys() == together.keys()
    assert "ttft" not in rounds[1] | rounds[2]
    assert rounds[2]["rounds"] == "3"


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "${alert(1)}",
    "</script><script>alert(1)</script>",
    "`${1}`",
    "{{constructor}}",
    "\u2028\n\ud800",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_inside_its_json_string(text: str):
    """A line is ASCII, has no `<`, and gives back exactly the text that went in, as prompt and as token."""
    request = GenerationRequest(text, "big")
    lines = list(
        view.fold([STARTED, step(0, draft(text, "rejected"), final=Token(1, text, "recovered"))], request, Meter())
    )
    assert all(line.isascii() and "<" not in line and line.count("\n") == 1 for line in lines)
    start, body = (json.loads(line) for line in lines)
    assert start["prompt"] == text
    assert [chip[1] for chip in body["chips"]] == [text, text]


def test_the_engine_seconds_of_a_round_and_how_drafts_are_judged():
    """Drafting, the target's pass, the rest, prefill left out; greedy is greedy whatever the rule."""
    assert told([STARTED, REFUSED])[1]["seconds"] == [0.01, 0.02, 0.01]
    match = SpeculativeConfig(acceptance="match")
    for params, way in [(SamplingParams(temperature=1.0), "match"), (SamplingParams(), "greedy")]:
        request = GenerationRequest("Once", "big", params=params, speculation=match)
        assert json.loads(next(view.fold([STARTED], request, Meter())))["way"] == way


def test_a_failing_drafter_is_told():
    """Its round says why it had no drafts; others say nothing of it."""
    lines = told([STARTED, step(0, final=Token(1, " x", "plain"), fault="out of memory"), KEPT])
    assert lines[1]["fault"] == "out of memory"
    assert "fault" not in lines[2]


@pytest.mark.parametrize(
    ("reason", "asked", "tokens", "said"),
    [
        ("eos", 9, 3, "The model ended its text."),
        ("stop", 9, 3, "A stop string was reached."),
        ("context", 9, 3, "The model's context is full."),
        ("cancelled", 9, 3, "Stopped."),
        ("length", 9, 9, "All 9 tokens asked for are there."),
        ("length", 1, 1, "The one token asked for is there."),
        ("length", 9, 5, "The time limit was reached after 5 tokens."),
    ],
)
def test_the_end_is_explained(reason: FinishReason, asked: int, tokens: int, said: str):
    """Every reason has its sentence; fewer tokens than asked for, at "length", means that the time was up."""
    request = replace(REQUEST, params=replace(REQUEST.params, max_tokens=asked))
    assert view.reason_of(Finished(reason, (), ""), request, Stats(tokens=tokens)) == said


def test_what_is_in_force_is_said():
    """Models, seed and exactness, and the run's own note."""
    start = told([STARTED])[0]
    assert start["about"] == "big · drafts by small · seed 7 · exact bit for bit"
    plain = Started("big", "none", (), 1, "near-ties", {}, note="why")
    assert told([plain])[0] | {"prompt": ""} == {
        "event": "start",
        "prompt": "",
        "way": "greedy",
        "about": "big · no drafts · seed 1 · exact up to near-ties",
        "seed": 1,
        "note": "why",
        "drafts": False,
        "k": None,
        "plain": None,
    }


def test_a_start_tells_what_the_charts_need():
    """Whether there are drafts, how many a round where that is fixed, and the plain lane known so far."""
    meter = Meter(Stats(tokens=30, rounds=30, verify_s=0.3))
    for lookahead, k in ((3, 3), ("auto", None), (10**9, None)):
        started = replace(STARTED, settings={"lookahead": lookahead})
        start = json.loads(next(view.fold([started], REQUEST, meter)))
        assert (start["drafts"], start["k"], start["plain"]) == (True, k, 100)


def test_a_long_run_stays_small():
    """512 tokens with k = 4 make less than 200 KB of lines, about what a page can take in; with full lists too."""
    full = tuple(Candidate(i, " token", 0.012345) for i in range(5))
    kept = replace(draft(" token", "accepted"), target_top=full, draft_top=full)
    many = [step(i, *[kept] * 4, final=Token(1, " token", "bonus", top=full)) for i in range(103)]
    assert sum(map(len, view.fold([STARTED, *many], REQUEST, Meter()))) < 200_000


@pytest.mark.parametrize(
    ("parameters", "label"),
    [(None, "m"), (7_340_032, "m · 7.34 M params"), (1_700_000_000, "m · 1.7 B params"), (512, "m · 512 params")],
)
def test_models_are_listed_with_their_size(parameters: int | None, label: str):
    """A name, and how large it is where that is known."""
    assert view.model_label("m", parameters) == label


def test_a_breaker_that_opens_is_told_with_its_round_and_at_the_end():
    """As text, in a line of its own; a run without drafts from its start says so at its end as well."""
    paused = replace(PLAIN, paused="drafting is paused for 30 s, because <b>it</b>")
    assert [each.get("paused") for each in told([STARTED, PLAIN, paused])] == [None, None, paused.paused]
    end = Finished("cancelled", (), "")
    for records, said in (
        ([STARTED, PLAIN, end], False),
        ([STARTED, paused, end], True),
        ([replace(STARTED, breaker="half-open"), PLAIN, end], False),
        ([replace(STARTED, breaker="open"), PLAIN, end], True),
    ):
        *_, last = ending(records, REQUEST, Meter(), {})
        assert json.loads(last)["text"].startswith("Stopped.")
        assert ("Drafting is paused" in last) == said
