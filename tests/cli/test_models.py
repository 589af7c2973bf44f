"""`models` and `fetch`: what is known, what is here."""

import json

import pytest

from specdec.checkpoints import DEFAULT_DRAFT, DEFAULT_TARGET, known_models
from specdec.cli import main
from specdec.cli.models import table
from specdec.cli.progress import ProgressLine
from tests.cli.conftest import Terminal


def test_the_table_has_every_model(capsys):
    """A line each, with size and licence; bundled ones are here."""
    assert main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line for line in lines[2:]}
    assert list(rows) == [model.name for model in known_models()]
    assert all(model.licence in rows[model.name] for model in known_models())
    assert "bundled" in rows[DEFAULT_TARGET]
    assert "bundled" in rows[DEFAULT_DRAFT]


def test_json_has_every_model(capsys):
    """An array of objects with the same facts, in bytes and numbers."""
    assert main(["models", "--json"]) == 0
    models = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    for model in known_models():
        entry = models[model.name]
        assert (entry["parameters"], entry["size"], entry["licence"]) == (model.parameters, model.size, model.licence)
        assert entry["path"] == (None if model.path is None else str(model.path))


def test_fetch_prints_where_a_model_lies(capsys):
    """A bundled one is here already."""
    assert main(["fetch", DEFAULT_TARGET]) == 0
    output = capsys.readouterr()
    assert output.out.strip().endswith(DEFAULT_TARGET)
    assert output.err == ""


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "https://example.org/x", "no-such-model", "a/b/c", "\x1b[2J"])
def test_fetch_takes_names_only(name, capsys):
    """Paths, URLs and unknown names: one harmless sentence, status 1."""
    assert main(["fetch", name]) == 1
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert "\x1b" not in output.err


def test_columns_are_as_wide_as_they_must_be():
    """Numbers to the right, text to the left, nothing behind the last column."""
    rows = [("name", "n", "size"), ("a", "1", "10 MB"), ("longer", "23", "?")]
    assert table(rows).splitlines() == [
        "name     n   size",
        "──────  ──  ─────",
        "a        1  10 MB",
        "longer  23      ?",
    ]


def test_progress_is_one_line_that_goes_away():
    """Rewritten in place, at its end at the latest, and cleared."""
    stream = Terminal()
    with ProgressLine(stream, "B") as line:
        for done in range(101):
            line.show("model\x1b[2J", done * 1_000_000, 100_000_000)
    said = stream.getvalue()
    assert "100% of 100.0 MB" in said
    assert said.endswith("\r\x1b[K")
    assert said.count("\r") < 50
    assert "\n" not in said
    assert "\x1b[2J" not in said


def test_progress_is_silent_where_nobody_watches(capsys):
    """No terminal, no bar; nothing to do is 100 %."""
    stream = Terminal()
    with ProgressLine(stream) as line:
        line.show("nothing", 0, 0)
    assert "100%" in stream.getvalue()
    import sys

    with ProgressLine(sys.stderr) as line:
        line.show("model", 1, 2)
    assert capsys.readouterr().err == ""
