"""Who asked: a request id and a W3C trace context for each request, in its answer and in every line of the log.

What a client sends is used only where it is well formed; anything else is replaced. https://www.w3.org/TR/trace-context
"""

import logging
import re
import secrets
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
TRACEPARENT = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(-.*)?")
GONE = 499  # nginx's number for a client that left
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ids:
    """A request's name, and its place in a trace: the caller's trace id where there is one, a span of our own."""

    request_id: str
    traceparent: str

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> "Ids":
        """From a request's headers."""
        asked = headers.get("x-request-id", "")
        request_id = asked if REQUEST_ID.fullmatch(asked) else secrets.token_hex(16)
        return cls(request_id, _continued(headers.get("traceparent", "")))


current: ContextVar[Ids | None] = ContextVar("current", default=None)


def _continued(traceparent: str) -> str:
    """The caller's trace, or a new one, with a span for this request. Version 00 has nothing behind its flags."""
    found = TRACEPARENT.fullmatch(traceparent)
    if found is None or (found[1] == "00" and found[4]):
        return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-00"
    return f"00-{found[2]}-{secrets.token_hex(8)}-{found[3]}"


class Tracing:
    """Names each request, gives the name back, and writes one line when it is over."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        ids, began, status = Ids.of(Headers(scope=scope)), time.perf_counter(), GONE

        async def named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = ids.request_id
                headers["X-Content-Type-Options"] = "nosniff"
            await send(message)

        token = current.set(ids)
        try:
            await self._app(scope, receive, named)
        finally:
            log.info("request", extra={"fields": _line(scope, status, time.perf_counter() - began)})
            current.reset(token)


def _line(scope: Scope, status: int, seconds: float) -> dict[str, object]:
    return {"method": scope["method"], "path": scope["path"][:200], "status": status, "seconds": round(seconds, 4)}
