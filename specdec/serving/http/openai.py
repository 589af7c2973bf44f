"""A run as OpenAI's clients want it: one object, or a stream of chunks that ends with `[DONE]`."""

import secrets
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from specdec.records import Finished, Record, Round, Started
from specdec.serving.http.errors import shutting_down
from specdec.serving.http.failing import ending_well
from specdec.serving.http.running import Run
from specdec.serving.http.shapes import Said, Shape
from specdec.serving.http.usage import usage
from specdec.serving.http.wire import DONE, event


@dataclass(frozen=True, slots=True)
class Envelope:
    """What an answer's object, or all of its chunks, have in common."""

    shape: Shape
    model: str
    serial: str = field(default_factory=lambda: secrets.token_hex(12))
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, choice: dict[str, Any], **more: Any) -> dict[str, Any]:
        """The one object of an answer that is not streamed."""
        return self._around(self.shape.whole, [choice], more)

    def chunk(self, *choices: dict[str, Any], **more: Any) -> bytes:
        """One event of an answer that is."""
        return event(self._around(self.shape.chunk, list(choices), more))

    def _around(self, kind: str, choices: list[dict[str, Any]], more: dict[str, Any]) -> dict[str, Any]:
        names = {"id": self.shape.prefix + self.serial, "object": kind, "created": self.created, "model": self.model}
        return names | {"system_fingerprint": None, "choices": choices} | more


async def whole(run: Run, shape: Shape, model: str) -> dict[str, Any]:
    """The answer, once it is complete; ApiError where the server ends before."""
    records = [record async for record in run]
    started, end = _ends(records)
    steps = [record for record in records if isinstance(record, Round)]
    choice = shape.answer(Said(end.text, steps, end.reason))
    return Envelope(shape, model).whole(choice, usage=usage(records, started))


def _ends(records: list[Record]) -> tuple[Started, Finished]:
    """A run's first and last record; ApiError where the server ended it, for which OpenAI has no reason."""
    started, end = records[0], records[-1]
    if not isinstance(started, Started) or not isinstance(end, Finished) or end.reason == "cancelled":
        raise shutting_down()
    return started, end


@ending_well()
async def chunks(run: Run, shape: Shape, model: str, *, with_usage: bool) -> AsyncGenerator[bytes, None]:
    """The answer while it is made; with usage asked for, the other chunks say that it comes later."""
    envelope = Envelope(shape, model)
    later: dict[str, Any] = {"usage": None} if with_usage else {}
    opening = shape.opening()
    if opening:
        yield envelope.chunk(opening, **later)
    records: list[Record] = []
    offset = 0
    async for record in run:
        records.append(record)
        if isinstance(record, Round):
            if record.text or shape.logprobs:
                yield envelope.chunk(shape.part(Said(record.text, [record], offset=offset)), **later)
            offset += sum(len(token.text) for token in record.tokens)
    started, end = _ends(records)
    yield envelope.chunk(shape.part(Said(end.tail, reason=end.reason, offset=offset)), **later)
    if with_usage:
        yield envelope.chunk(usage=usage(records, started))
    yield DONE
