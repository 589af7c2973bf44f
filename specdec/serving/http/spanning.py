"""A span for each request to the API, whose place in the trace the log then names. Not there where telemetry is off."""

from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from specdec.serving.http.door import OPEN
from specdec.serving.http.tracing import GONE, Ids, current

if TYPE_CHECKING:
    from specdec.telemetry.watching import Telemetry

QUIET = (*OPEN, "/metrics")


class Spanning:
    """Stands behind `Tracing`, which has named the request."""

    def __init__(self, app: ASGIApp, telemetry: "Telemetry") -> None:
        self._app = app
        self._telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http" or scope["path"] in QUIET:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        ids, status = current.get() or Ids.of(headers), GONE

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with self._telemetry.exchange(headers, ids.request_id) as exchange:
            current.set(replace(ids, traceparent=exchange.traceparent))  # `Tracing` takes it back
            try:
                await self._app(scope, receive, watched)
            finally:
                exchange.answered(scope["method"], getattr(scope.get("route"), "path", ""), status)
