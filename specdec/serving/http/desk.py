"""What all endpoints share: the service, and whether it is about to end. Runs are begun here."""

import threading
import time
from contextlib import ExitStack

import anyio

from specdec.errors import NotFoundError
from specdec.serving.http.errors import ApiError, shutting_down
from specdec.serving.http.running import Run
from specdec.serving.service import GenerationRequest, Service


class Desk:
    """One for each server. `close` refuses what comes and what waits, and ends what runs after its round."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.opened = int(time.time())
        self._closing = threading.Event()
        self._threads = anyio.CapacityLimiter(4)  # one works; others may be ending

    @property
    def ready(self) -> bool:
        """Whether a request would be served now."""
        return self.service.ready and not self._closing.is_set()

    @property
    def closing(self) -> bool:
        """Whether the server is about to end."""
        return self._closing.is_set()

    def close(self) -> None:
        """End; safe in a signal handler."""
        self._closing.set()

    async def begin(self, request: GenerationRequest, stack: ExitStack) -> Run:
        """A run whose turn it is; it is closed with `stack`. ApiError and SpecdecError where it cannot be."""
        if self.closing:
            raise shutting_down()
        try:
            self.service.check(request)
        except NotFoundError as error:
            raise ApiError(404, "model_not_found", str(error), param="model") from error
        ticket = self.service.join()
        stack.callback(ticket.close)
        run = Run(self.service, request, ticket, self._closing.is_set, self._threads)
        stack.callback(run.close)
        await run.turn()
        return run
