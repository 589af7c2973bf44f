"""A run as `POST /generate` tells it: `started`, for each round a `round` and its `token`s, then `done`; or `error`."""

from collections.abc import AsyncGenerator, Iterator
from dataclasses import asdict
from typing import Any

from specdec.records import Finished, Record, Round, Started
from specdec.serving.http.failing import ending_well
from specdec.serving.http.running import Run
from specdec.serving.http.usage import usage
from specdec.serving.http.wire import event
from specdec.stats import Stats


@ending_well("error")
async def events(run: Run, model: str) -> AsyncGenerator[bytes, None]:
    """The run's events in bytes."""
    records: list[Record] = []
    async for record in run:
        records.append(record)
        for name, value in describe(record, model, records):
            yield event(value, name)


def describe(record: Record, model: str, records: list[Record]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A record as named events; `records` are all so far, this one included."""
    if isinstance(record, Started):
        yield "started", _started(record, model)
    elif isinstance(record, Round):
        step = asdict(record)
        tokens = step.pop("tokens")
        yield "round", step
        for token in tokens:
            yield "token", token
    else:
        yield "done", _done(record, records)


def _started(record: Started, model: str) -> dict[str, Any]:
    settings = {name: value for name, value in record.settings.items() if name != "prompt"}
    return {
        "model": model,
        "draft": record.drafter,
        "prompt_tokens": len(record.prompt_ids),
        "seed": record.seed,
        "exactness": record.exactness,
        "note": record.note,
        "breaker": record.breaker,
        "settings": settings,
    }


def _done(end: Finished, records: list[Record]) -> dict[str, Any]:
    started, stats = records[0], Stats.of(records)
    return {
        "finish_reason": end.reason,
        "text": end.text,
        "tail": end.tail,
        "usage": usage(records, started) if isinstance(started, Started) else None,
        "stats": stats.to_dict(),
    }
