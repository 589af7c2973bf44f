"""The command line answers plainly, also where something is missing."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from specdec.training import main
from specdec.training.export import load_network
from tests.training.toys import write_corpus

WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; from specdec.training import main; sys.exit(main({argv!r}))"


def run_without_torch(argv: list[str]) -> subprocess.CompletedProcess[str]:
    """A fresh Python in which `import torch` fails as if it were not installed."""
    code = WITHOUT_TORCH.format(argv=argv)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_missing_torch_is_one_sentence() -> None:
    """Without PyTorch a command ends with 1 and one line that holds the pip command, and no traceback."""
    done = run_without_torch(["export", "x", "--out", "y"])
    assert done.returncode == 1
    assert done.stderr == "error: torch is not installed: run pip install '.[training]' in the project's folder\n"


def test_help_needs_no_torch() -> None:
    """The commands can be read about before anything is installed."""
    done = run_without_torch(["model", "--help"])
    assert done.returncode == 0
    assert "--lessons" in done.stdout


def test_a_missing_corpus_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not there ends with 1 and its name."""
    assert main(["tokenizer", "--corpus", str(tmp_path / "none.txt"), "--runs", str(tmp_path)]) == 1
    assert "none.txt" in capsys.readouterr().err


def test_odd_settings_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A shape whose heads do not divide is an error with both numbers, before any training."""
    common = ["--corpus", str(write_corpus(tmp_path)), "--runs", str(tmp_path), "--held-out-every", "10"]
    assert main(["tokenizer", *common, "--vocab-size", "300"]) == 0
    assert main(["model", "x", *common, "--steps", "1", "--heads", "4", "--kv-heads", "3"]) == 1
    assert "num_attention_heads 4 must be a multiple of num_key_value_heads 3" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_pair_from_text_to_measures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tokenizer, target, distilled draft, export and evaluation work one after the other from the command line."""
    common = ["--corpus", str(write_corpus(tmp_path)), "--held-out-every", "10"]
    runs = ["--runs", str(tmp_path / "runs")]
    small = ["--layers", "1", "--hidden", "16", "--intermediate", "24", "--heads", "2", "--kv-heads", "2"]
    length = ["--context", "32", "--batch", "4", "--steps", "8", "--evaluate-every", "4", "--seed", "1"]
    target, draft = str(tmp_path / "target"), str(tmp_path / "draft")
    assert main(["tokenizer", *common, *runs, "--vocab-size", "300"]) == 0
    assert main(["model", "t", *common, *runs, *small, *length]) == 0
    assert main(["export", "t", *runs, "--out", target]) == 0
    assert main(["model", "d", *common, *runs, *small, *length, "--lessons", target]) == 1
    assert "train teach" in capsys.readouterr().err
    assert main(["teach", target, *common, *runs, "--own-windows", "5", "--text-windows", "9"]) == 0
    assert main(["model", "d", *common, *runs, *small, *length, "--lessons", target]) == 0
    assert main(["export", "d", *runs, "--out", draft]) == 0
    assert main(["evaluate", draft, *common, "--target", target]) == 0
    printed = capsys.readouterr().out
    assert "perplexity" in printed
    assert "expected acceptance 0." in printed
    assert "accept" in (tmp_path / "draft" / "README.md").read_text(encoding="utf-8")
    assert "9 windows of the text and 5 that the target wrote itself" in (tmp_path / "draft" / "README.md").read_text()


def test_a_run_begins_where_another_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--initial` takes over an exported model's weights; the card tells of both; another shape is refused."""
    common = ["--corpus", str(write_corpus(tmp_path)), "--held-out-every", "10", "--runs", str(tmp_path / "runs")]
    small = ["--layers", "1", "--hidden", "16", "--intermediate", "24", "--heads", "2", "--kv-heads", "2"]
    length = ["--context", "32", "--batch", "4", "--evaluate-every", "4"]
    first, second = tmp_path / "first", tmp_path / "second"
    assert main(["tokenizer", *common, "--vocab-size", "300"]) == 0
    assert main(["model", "a", *common, *small, *length, "--steps", "12"]) == 0
    assert main(["export", "a", *common[-2:], "--out", str(first)]) == 0
    begin = ["--steps", "1", "--learning-rate", "0", "--initial", str(first)]
    assert main(["model", "b", *common, *small, *length, *begin]) == 0
    assert main(["export", "b", *common[-2:], "--out", str(second)]) == 0
    before, after = (load_network(folder).state_dict() for folder in (first, second))
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert (second / "README.md").read_text(encoding="utf-8").count("python -m specdec train model") == 2
    assert main(["model", "c", *common, *length, *begin]) == 1
    assert "has another shape than the run" in capsys.readouterr().err
