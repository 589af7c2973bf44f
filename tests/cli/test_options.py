"""Arguments become settings, or one sentence and status 2."""

import dataclasses
import os
import subprocess
import sys
from contextlib import closing

import pytest

from specdec.cli.options import parse
from specdec.config import SamplingParams, SpeculativeConfig
from specdec.threads import VARIABLES as THREAD_VARIABLES
from tests.serving.toys import toy
from tests.source_tree import ROOT

MINIMAL = ["generate", "--prompt", "Once"]


def test_defaults_are_the_engines():
    """Nothing said: greedy, 128 tokens, the drafter's own lookahead."""
    options = parse(MINIMAL)
    assert options.params == SamplingParams()
    assert options.speculation == SpeculativeConfig()
    assert (options.target, options.draft, options.threads) == (None, None, None)


@pytest.mark.parametrize(
    "arguments, field, value",
    [
        (["--temperature", "0.5"], "temperature", 0.5),
        (["--top-k", "7"], "top_k", 7),
        (["--top-p", "0.9"], "top_p", 0.9),
        (["--min-p", "0.1"], "min_p", 0.1),
        (["--repetition-penalty", "1.1"], "repetition_penalty", 1.1),
        (["--frequency-penalty", "-0.5"], "frequency_penalty", -0.5),
        (["--presence-penalty", "0.5"], "presence_penalty", 0.5),
        (["--seed", "3"], "seed", 3),
        (["--max-new-tokens", "0"], "max_tokens", 0),
        (["--stop", "a", "--stop", "-b"], "stop", ("a", "-b")),
        (["--ignore-eos"], "ignore_eos", True),
    ],
)
def test_each_option_sets_its_field(arguments, field, value):
    """The field of that name, and no other."""
    arguments = [f"--stop={text}" for text in value] if field == "stop" else arguments
    assert parse([*MINIMAL, *arguments]).params == dataclasses.replace(SamplingParams(), **{field: value})


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["-k", "0"], SpeculativeConfig(0)),
        (["-k", "15"], SpeculativeConfig(15)),
        (["-k", "auto"], SpeculativeConfig("auto")),
        (["--acceptance", "match"], SpeculativeConfig(acceptance="match")),
        (["--no-exact"], SpeculativeConfig(exact=False)),
    ],
)
def test_speculation_options(arguments, expected):
    """-k, --acceptance, --no-exact."""
    assert parse([*MINIMAL, *arguments]).speculation == expected


@pytest.mark.parametrize(
    "arguments, said",
    [
        ([], "COMMAND"),
        (["dance"], "dance"),
        (["generate"], "--prompt"),
        (["generate", "--prompt", "a", "--prompt-file", "b"], "not allowed with"),
        ([*MINIMAL, "-k", "16"], "num_speculative_tokens must lie between 0 and 15"),
        ([*MINIMAL, "-k", "-1"], "num_speculative_tokens"),
        ([*MINIMAL, "-k", "4.0"], "neither a whole number nor auto"),
        ([*MINIMAL, "--acceptance", "typical"], "typical"),
        ([*MINIMAL, "--temperature", "nan"], "temperature must be a finite number"),
        ([*MINIMAL, "--temperature", "hot"], "hot"),
        ([*MINIMAL, "--top-p", "1.5"], "top_p must lie between 0 and 1"),
        ([*MINIMAL, "--top-k", "1.5"], "1.5"),
        ([*MINIMAL, "--max-new-tokens", "-1"], "max_tokens"),
        ([*MINIMAL, "--seed", "-1"], "seed"),
        ([*MINIMAL, "--stop", ""], "stop string"),
        ([*MINIMAL, "--threads", "0"], "whole number between 1 and 1024"),
        ([*MINIMAL, "--threads", "many"], "whole number between 1 and 1024"),
        ([*MINIMAL, "--threads", "²"], "whole number between 1 and 1024"),
        ([*MINIMAL, "--temperatura", "1"], "--temperatura"),
        (["fetch"], "name"),
        (["models", "extra"], "extra"),
    ],
)
def test_wrong_arguments_are_one_sentence_and_status_2(arguments, said, capsys):
    """The sentence names what is wrong and where help is; nothing is loaded."""
    with pytest.raises(SystemExit) as caught:
        parse(arguments)
    output = capsys.readouterr()
    assert caught.value.code == 2
    assert output.out == ""
    assert said in output.err
    assert output.err.endswith("--help\n")
    assert output.err.count("\n") == 1


@pytest.mark.parametrize("command", [[], ["generate"], ["models"], ["fetch"]])
def test_every_command_has_help(command, capsys, monkeypatch):
    """Status 0, and every line within 100 columns where the terminal has so many."""
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as caught:
        parse([*command, "--help"])
    text = capsys.readouterr().out
    assert caught.value.code == 0
    assert text.startswith("usage: python -m specdec")
    assert max(map(len, text.splitlines())) <= 100


def test_numpy_waits_until_blas_is_told_its_number_of_threads():
    """BLAS reads it when NumPy is imported: one thread, where the user's environment does not say otherwise."""
    code = (
        "import os, sys\n"
        "from specdec.cli import main, options\n"
        "options.parse(['generate', '--prompt', 'a'])\n"
        "early = 'numpy' in sys.modules\n"
        "status = main(['generate', '--prompt', 'a', '--target', './nowhere', '--threads', '3'])\n"
        f"print(early, 'numpy' in sys.modules, status, *[os.environ[name] for name in {THREAD_VARIABLES!r}])\n"
    )
    environment = {key: value for key, value in os.environ.items() if key not in THREAD_VARIABLES}
    for told, heard in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")):
        run = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=environment | told, capture_output=True, text=True, timeout=60
        )
        others = ["1"] * (len(THREAD_VARIABLES) - 1)
        assert run.stdout.split() == ["False", "True", "1", heard, *others], run.stderr


def test_threads_reach_the_models(monkeypatch):
    """--threads N is the number of cores that a model splits its products over."""
    from specdec.cli import generate

    seen = []
    monkeypatch.setattr(
        generate, "load_model", lambda name, threads, progress: seen.append((name, threads)) or toy(name)
    )
    options = parse([*MINIMAL, "--threads", "3"])
    with closing(generate.start(generate.open_service(options.threads), options, "zero")) as records:
        assert next(records).target == "specdec-target-8x384"
    assert seen == [("specdec-target-8x384", 3), ("specdec-draft-2x128", 3)]


@pytest.mark.parametrize(
    ("redirection", "status"),
    [("--prompt Once --max-new-tokens 2 >&-", 0), ("--prompt - <&-", 1), ("--prompt Once --max-new-tokens 2 2>&-", 0)],
)
def test_closed_streams_are_no_traceback(redirection: str, status: int) -> None:
    """A shell may close standard input, output or error: output goes to nowhere, a missing prompt is one sentence."""
    command = f"{sys.executable} -m specdec generate {redirection}"
    run = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert run.returncode == status
    assert "Traceback" not in run.stderr
    if status:
        assert run.stderr == "specdec: there is no standard input to read the prompt from\n"
