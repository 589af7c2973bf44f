"""Runs as files, and what the page is told when one is opened."""

import json
from dataclasses import replace
from typing import Any

import pytest

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.records import Finished, Proposal, Round, Started, Token
from specdec.serving import GenerationRequest, Service
from specdec.trace import Trace
from specdec.ui import traces
from specdec.ui.assets import page_file
from specdec.ui.step import open_run, panel
from specdec.ui.watch import Form, watch
from tests.example_run import RUN
from tests.serving.toys import load_toy


def file_of(text: str) -> str:
    """The trace that events carry."""
    (trace,) = [event["text"] for event in parsed(text) if event["event"] == "trace"]
    assert isinstance(trace, str)
    return trace


def parsed(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def spoiled(**changes: Any) -> str:
    """The example run as a file, with some of its fields changed."""
    return json.dumps(json.loads(Trace.collect(RUN).to_json()) | changes)


def one_round(**changes: Any) -> str:
    """A file of one round, with a number that no engine writes."""
    draft = Proposal(1, "x", 0.5, 0.5, 1.0, 0.1, "accepted")
    step = Round(0, (draft,), (Token(1, "x", "accepted"),), "x", 0.1, 0.1, 0.1, 2)
    step = replace(step, **{name: value for name, value in changes.items() if hasattr(step, name)})
    judged = {name: value for name, value in changes.items() if hasattr(draft, name)}
    if judged:
        step = replace(step, proposals=(replace(draft, **judged),))
    return Trace(RUN[0], (step,), Finished("length", (1,), "x")).to_json()  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", ["rejection", "match"])
@pytest.mark.parametrize(("temperature", "draft"), [(0.0, "draft"), (1.5, "draft"), (1.5, "ngram"), (1.5, "none")])
def test_an_opened_run_is_told_exactly_as_it_was_live(rule: Any, temperature: float, draft: str):
    """The same events, byte for byte: prompt, chips, figures, points, seconds, the sentence at the end, the file."""
    form = Form("Once ${1}\n<b>", "target", draft, 3, False, temperature, 24, rule, 0, 1, 5, False)
    *_, live = watch(Service(loader=load_toy), form, lambda: False)
    kept = [line for line in live.splitlines(True) if json.loads(line)["event"] not in ONLY_LIVE]
    assert open_run(file_of(live)) == {"events": "".join(kept)}


def test_the_file_is_what_the_command_line_prints():
    """A trace that opens in Python and gives itself again; measurements, which only the command line takes, survive."""
    text = Trace.collect(RUN, {"wall_s": 4.5}).to_json()
    opened = open_run(text)["events"]
    assert file_of(opened) == text
    assert Trace.from_json(file_of(opened)).records == RUN


def test_a_trace_without_its_prompt_opens_with_an_empty_one():
    """So do those of `Engine.generate`, which knows token ids only."""
    start = parsed(open_run(spoiled())["events"])[1]
    assert (start["event"], start["prompt"], start["way"]) == ("start", "", "greedy")


def test_a_run_that_never_began_has_no_file():
    """Stopped while it waited: an end, and nothing to save."""
    request = GenerationRequest("Once", "big")
    (end,) = traces.retold([Finished("cancelled", (), "")], request)
    assert json.loads(end) == {"event": "end", "reason": "cancelled", "text": "Stopped."}


ONLY_LIVE = {"loading", "comparing", "plain"}
WRONG = [
    ("", "This is not a trace: Expecting value"),
    ("\x00\x01PNG", "This is not a trace"),
    ("<script>window.hit=1</script>", "This is not a trace"),
    ("[]", "This is not a trace: it must be one JSON object."),
    ("null", "This is not a trace: it must be one JSON object."),
    ("[" * 100_000, "This is not a trace: it is nested too deeply."),
    ('{"rounds": []}', "This is not a trace: trace has no target, drafter, prompt_ids, seed, exactness, settings."),
    ("9" * 5_000, "This is not a trace: a number in it has too many digits."),
    ("x" * (traces.MAX_BYTES + 1), "The file is larger than 2 MB."),
    (spoiled(rounds={}), "This is not a trace: rounds must be a list."),
    (spoiled(rounds=[]), "The run in this file ended before its first round: there is nothing to show."),
    (spoiled(target=5), "This is not a trace: trace.target has an unexpected value."),
    (spoiled(finish_reason="bored"), "This is not a trace: trace.reason has an unexpected value."),
    (spoiled(settings={"params": []}), "This is not a trace: settings has an unexpected value."),
    (spoiled(settings={"prompt": 5}), "This is not a trace: settings has an unexpected value."),
    (spoiled(settings={"params": {"temperature": "hot"}}), "Temperature must be a finite number"),
    (spoiled(settings={"acceptance": "hope"}), "Acceptance must be one of rejection, match"),
    (one_round(p=1.5), "This is not a trace: rounds[0] has numbers that no run has."),
    (one_round(u=-0.5), "This is not a trace: rounds[0] has numbers that no run has."),
    (one_round(draft_s=1e300), "This is not a trace: rounds[0] has numbers that no run has."),
    (one_round(verify_s=-1.0), "This is not a trace: rounds[0] has numbers that no run has."),
    (one_round(sample_s=5e-324), "This is not a trace: rounds[0] has numbers that no run has."),
    (one_round(tokens=(Token(1, "x", "bonus"),) * 99), "This is not a trace: rounds[0] has numbers that no run has."),
    (one_round(proposals=RUN[1].proposals * 9), "This is not a trace: rounds[0] has numbers that no run has."),  # type: ignore[union-attr]
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_anything_else_is_refused_in_a_sentence(text: str, said: str):
    """Not JSON, another shape, too large, numbers that would break a figure: one sentence, no event."""
    answer = open_run(text)
    assert set(answer) == {"error"}
    assert answer["error"].startswith(said)
    assert len(answer["error"]) <= 401


@pytest.mark.parametrize("thing", [None, 5, ["text"], {"text": ""}])
def test_a_call_with_anything_but_text_is_refused(thing: Any):
    """The function can be called by whoever reaches the server."""
    assert set(open_run(thing)) == {"error"}


def test_markup_in_a_file_stays_text():
    """Whatever a file's texts say, the events are ASCII without `<`, and give the texts back as they were."""
    attack = "<img src=x onerror=window.hit=1>${window.hit=1}\u2028"
    started = Started(attack, attack, (1,), 7, "bitwise", {"prompt": attack}, attack)
    step = Round(0, (), (Token(1, attack, "plain"),), attack, 0.0, 0.1, 0.0, 1, fault=attack)
    events = open_run(Trace(started, (step,), Finished("stop", (1,), attack)).to_json())["events"]
    assert events.isascii()
    assert "<" not in events
    start, told = parsed(events)[1:3]
    assert start["prompt"] == start["note"] == told["fault"] == told["chips"][0][1] == attack


def test_a_long_run_with_its_file_stays_small():
    """512 tokens with k = 12, few of them kept: less than a megabyte for the page, and a file that can be opened."""
    request = GenerationRequest(
        "#0",
        "target",
        "draft",
        params=SamplingParams(temperature=1.5, max_tokens=512, seed=1),
        speculation=SpeculativeConfig(12),
    )
    text = "".join(traces.retold(Service(loader=load_toy).stream(request), request))
    assert len(text) < 1_000_000
    assert set(open_run(file_of(text))) == {"events"}


def test_the_template_is_constant():
    """Gradio evaluates templates, so that this one holds nothing to evaluate; the page knows the size limit."""
    assert not [mark for mark in ("${", "{{", "`", "\\") if mark in page_file("step.html")]
    assert panel().props["max_bytes"] == traces.MAX_BYTES
