"""`generate` over a service of toys: what is written where, and how it ends."""

import json
import sys
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper

import pytest

from specdec.cli.generate import MAX_PROMPT_BYTES
from specdec.serving import Service
from specdec.trace import Trace
from tests.cli.conftest import Terminal

COUNTING = " one two three four five six seven"


def run(toys, *arguments: str) -> int:
    return toys(["generate", "--max-new-tokens", "7", *arguments])


def test_plain_output_is_the_text_and_nothing_else(toys, capsys):
    """Not a byte more on standard output; figures on standard error."""
    assert run(toys, "--prompt", "zero") == 0
    output = capsys.readouterr()
    assert output.out == COUNTING
    assert "7 tokens in" in output.err
    assert "acceptance rate" in output.err
    assert "\x1b" not in output.err


def test_a_terminal_gets_colours(toys):
    """Accepted tokens green, rejected ones struck through, the prompt before them, a line end after them."""
    with redirect_stdout(Terminal()) as terminal:
        assert run(toys, "--prompt", "zero") == 0
    said = terminal.getvalue()
    assert said.startswith("\x1b[2mzero\x1b[0m")
    assert "\x1b[32m three\x1b[0m" in said
    assert "\x1b[31;9m" in said
    assert said.endswith("\n")


def test_no_color_keeps_a_terminal_plain(toys, monkeypatch):
    """NO_COLOR: the text and a line end."""
    monkeypatch.setenv("NO_COLOR", "1")
    with redirect_stdout(Terminal()) as terminal:
        assert run(toys, "--prompt", "zero") == 0
    assert terminal.getvalue() == COUNTING + "\n"


def test_json_is_one_trace(toys, capsys):
    """One line of JSON that reads back, with figures, memory and the settings in force; nothing on standard error."""
    assert run(toys, "--prompt", "zero", "--json", "-k", "2", "--seed", "5") == 0
    output = capsys.readouterr()
    trace = Trace.from_json(output.out)
    data = json.loads(output.out)
    assert trace.text == COUNTING
    assert data["stats"]["peak_rss_mb"] > 1
    assert data["stats"]["wall_s"] > 0
    assert data["settings"]["lookahead"] == 2
    assert trace.started.seed == 5
    assert (output.out.count("\n"), output.err) == (1, "")
    assert output.out.isascii()


@pytest.mark.parametrize("draft", ["none", "ngram", "draft", "model"])
def test_the_text_is_the_targets_whatever_drafts(toys, capsys, draft):
    """Greedy text is the same for every drafter."""
    assert run(toys, "--prompt", "zero", "--draft", draft) == 0
    assert capsys.readouterr().out == COUNTING


def test_a_default_draft_that_does_not_fit_gives_way_to_ngrams(toys, capsys):
    """Nobody asked for that draft: the run goes on with n-grams, and says so."""
    assert run(toys, "--prompt", "zero", "--target", "foreign") == 0
    output = capsys.readouterr()
    assert output.out == COUNTING.upper()
    assert "does not have the vocabulary of foreign: drafting with ngram" in output.err
    assert run(toys, "--prompt", "zero", "--target", "foreign", "--json") == 0
    assert "drafting with ngram" in Trace.from_json(capsys.readouterr().out).started.note


def test_a_draft_that_was_asked_for_must_fit(toys, capsys):
    """Asked for by name and unfit: one sentence, status 1."""
    assert run(toys, "--prompt", "zero", "--target", "foreign", "--draft", "draft") == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("specdec: ")
    assert output.err.count("\n") == 1


def test_stop_ends_before_its_text(toys, capsys):
    """Several --stop options, the first to be complete counts."""
    assert run(toys, "--prompt", "zero", "--stop", "six", "--stop", " four") == 0
    output = capsys.readouterr()
    assert output.out == " one two three"
    assert "ended: stop" in output.err


def test_no_tokens_is_no_text(toys, capsys):
    """--max-new-tokens 0 is legal, and its figures divide by nothing."""
    assert toys(["generate", "--prompt", "zero", "--max-new-tokens", "0"]) == 0
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("0 tokens in 0 rounds · 0.0 tokens/s")


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_prompts_come_from_standard_input_and_files(toys, capsys, monkeypatch, tmp_path, ending):
    """`-` and --prompt-file; one line end at the end is no part of the prompt."""
    data = f"word #3{ending}".encode()
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(data)))
    assert run(toys, "--prompt", "-") == 0
    path = tmp_path / "prompt.txt"
    path.write_bytes(data)
    assert run(toys, "--prompt-file", str(path)) == 0
    assert capsys.readouterr().out == " four five six seven" + "zero one two" + " four five six seven" + "zero one two"


@pytest.mark.parametrize(
    "data, said", [(b"caf\xe9", "not UTF-8"), (b"x" * (MAX_PROMPT_BYTES + 1), "longer than 10,000,000 bytes")]
)
def test_prompts_that_are_no_text_are_refused(toys, capsys, tmp_path, data, said):
    """One sentence, status 1."""
    path = tmp_path / "prompt.txt"
    path.write_bytes(data)
    assert run(toys, "--prompt-file", str(path)) == 1
    assert said in capsys.readouterr().err


def test_missing_prompt_file_is_one_sentence(toys, capsys, tmp_path):
    """Named, status 1; escape sequences in its name do not reach the terminal."""
    assert run(toys, "--prompt-file", str(tmp_path / "no\x1b[2Jthing")) == 1
    said = capsys.readouterr().err
    assert "No such file" in said
    assert "\x1b" not in said


def test_chat_needs_a_template(toys, capsys):
    """A target without one: a sentence that says what to do."""
    assert run(toys, "--prompt", "zero", "--chat") == 1
    assert "switch chat off" in capsys.readouterr().err


def test_unknown_models_are_one_sentence(capsys):
    """Status 1, no traceback, and what is known."""
    from specdec.cli import main

    assert main(["generate", "--prompt", "a", "--target", "no-such-model"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert "no model is called 'no-such-model'" in output.err
    assert output.err.count("\n") == 1


@pytest.mark.parametrize(
    "error, status", [(KeyboardInterrupt(), 130), (MemoryError(), 1), (OSError(28, "No space left on device"), 1)]
)
def test_how_a_run_can_end(toys, capsys, monkeypatch, error, status):
    """Ctrl-C is 130 without a word; memory and disk are sentences."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Service, "stream", fail)
    assert run(toys, "--prompt", "zero") == status
    assert capsys.readouterr().err.count("\n") == (0 if status == 130 else 1)


def test_faults_of_the_program_are_not_hidden(toys, monkeypatch):
    """An error nobody raised on purpose keeps its traceback."""

    def fail(*_: object) -> None:
        raise KeyError("bug")

    monkeypatch.setattr(Service, "stream", fail)
    with pytest.raises(KeyError):
        run(toys, "--prompt", "zero")
