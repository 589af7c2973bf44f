"""The bundled pair from the command line: real models, real processes, real pipes."""

import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from specdec.cli import main
from specdec.trace import Trace
from tests.cli.conftest import heed_interrupts
from tests.cli.test_terminal import readable
from tests.source_tree import ROOT

COMMAND = [sys.executable, "-m", "specdec", "generate", "--prompt", "Once upon a time"]
SHORT = ["generate", "--prompt", "Once upon a time", "--max-new-tokens", "32", "--json"]


def trace_of(capsys, *arguments: str) -> Trace:
    assert main([*SHORT, *arguments]) == 0
    return Trace.from_json(capsys.readouterr().out)


def test_greedy_text_is_the_same_for_every_draft(capsys):
    """none, ngram and the bundled draft: the same 32 ids, bit for bit; what differs is the number of rounds."""
    plain = trace_of(capsys, "--draft", "none")
    others = [trace_of(capsys, *draft) for draft in ([], ["--draft", "ngram"], ["-k", "1"], ["-k", "auto"])]
    assert plain.stats.rounds == len(plain.ids) == 32
    assert [other.ids for other in others] == [plain.ids] * 4
    assert [other.text for other in others] == [plain.text] * 4
    assert others[0].stats.accepted > 0
    assert others[0].stats.rounds < plain.stats.rounds


def test_match_says_the_same_with_any_draft(capsys):
    """A seed fixes the text at temperature 0.9, whatever drafts."""
    sampling = ["--temperature", "0.9", "--seed", "11", "--acceptance", "match"]
    runs = [trace_of(capsys, *sampling, "--draft", draft) for draft in ("none", "ngram", "specdec-draft-2x64")]
    assert len({run.ids for run in runs}) == 1


def test_json_says_what_was_in_force(capsys):
    """The pair, the settings, the seed that was drawn, memory; no note where nothing was changed."""
    trace = trace_of(capsys, "--top-k", "5", "--temperature", "0.5")
    assert (trace.started.target, trace.started.drafter) == ("specdec-target-8x384", "specdec-draft-2x128")
    assert trace.started.settings["params"]["top_k"] == 5
    assert trace.started.settings["acceptance"] == "rejection"
    assert trace.started.note == ""
    assert 1 < trace.measurements["peak_rss_mb"] < 100_000


def test_a_process_says_the_text_and_leaves_with_0():
    """What `main` does, `python -m specdec` does: text to one stream, figures to the other."""
    run = subprocess.run([*COMMAND, "--max-new-tokens", "16"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0
    assert "16 tokens in" in run.stderr
    data = subprocess.run(
        [*COMMAND, "--max-new-tokens", "16", "--json", "--threads", "1"], cwd=ROOT, capture_output=True, timeout=60
    )
    assert json.loads(data.stdout)["text"] == run.stdout


def test_a_reader_that_leaves_ends_it_quietly():
    """`| head -c 10`: no traceback, no complaint."""
    with subprocess.Popen(
        [*COMMAND, "--max-new-tokens", "400"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == b""


def on_a_terminal(*arguments: str, interrupt: bool = False, **environment: str) -> tuple[int, str]:
    """Status and output of a process on a pseudo-terminal, interrupted once it has said something if so wished."""
    ours, theirs = pty.openpty()
    variables = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"TERM": "xterm"}
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=ROOT,
        stdout=theirs,
        stderr=theirs,
        env=variables | environment,
        preexec_fn=heed_interrupts,
    )
    os.close(theirs)
    said = b""
    while chunk := _read(ours):
        said += chunk
        if interrupt and b" was" in said:
            process.send_signal(signal.SIGINT)
            interrupt = False
    os.close(ours)
    return process.wait(60), said.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # Linux says this where the other end is closed
        return b""


def test_a_terminal_gets_the_same_text_in_colours(capsys):
    """Without colours and rejected tokens it is the prompt and the text."""
    trace = trace_of(capsys)
    status, said = on_a_terminal("--max-new-tokens", "32")
    assert status == 0
    assert "\x1b[32m" in said
    assert f"Once upon a time{trace.text}\r\n" in readable(said)


def test_no_color_is_obeyed_on_a_terminal():
    """No escape sequence but the progress line's own."""
    status, said = on_a_terminal("--max-new-tokens", "8", NO_COLOR="1")
    assert status == 0
    assert said.replace("\r\x1b[K", "").count("\x1b") == 0


def test_ctrl_c_is_130_and_leaves_no_colour_behind():
    """No traceback, and every colour that was switched on was switched off again."""
    began = time.monotonic()
    status, said = on_a_terminal("--max-new-tokens", "480", "--ignore-eos", interrupt=True)
    assert status == 130, said[-1000:]
    assert time.monotonic() - began < 30
    assert "Traceback" not in said
    assert said.count("\x1b[0m") * 2 == said.replace("\r\x1b[K", "").count("\x1b[")


@pytest.mark.real
def test_a_real_model_gets_ngrams_by_default(capsys):
    """SmolLM2 does not speak the bundled draft's tokens: n-grams take over, and the run says so."""
    trace = trace_of(capsys, "--target", "smollm2-135m-instruct", "--max-new-tokens", "6", "--chat")
    assert trace.started.drafter == "ngram"
    assert "drafting with ngram" in trace.started.note
    assert len(trace.text) > 6
