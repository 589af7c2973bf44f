"""What the documentation says of the program is what the program says of itself."""

import re
import runpy
import shlex
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from specdec.cli.options import parse
from specdec.settings import Settings
from specdec.telemetry.names import METRICS
from specdec.training.cli import build_parser as training_parser
from tests.source_tree import ROOT, repository_files

PAGES = [path for path in repository_files() if path.suffix == ".md" and "models" not in path.parts]
DOCS = runpy.run_path(str(ROOT / "scripts" / "docs.py"))
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)[^)]*\)")


def lines_with(command: str) -> list[str]:
    """Lines of code in the documentation that call a command, as a shell would read them."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAGES).replace("\\\n", " ")
    return sorted({line.strip() for line in text.splitlines() if re.match(rf"\s*(\S*/)?{command} ", line)})


def test_the_page_on_the_command_line_is_fresh():
    """docs/cli.md is what `python scripts/docs.py` makes of the program's help."""
    assert DOCS["CLI_PAGE"].read_text(encoding="utf-8") == DOCS["cli_page"]()


def test_the_table_of_metrics_is_fresh():
    """docs/telemetry.md lists the metrics of `specdec.telemetry.names`, each in a row."""
    page = DOCS["TELEMETRY_PAGE"].read_text(encoding="utf-8")
    assert page == DOCS["telemetry_page"]()
    assert [page.count(f"`{metric.name}`, `{metric.prometheus}` |") for metric in METRICS] == [1] * len(METRICS)


def test_the_table_of_settings_is_fresh():
    """docs/hosting.md lists every setting with its defaults, and none without a meaning."""
    page = DOCS["HOSTING_PAGE"].read_text(encoding="utf-8")
    assert page == DOCS["hosting_page"]()
    names = [f"SPECDEC_{spec.name.upper()}" for spec in fields(Settings)]
    assert [page.count(f"| `{name}` |") for name in names] == [1] * len(names)


def test_every_option_is_on_the_page():
    """And each option has a help text."""
    page = DOCS["CLI_PAGE"].read_text(encoding="utf-8")
    actions = [action for parser in DOCS["commands"]() for action in parser._actions]
    options = {option for action in actions for option in action.option_strings} - {"-h", "--help"}
    assert {option for option in options if f"`{option}" not in page} == set()
    assert [action.dest for action in actions if not action.help] == []


def test_the_readmes_example_prints_what_it_says():
    """Run as it stands there, with the bundled models."""
    assert DOCS["example_output"]() == DOCS["example"]()[1]


def test_commands_in_the_documentation_are_understood():
    """Every `python -m specdec …` in a page parses."""
    calls = [shlex.split(line, comments=True) for line in lines_with("python -m specdec")]
    assert len(calls) >= 5
    for call in calls:
        arguments = call[call.index("specdec") + 1 :]
        end = next((at for at, word in enumerate(arguments) if word in (">", "|")), len(arguments))
        if arguments[0] == "train":
            assert training_parser().parse_args(arguments[1:end]).command
        else:
            assert parse(arguments[:end]).command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_files_lead_somewhere(page: Path):
    """Every relative link names a file or folder of the repository."""
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_pages_are_short():
    """README at most 200 lines, each decision at most 40."""
    for page in PAGES:
        lines = len(page.read_text(encoding="utf-8").splitlines())
        assert lines <= (200 if page.name == "README.md" else 40 if page.parent.name == "decisions" else 400), page


def test_requirements_are_the_extras_of_the_demo():
    """requirements.txt asks for the same versions as `pyproject.toml` does for the models and the page."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    asked = {line.partition("#")[0].strip() for line in text.splitlines()} - {""}
    numpy = {line for line in asked if line.startswith("numpy")}
    assert len(numpy) == len(project["dependencies"]) == 1
    assert asked - numpy == {*extras["models"], *extras["demo"]} - {"specdec[models]"}
