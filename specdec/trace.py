"""A finished run as one JSON object and back, so that what was shown live can be shown again.

Reading is strict: a trace comes from a stranger's file, so that every field is checked for its type and none is
believed beyond that.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import cached_property
from types import UnionType
from typing import Any, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

from specdec.errors import RequestError
from specdec.records import Candidate, Finished, FinishReason, Proposal, Record, Round, Started, Token
from specdec.stats import Stats

T = TypeVar("T")
_HINTS: dict[type, dict[str, Any]] = {
    kind: get_type_hints(kind) for kind in (Started, Round, Finished, Token, Proposal, Candidate)
}
_SELDOM = {"top", "target_top", "draft_top", "cached_tokens", "paused"}  # not written where they are empty


@dataclass(frozen=True)
class Trace:
    """A whole run, to and from JSON: what a reader shows live it can show again from here."""

    started: Started
    rounds: tuple[Round, ...]
    finished: Finished
    measurements: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def collect(cls, records: Iterable[Record], measurements: Mapping[str, float] | None = None) -> Self:
        """Gather a finished run's records; ValueError where Started or Finished is missing."""
        kept = list(records)
        if len(kept) < 2 or not isinstance(kept[0], Started) or not isinstance(kept[-1], Finished):
            raise ValueError("a trace needs a run from Started to Finished")
        rounds = tuple(record for record in kept if isinstance(record, Round))
        return cls(kept[0], rounds, kept[-1], measurements or {})

    @cached_property
    def stats(self) -> Stats:
        """The statistics of the run."""
        return Stats.of(self.records)

    @property
    def records(self) -> tuple[Record, ...]:
        """The run as it was streamed."""
        return (self.started, *self.rounds, self.finished)

    @property
    def text(self) -> str:
        """What the run said."""
        return self.finished.text

    @property
    def ids(self) -> tuple[int, ...]:
        """The tokens it said it with."""
        return self.finished.ids

    @property
    def finish_reason(self) -> FinishReason:
        """Why it ended."""
        return self.finished.reason

    def to_dict(self) -> dict[str, Any]:
        """The trace as plain JSON values; `stats` is derived and ignored on the way back."""
        started, finished = asdict(self.started), asdict(self.finished)
        return {
            "text": finished.pop("text"),
            "prompt_ids": list(started.pop("prompt_ids")),
            "ids": list(finished.pop("ids")),
            "finish_reason": finished.pop("reason"),
            "tail": finished.pop("tail"),
            "stats": dict(self.measurements) | self.stats.to_dict(),
            "measurements": dict(self.measurements),
            **started,
            "rounds": [_plain(step) for step in self.rounds],
        }

    def to_json(self, indent: int | None = None) -> str:
        """The trace as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; RequestError naming the field where it is something else."""
        data = _parsed(text)
        if not isinstance(data, dict):
            raise RequestError("this is not a trace: it must be one JSON object")
        started = _build(Started, data, "trace")
        rounds = tuple(_build(Round, step, f"rounds[{i}]") for i, step in enumerate(_list(data, "rounds")))
        renamed = data | {"reason": data.get("finish_reason")}
        return cls(started, rounds, _build(Finished, renamed, "trace"), _numbers(data.get("measurements", {})))


def _plain(value: Any) -> Any:
    """A round, or what is in one, as JSON values. A run has thousands: `asdict` would copy each of them deeply."""
    if isinstance(value, tuple):
        return [_plain(element) for element in value]
    if type(value) not in _HINTS:
        return value
    named = ((name, getattr(value, name)) for name in _HINTS[type(value)])
    return {name: _plain(item) for name, item in named if item or name not in _SELDOM}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except RequestError:
        raise
    except json.JSONDecodeError as error:
        raise RequestError(f"this is not a trace: {error}") from error
    except RecursionError as error:
        raise RequestError("this is not a trace: it is nested too deeply") from error
    except ValueError as error:  # Python reads integers of so many digits only where it is told to
        raise RequestError("this is not a trace: a number in it has too many digits") from error


def _refuse(constant: str) -> None:
    raise RequestError(f"this is not a trace: JSON has no {constant}")


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    value = data.get(name)
    if not isinstance(value, list):
        raise RequestError(f"this is not a trace: {name} must be a list")
    return value


def _numbers(value: Any) -> dict[str, float]:
    if not isinstance(value, dict) or not all(_is(number, float) for number in value.values()):
        raise RequestError("this is not a trace: measurements must be numbers")
    return value


def _build(kind: type[T], data: Any, where: str) -> T:
    """An instance of a record class from a JSON object, every field checked against its annotation."""
    if not isinstance(data, dict):
        raise RequestError(f"this is not a trace: {where} must be an object")
    hints, specs = _HINTS[kind], fields(kind)  # type: ignore[arg-type]
    missing = [spec.name for spec in specs if spec.name not in data and spec.default is MISSING]
    if missing:
        raise RequestError(f"this is not a trace: {where} has no {', '.join(missing)}")
    values = {
        spec.name: _value(hints[spec.name], data[spec.name], f"{where}.{spec.name}")
        for spec in specs
        if spec.name in data
    }
    return kind(**values)


def _value(hint: Any, value: Any, where: str) -> Any:
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        if not isinstance(value, list):
            raise RequestError(f"this is not a trace: {where} must be a list")
        return tuple(_value(item, element, f"{where}[{i}]") for i, element in enumerate(value))
    if hint in _HINTS:
        return _build(hint, value, where)
    if not _is(value, hint):
        raise RequestError(f"this is not a trace: {where} has an unexpected value")
    return value


def _is(value: Any, hint: Any) -> bool:
    """Whether a JSON value is of an annotated type; an int passes for a float, a bool for neither, 1e999 for none."""
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin is UnionType or type(None) in get_args(hint):
        return any(_is(value, option) for option in get_args(hint))
    if origin is Mapping:
        return isinstance(value, dict)
    if hint is type(None):
        return value is None
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return isinstance(value, hint) and not (hint is int and isinstance(value, bool))
