"""`models` and `fetch`: what can be named, what is here, and how to get the rest."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from specdec.checkpoints import ModelInfo, fetch, known_models
from specdec.cli.progress import ProgressLine

HEADINGS = ("name", "parameters", "size", "use as", "licence", "where")
NUMBERS = (1, 2)


def list_models(*, as_json: bool) -> None:
    """Print the models that the project knows by name."""
    models = known_models()
    if as_json:
        print(json.dumps([_entry(model) for model in models], indent=2))
    else:
        print(table([HEADINGS, *map(_row, models)]))


def fetch_model(name: str) -> None:
    """Download a model, and print where it lies."""
    with ProgressLine(sys.stderr, "B") as line:
        path = fetch(name, line.show)
    print(path)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns as wide as they must be, the first row as headings."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    ruled = [rows[0], ["─" * width for width in widths], *rows[1:]]
    return "\n".join("  ".join(map(_cell, range(len(widths)), row, widths)).rstrip() for row in ruled)


def _cell(column: int, text: str, width: int) -> str:
    return text.rjust(width) if column in NUMBERS else text.ljust(width)


def _row(model: ModelInfo) -> tuple[str, ...]:
    where = "bundled" if model.kind == "bundled" else "here" if model.path else "to be fetched"
    if model.kind == "bundled" and model.path is None:
        where = "missing"
    return (model.name, _millions(model.parameters), _millions(model.size, "B"), model.role, model.licence, where)


def _millions(count: int, unit: str = "") -> str:
    return f"{count / 1e6:,.1f} M{unit}" if count else "?"


def _entry(model: ModelInfo) -> dict[str, object]:
    return asdict(model) | {"path": None if model.path is None else str(model.path)}
