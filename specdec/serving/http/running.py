"""One generation as an asynchronous iterator: it waits without a thread, and works in one while it is pulled."""

import time
from collections.abc import Callable

import anyio
from anyio.to_thread import run_sync

from specdec.records import Record
from specdec.serving.gate import Ticket
from specdec.serving.http.errors import RETRY_S, ApiError, shutting_down
from specdec.serving.service import GenerationRequest, Service

POLL_S, LONGEST_POLL_S = 0.02, 0.5  # the first for each place before one's own: a long line costs little more


class Run:
    """The records of a run, one at a time. Close it once nobody pulls any more.

    A record is made when it is asked for, so that a slow reader slows the engine and fills no memory. Whoever is
    cancelled while one is made gets his cancellation when it is made: at most a round later.
    """

    def __init__(
        self,
        service: Service,
        request: GenerationRequest,
        ticket: Ticket,
        closing: Callable[[], bool],
        threads: anyio.CapacityLimiter,
    ) -> None:
        self._service = service
        self._request = request
        self._closing = closing
        self._threads = threads
        self._ticket = ticket
        self._records = service.stream(request, cancelled=closing, ticket=ticket)
        self._first: Record | None = None

    async def turn(self) -> None:
        """Wait until it is this one's turn, and until its request is known to be sound, if that is quickly known.

        Where the models are in memory whatever is wrong with a request is raised here, before an answer has begun.
        """
        ends = time.monotonic() + self._service.settings.max_wait_seconds
        while place := self._ticket.place:
            if self._closing():
                raise shutting_down()
            if time.monotonic() > ends:
                message = f"the wait of {self._service.settings.max_wait_seconds:g} seconds for a turn is over"
                raise ApiError(503, "queue_timeout", message, retry_after=RETRY_S)
            await anyio.sleep(min(POLL_S * place, LONGEST_POLL_S))
        if self._service.holds(self._request.target, self._request.draft):
            self._first = await self._pull()

    def __aiter__(self) -> "Run":
        return self

    async def __anext__(self) -> Record:
        record, self._first = self._first, None
        record = record or await self._pull()
        if record is None:
            raise StopAsyncIteration
        return record

    def close(self) -> None:
        """End the run; harmless when repeated."""
        self._records.close()

    async def _pull(self) -> Record | None:
        return await run_sync(next, self._records, None, limiter=self._threads)
