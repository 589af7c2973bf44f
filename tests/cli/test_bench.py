"""`bench` from the command line."""

import json

import pytest

from specdec.bench.plan import FULL, QUICK, SUITES
from specdec.cli import main
from specdec.cli.options import parse


def test_a_minimal_selection_is_measured(tmp_path, capsys):
    """The bundled pair, k = 2 beside plain decoding, 16 tokens, once: a table, results.json, report.html."""
    out = tmp_path / "out"
    asked = ["bench", "--quick", "--suite", "k", "-k", "0", "2", "--tokens", "16", "--repeat", "1", "--prompts", "1"]
    assert main([*asked, "--out", str(out)]) == 0
    data = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert data["complete"]
    assert data["command"].startswith("python -m specdec bench --quick --suite k -k 0 2")
    assert [row["way"]["k"] for row in data["rows"]] == [0, 0, 2]
    assert all(row["figures"]["same_text"] for row in data["rows"] if row["way"]["exact"])
    assert (out / "report.html").stat().st_size > 1_000_000
    printed = capsys.readouterr()
    assert "tokens/s" in printed.out
    assert "\x1b" not in printed.out + printed.err


def test_options_become_a_scope():
    """Left alone it is everything; --quick less of it; what is said counts in both."""
    assert parse(["bench"]).scope == FULL
    assert parse(["bench", "--quick"]).scope == QUICK
    scope = parse(["bench", "--quick", "-k", "0", "auto", "5", "--suite", "k", "--tokens", "7", "--peers"]).scope
    assert (scope.ks, scope.k, scope.suites, scope.tokens) == ((0, "auto", 5), 5, ("k", "peers"), 7)
    assert parse(["bench", "--suite", *SUITES]).scope.suites == SUITES


@pytest.mark.parametrize(
    "arguments",
    [["-k", "16"], ["-k", "x"], ["--tokens", "0"], ["--temperature", "-1"], ["--suite", "all"], ["--lengths", "0"]],
)
def test_what_cannot_be_meant_is_one_sentence(arguments, capsys):
    """Status 2, before anything is measured."""
    with pytest.raises(SystemExit) as left:
        main(["bench", *arguments])
    assert left.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_unknown_model_is_one_sentence(tmp_path, capsys):
    """Status 1, and nothing is written."""
    assert main(["bench", "--target", "no-such-model", "--suite", "k", "--out", str(tmp_path / "out")]) == 1
    assert "no model is called" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
