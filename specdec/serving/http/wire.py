"""Answers in bytes: JSON in ASCII, so that no character can break it, and streams of server-sent events."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import anyio
from anyio.abc import ObjectSendStream
from fastapi.responses import Response
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.types import Receive, Scope, Send

from specdec.serving.http.errors import ApiError

PING_S = 10.0  # a sign of life while nothing else is to be said
STALL_S = 30.0  # a reader that takes nothing for so long has gone
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
DONE = format_sse_event(data_str="[DONE]")


def dumps(value: Any) -> str:
    """JSON in ASCII on one line; ValueError for NaN."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def event(value: Any, name: str | None = None) -> bytes:
    """One server-sent event."""
    return format_sse_event(data_str=dumps(value), event=name)


class Json(Response):
    """A JSON answer."""

    media_type = "application/json"

    def __init__(self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(dumps(value).encode(), status, {"Cache-Control": "no-store"} | dict(headers or {}))


def refusal(error: ApiError) -> Json:
    """The answer to a request that is refused, or that failed before its answer began."""
    return Json(error.body(), error.status, error.headers())


class EventStream(Response):
    """Server-sent events, as fast as they are read: the next one is made while this one is on its way, no more.

    `events` must end with an event of its own making whatever happens; it is closed in every case.
    """

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        super().__init__(headers=STREAM_HEADERS)
        del self.headers["content-length"]
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events, and comments where none comes for a while; give up on a reader that takes nothing."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        writer, reader = anyio.create_memory_object_stream[bytes](0)
        async with anyio.create_task_group() as group, reader:
            group.start_soon(self._make, writer)
            while (chunk := await self._next(reader.receive)) is not None:
                with anyio.move_on_after(STALL_S) as patience:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                if patience.cancelled_caught:
                    group.cancel_scope.cancel()
                    return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _make(self, writer: ObjectSendStream[bytes]) -> None:
        async with writer, aclosing(self._events) as events:
            async for chunk in events:
                await writer.send(chunk)

    @staticmethod
    async def _next(take: Any) -> bytes | None:
        """The next event, or a comment where it is not there in time; None after the last."""
        chunk: bytes | None = KEEPALIVE_COMMENT
        with anyio.move_on_after(PING_S):
            try:
                chunk = await take()
            except anyio.EndOfStream:
                chunk = None
        return chunk
