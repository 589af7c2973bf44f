"""Models that arrive while the service runs: fetched by name, one at a time, in a thread of its own.

A generation is not held up: a download takes no place in the line. What may be fetched is `Settings.bring`'s to say.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Literal

from specdec.checkpoints import ModelInfo, fetch, known_models
from specdec.checkpoints.checkpoint import open_checkpoint, read_config
from specdec.checkpoints.files import ModelFolder
from specdec.checkpoints.hub import configuration
from specdec.checkpoints.locate import as_path, find
from specdec.checkpoints.memory import available_bytes, require_memory
from specdec.checkpoints.registry import ENTRIES, require_name
from specdec.errors import BusyError, NotFoundError, RequestError, SpecdecError
from specdec.serving.catalogue import Offer

Phase = Literal["asking", "fetching", "done", "failed", "cancelled"]
log = logging.getLogger(__name__)


class _Cancelled(Exception):  # noqa: N818
    """Ends a download from within its progress report."""


@dataclass(frozen=True, slots=True)
class Job:
    """How far the fetching of a model is, in bytes; `problem` is why it failed."""

    name: str
    phase: Phase = "asking"
    done: int = 0
    total: int = 0
    problem: str = ""

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return self.phase in ("asking", "fetching")


class Bringing:
    """Fetches models and hands them to `arrive` as offers. Safe to share between threads.

    `allowed` is "off", "known" or "any", see `Settings`. `held` says how many bytes of memory could be made free.
    """

    def __init__(self, allowed: str, arrive: Callable[[Offer], None], held: Callable[[], int] = lambda: 0) -> None:
        self.allowed = allowed
        self._arrive = arrive
        self._held = held
        self._lock = Lock()
        self._job: Job | None = None
        self._cancel = Event()

    @property
    def job(self) -> Job | None:
        """The download under way, or the last one; None where there was none."""
        with self._lock:
            return self._job

    def models(self) -> list[ModelInfo]:
        """The models that the project knows beside those that come with it."""
        return [model for model in known_models() if model.kind == "known"]

    def require_room(self, name: str, parameters: int) -> None:
        """Raise MemoryLimitError where a model would not fit, even if all others were let go."""
        available = available_bytes()
        require_memory(name, parameters, None if available is None else available + self._held())

    def start(self, name: str) -> None:
        """Begin to fetch a model; RequestError, NotFoundError or BusyError where that may not be.

        All else that can go wrong is told by `job`.
        """
        self._require_allowed(name)
        with self._lock:
            if self._job and self._job.running:
                raise BusyError(f"{self._job.name} is being fetched, one at a time: wait for it, or cancel it")
            self._cancel.clear()
            self._job = Job(name)
        Thread(target=self._work, args=(name,), name="bring", daemon=True).start()

    def cancel(self) -> None:
        """End the download under way, if there is one."""
        self._cancel.set()

    def _require_allowed(self, name: str) -> None:
        if self.allowed == "off":
            raise RequestError("no models are fetched on this page: run it on a machine of your own")
        if self.allowed == "known" and name not in ENTRIES:
            raise NotFoundError(f"only these are fetched here: {', '.join(ENTRIES)}")
        if as_path(name) is None:
            require_name(name)

    def _work(self, name: str) -> None:
        """Fetch, look into it, offer it; whatever happens ends the job."""
        try:
            path = as_path(name) or self._fetched(name)
            parameters = open_checkpoint(path).config.parameters
            self.require_room(name, parameters)
            self._arrive(_offer(name, parameters))
            self._end("done")
        except _Cancelled:
            self._end("cancelled")
        except (SpecdecError, OSError) as error:
            self._end("failed", str(error))
        except Exception:
            log.exception("%s could not be fetched", name)
            self._end("failed", f"something went wrong while {name} was fetched: try again")

    def _fetched(self, name: str) -> Path:
        path = find(name)
        if path is None:
            self.require_room(name, _parameters(name))
            path = fetch(name, self._report)
        return path

    def _report(self, what: str, done: int, total: int) -> None:
        if self._cancel.is_set():
            raise _Cancelled
        with self._lock:
            if self._job:
                entry = ENTRIES.get(self._job.name)
                least = entry.size if entry and entry.repository == what else 0  # the Hub tells sizes file by file
                self._job = replace(self._job, phase="fetching", done=done, total=max(total, least))

    def _end(self, phase: Phase, problem: str = "") -> None:
        with self._lock:
            if self._job:
                self._job = replace(self._job, phase=phase, problem=problem)


def _parameters(name: str) -> int:
    """How many parameters a model has that is not here: from the registry, or from its configuration on the Hub."""
    entry = ENTRIES.get(name)
    return entry.parameters if entry else read_config(ModelFolder(configuration(name))).parameters


def _offer(name: str, parameters: int) -> Offer:
    entry = ENTRIES.get(name)
    return Offer(name, parameters, entry.role, entry.vocabulary) if entry else Offer(name, parameters)
