"""What failed ends with an answer all the same: a refusal before the answer began, an event after."""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import wraps
from typing import ParamSpec

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from specdec.serving.http.errors import ApiError, explain
from specdec.serving.http.tracing import current
from specdec.serving.http.wire import event, refusal

P = ParamSpec("P")
Events = AsyncGenerator[bytes, None]
log = logging.getLogger(__name__)


def told(error: Exception) -> ApiError:
    """What a client is told; what it is not told goes into the log."""
    answer = explain(error)
    if answer is not error and answer.status >= 500 and answer.code != "queue_full":
        log.error("a request failed", exc_info=error)
    return answer


def ending_well(name: str | None = None) -> Callable[[Callable[P, Events]], Callable[P, Events]]:
    """Let a stream of events that fails end with an error event, called `name`, that has the request's id."""

    def decorate(stream: Callable[P, Events]) -> Callable[P, Events]:
        @wraps(stream)
        async def events(*arguments: P.args, **options: P.kwargs) -> Events:
            try:
                async with aclosing(stream(*arguments, **options)) as made:
                    async for one in made:
                        yield one
            except Exception as error:
                ids = current.get()
                yield event(told(error).body() | {"request_id": ids.request_id if ids else None}, name)

        return events

    return decorate


class Failing:
    """Answers where an endpoint raised; where its answer had begun, the connection ends with it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if begun:
                raise
            await refusal(told(error))(scope, receive, send)
