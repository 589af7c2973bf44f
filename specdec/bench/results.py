"""All that a run of the suite found, as one JSON object and back."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Self, TypeVar, get_args, get_origin, get_type_hints

from specdec.bench.figures import Row
from specdec.bench.plan import Way, Work
from specdec.errors import RequestError

SCHEMA = 1
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Results:
    """What was measured, on what, by which command. `parameters`: weights of each model. `complete`: to the end."""

    command: str
    date: str
    commit: str | None
    machine: Mapping[str, Any]
    parameters: Mapping[str, int]
    notes: tuple[str, ...]
    rows: tuple[Row, ...]
    complete: bool

    def to_json(self) -> str:
        """The results as JSON text."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; RequestError where it is something else."""
        try:
            data = json.loads(text)
            if data["schema"] != SCHEMA:
                raise RequestError(f"these results have schema {data['schema']!r}, this program reads {SCHEMA}")
            return _build(cls, data)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if isinstance(error, RequestError):
                raise
            raise RequestError(f"these are not results of a benchmark: {error!r}"[:200]) from error

    def save(self, file: Path) -> None:
        """Write to a file, whole or not at all."""
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(file.name + ".new")
        new.write_text(self.to_json(), encoding="utf-8")
        new.replace(file)

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read from a file."""
        return cls.from_json(file.read_text(encoding="utf-8"))


def ratios(now: Results, earlier: Results) -> dict[tuple[str, Work, Way], float]:
    """Tokens per second over those of an earlier run, by suite, work and way, where both measured it."""
    before = {(row.suite, row.work, row.way): row.figures.tokens_per_second.median for row in earlier.rows}
    return {
        key: row.figures.tokens_per_second.median / before[key]
        for row in now.rows
        if before.get(key := (row.suite, row.work, row.way))
    }


def _build(kind: type[T], data: Any) -> T:
    """An instance of a dataclass from a JSON object; KeyError or TypeError where it does not fit."""
    hints, specs = get_type_hints(kind), fields(kind)  # type: ignore[arg-type]
    return kind(**{spec.name: _value(hints[spec.name], data[spec.name]) for spec in specs})


def _value(hint: Any, value: Any) -> Any:
    """A JSON value as the field's type; of `X | None` and `X | Literal` it is X that has parts to be built."""
    kind = get_args(hint)[0] if isinstance(hint, UnionType) else hint
    if value is None and kind is not hint:
        return None
    if is_dataclass(kind):
        return _build(kind, value)  # type: ignore[arg-type]
    if get_origin(kind) is tuple:
        return tuple(_value(get_args(kind)[0], item) for item in value)
    if kind is float and not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value
