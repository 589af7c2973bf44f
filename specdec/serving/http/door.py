"""Who may come in: those with the key, if there is one, and each so often. Nothing of a request is read for that."""

import hmac
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from math import ceil

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from specdec.serving.http.errors import ApiError
from specdec.serving.http.wire import refusal

OPEN = ("/healthz", "/readyz")
MINUTE_S = 60.0
MAX_CLIENTS = 10_000


class Rate:
    """At most `limit` requests a minute of each client; 0: any number. `clock` in seconds."""

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._seen: OrderedDict[str, deque[float]] = OrderedDict()

    def wait(self, client: str) -> float:
        """Seconds until the client may come again; 0 where it may now, and then this is one of its requests."""
        now = self._clock()
        seen = self._seen.setdefault(client, deque())
        self._seen.move_to_end(client)
        while len(self._seen) > MAX_CLIENTS:
            self._seen.popitem(last=False)
        while seen and now - seen[0] >= MINUTE_S:
            seen.popleft()
        if self._limit and len(seen) >= self._limit:
            return MINUTE_S - (now - seen[0])
        if self._limit:
            seen.append(now)
        return 0.0


class Door:
    """Lets a request through to the app, or refuses it. Health is for everybody.

    A client is a network address: that of the connection, whatever headers say of others.
    """

    def __init__(self, app: ASGIApp, key: str, per_minute: int) -> None:
        self._app = app
        self._key = key.encode()
        self._rate = Rate(per_minute)
        self._per_minute = per_minute

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        error = None if scope["type"] != "http" or scope["path"] in OPEN else self._objection(scope)
        await (self._app if error is None else refusal(error))(scope, receive, send)

    def _objection(self, scope: Scope) -> ApiError | None:
        wait = self._rate.wait((scope.get("client") or ("",))[0])
        if wait:
            message = f"at most {self._per_minute} requests a minute are allowed: try again in {ceil(wait)} seconds"
            return ApiError(429, "rate_limit_exceeded", message, retry_after=ceil(wait))
        if self._key and not self._has_key(Headers(scope=scope).get("authorization", "")):
            return ApiError(401, "invalid_api_key", "this server needs its API key: Authorization: Bearer KEY")
        return None

    def _has_key(self, authorization: str) -> bool:
        scheme, _, key = authorization.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(key.strip().encode("latin-1"), self._key)
