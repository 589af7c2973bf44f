"""Settings handed on: the link, the command and the snippet mean what the page meant."""

import asyncio
import json
import shlex
import subprocess
import sys
from dataclasses import astuple, replace
from typing import Any
from urllib.parse import parse_qsl

import gradio as gr
import pytest

from specdec.cli.options import parse
from specdec.errors import ConfigError
from specdec.serving import Service, Settings, catalogue
from specdec.ui import handover
from specdec.ui.page import build
from specdec.ui.watch import Form
from tests.ui.conftest import ROOT

STORY = Form(
    "Once upon a time,",
    "specdec-target-4x256",
    "specdec-draft-1x128",
    3,
    False,
    0.8,
    24,
    "rejection",
    40,
    0.9,
    7,
    False,
)
FORMS = {
    "sampled": STORY,
    "greedy, no seed": replace(STORY, temperature=0.0, top_k=0, top_p=1.0, seed=None),
    "match": replace(STORY, acceptance="match"),
    "chosen by the engine": replace(STORY, auto=True, acceptance="match"),
    "ngram": replace(STORY, draft="ngram"),
    "plain": replace(STORY, draft="none"),
    "a prompt like an option": replace(STORY, prompt="--help 'me' \"now\"\n$(exit) ☂ \\n"),
    "chat": replace(STORY, chat=True),
}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    return FORMS[request.param]


@pytest.fixture(scope="module")
def controls() -> list[Any]:
    """The page's own controls, in the order of `Form`'s fields."""

    async def inside_a_loop() -> gr.Blocks:  # outside of one, Gradio makes several and never closes them
        return build(Service(Settings(), offers=catalogue([])))

    page = asyncio.run(inside_a_loop())
    names = ("prompt", "target", "draft", "lookahead", "auto", "temperature", "max-tokens", "acceptance", "top-k")
    found = {getattr(block, "elem_id", None): block for block in page.blocks.values()}
    return [found[name] for name in (*names, "top-p", "seed", "chat")]


def test_the_command_means_the_same(form: Form):
    """The command line, read as a shell and our own parser read it, asks for what the page asks for."""
    words = shlex.split(handover.command(form))
    assert words[:3] == ["python", "-m", "specdec"]
    options, asked = parse(words[3:]), form.request()
    assert (options.target, options.draft, options.prompt, options.chat) == (
        *(asked.target, asked.draft, asked.prompt),
        asked.chat,
    )
    assert (options.params, options.speculation) == (asked.params, replace(asked.speculation, top=0))


def test_a_prompt_that_would_mean_standard_input_is_sent_there():
    """A dash alone: as the shell reads the command, the program is given this very prompt, and no other."""
    said = handover.command(replace(STORY, prompt="-", max_tokens=2)).replace("python", shlex.quote(sys.executable), 1)
    done = subprocess.run(f"{said} --json", shell=True, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["settings"]["prompt"] == "-"


@pytest.mark.parametrize("name", ["sampled", "match", "ngram", "plain"])
def test_the_snippet_runs_and_says_what_the_command_says(name: str):
    """Both are run, as a stranger would: the same text."""
    said = [
        subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for words in (["-c", handover.snippet(FORMS[name])], shlex.split(handover.command(FORMS[name]))[1:])
    ]
    text = said[1].removesuffix("\n")
    assert len(text) > 40
    assert said[0].startswith(text)


def test_every_snippet_is_python(form: Form):
    """It compiles, whatever the prompt."""
    compile(handover.snippet(form), "snippet", "exec")


def test_a_link_brings_everything_back(form: Form, controls: list[Any]):
    """All controls get the values that the link was made of; one that was empty is left alone."""
    values = handover.restored(dict(parse_qsl(handover.link(form)[1:])), controls)
    filled = [
        form_value if shown == gr.skip() else shown for shown, form_value in zip(values, astuple(form), strict=True)
    ]
    assert Form(*filled) == form
    assert (values[10] == gr.skip()) == (form.seed is None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("target", "/etc/passwd"),
        ("draft", "specdec-target-8x384"),
        ("lookahead", "13"),
        ("temperature", "nan"),
        ("temperature", "-1"),
        ("max_tokens", "inf"),
        ("top_p", "much"),
        ("acceptance", "always"),
        ("seed", "-5"),
        ("seed", "1.5"),
        ("seed", "18446744073709551616"),
        ("seed", "9223372036854775808"),
        ("seed", "1e300"),
        ("lookahead", "2.5"),
        ("max_tokens", "17.5"),
        ("top_k", "0.5"),
        ("unknown", "1"),
    ],
)
def test_what_a_control_would_not_take_is_left_out(name: str, value: str, controls: list[Any]):
    """Nothing changes, and nothing fails."""
    assert all(shown == gr.skip() for shown in handover.restored({name: value}, controls))


def test_a_link_that_servers_would_refuse_is_not_made():
    """As long as servers take it is made; where three bytes a character are too many, it says what to do."""
    bare = len(handover.link(replace(STORY, prompt="")))
    assert len(handover.link(replace(STORY, prompt="a" * (handover.LONGEST_LINK - bare)))) == handover.LONGEST_LINK
    with pytest.raises(ConfigError, match="hand on the command"):
        handover.link(replace(STORY, prompt="夏" * 900))


def test_settings_that_cannot_be_meant_are_refused():
    """As they are on Generate."""
    for made in (handover.command, handover.snippet):
        with pytest.raises(ConfigError):
            made(replace(STORY, temperature=-1))
