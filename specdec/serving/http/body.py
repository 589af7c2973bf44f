"""Reads a request's body, as far as one may be long, before anything else; then listens for the client's leave.

A client that leaves has its request cancelled, whatever that is doing: waiting for its turn, or for its next token.
"""

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from specdec.serving.http.errors import ApiError
from specdec.serving.http.wire import refusal

MAX_BYTES = 64 * 1024
READ_S = 10.0


class Body:
    """Hands a request on with its body complete; the app is cancelled once the client has gone."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            with anyio.fail_after(READ_S):
                body = await _read(scope, receive)
        except TimeoutError:
            message = f"the body did not arrive within {READ_S:g} seconds"
            await refusal(ApiError(408, "body_timeout", message))(scope, receive, send)
        except ApiError as error:
            await refusal(error)(scope, receive, send)
        else:
            if body is not None:
                await self._watched(body, scope, receive, send)

    async def _watched(self, body: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(watch)
            await self._app(scope, _replay(body), send)
            group.cancel_scope.cancel()


async def _read(scope: Scope, receive: Receive) -> bytes | None:
    """The body; None where the client left, ApiError where it is too long, which its length may tell at once."""
    length = Headers(scope=scope).get("content-length", "")
    if length.isascii() and length.isdigit() and int(length[:20]) > MAX_BYTES:
        raise _too_long()
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > MAX_BYTES:
            raise _too_long()
        if not message.get("more_body", False):
            return bytes(body)


def _too_long() -> ApiError:
    return ApiError(413, "body_too_large", f"the body is longer than {MAX_BYTES:,} bytes")


def _replay(body: bytes) -> Receive:
    """A `receive` that gives the body once; a disconnect cancels, and is not told."""
    left = [body]

    async def receive() -> Message:
        if not left:
            await anyio.sleep_forever()
        return {"type": "http.request", "body": left.pop(), "more_body": False}

    return receive
