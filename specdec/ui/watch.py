"""One run as the page follows it: a text of events that grows, sent a few times a second, errors told in a sentence."""

import logging
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from threading import Event, Lock

from specdec.config import AcceptanceRule, SamplingParams, SpeculativeConfig
from specdec.errors import SpecdecError
from specdec.serving import GenerationRequest, Service, Ticket
from specdec.ui.baseline import Baselines
from specdec.ui.meter import Meter
from specdec.ui.traces import ending
from specdec.ui.view import fold, is_round, line

UPDATES_PER_SECOND = 15
TOP = 5  # tokens in the lists of a token's tooltip
WAITING_POLL_S = 0.2

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Form:
    """What the page's controls say, in their order."""

    prompt: str
    target: str
    draft: str
    lookahead: float
    auto: bool
    temperature: float
    max_tokens: float
    acceptance: AcceptanceRule
    top_k: float
    top_p: float
    seed: float | None = None
    chat: bool = False

    def __post_init__(self) -> None:
        """A seed field that nobody has touched says "", one that was emptied None."""
        if not self.seed and self.seed != 0:
            object.__setattr__(self, "seed", None)

    def request(self) -> GenerationRequest:
        """The same as a request; ConfigError naming what is out of range. Page numbers may come as floats."""
        sampling = SamplingParams(
            temperature=self.temperature,
            top_k=_whole(self.top_k),
            top_p=self.top_p,
            seed=None if self.seed is None else _whole(self.seed),
            max_tokens=_whole(self.max_tokens),
        )
        lookahead = 0 if self.draft == "none" else "auto" if self.auto else _whole(self.lookahead)
        speculation = SpeculativeConfig(lookahead, self.acceptance, top=TOP)  # type: ignore[arg-type]
        return GenerationRequest(self.prompt, self.target, self.draft, self.chat, sampling, speculation)


def _whole(number: float) -> int:
    """An integer where it is one; anything else is left for the settings to refuse."""
    return int(number) if isinstance(number, float) and number.is_integer() else number  # type: ignore[return-value]


def watch(
    service: Service, form: Form, cancelled: Callable[[], bool], baselines: Baselines | None = None
) -> Iterator[str]:
    """A generation as `grow` sends it, its speed-up told against the plain lanes that `baselines` remembers."""
    return grow(_events(service, form, cancelled, baselines or Baselines()))


def grow(events: Generator[str, None, None], per_second: float = UPDATES_PER_SECOND) -> Iterator[str]:
    """All events so far, again and again, at most `per_second` times a second while tokens flow."""
    text, sent = line("begin"), 0.0
    yield text
    try:
        with closing(events):
            for event in events:
                text += event
                if not is_round(event) or time.monotonic() - sent >= 1 / per_second:
                    yield text
                    sent = time.monotonic()
    except SpecdecError as error:
        text += line("error", text=sentence(str(error)))
    except Exception:
        log.exception("a generation failed")
        text += line("error", text="Something went wrong inside the engine. Your prompt is still there: try again.")
    yield text


def _events(
    service: Service, form: Form, cancelled: Callable[[], bool], baselines: Baselines
) -> Generator[str, None, None]:
    """Every event of a run, from its place in the line to its end; "" is a sign of life."""
    request = form.request()
    service.check(request)
    with service.join() as ticket:
        yield from waiting(ticket, cancelled)
        if not (cancelled() or service.holds(request.target, request.draft)):
            yield line("loading")
        meter = Meter(baselines.last(request))
        with closing(service.stream(request, cancelled=cancelled, ticket=ticket.lend())) as run:
            records = yield from fold(run, request, meter)
        lane = yield from baselines.after(records, request, service, ticket, cancelled)
    yield from ending(records, request, meter, lane)


def waiting(ticket: Ticket, cancelled: Callable[[], bool]) -> Iterator[str]:
    """The place in the line each time that it changes, until it is this one's turn; "" is a sign of life."""
    place = None
    while not ticket.wait(WAITING_POLL_S) and not cancelled():
        before, place = place, ticket.place
        yield line("waiting", place=place) if place != before else ""


def sentence(message: str) -> str:
    """An error's message as one sentence: capital first, full stop last, and no longer than a reader wants.

    A model's name that comes first (gpt2, org/name) keeps its letters.
    """
    text = " ".join(message.split())[:400]
    if text.partition(" ")[0].replace("_", "").isalpha():
        text = text[:1].upper() + text[1:]
    return text + ("" if text.endswith((".", "!", "?", "…")) else ".")


class Stops:
    """Cancel flags by browser session, so that a Stop reaches that session's runs and no other."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._flags: dict[str, list[Event]] = {}

    @contextmanager
    def flag(self, session: str) -> Iterator[Event]:
        """A flag for one run, known until the run is over."""
        event = Event()
        with self._lock:
            self._flags.setdefault(session, []).append(event)
        try:
            yield event
        finally:
            self._forget(session, event)

    def stop(self, session: str) -> None:
        """Set the flags of all runs of a session."""
        with self._lock:
            for event in self._flags.get(session, ()):
                event.set()

    def _forget(self, session: str, event: Event) -> None:
        with self._lock:
            flags = self._flags.get(session, [])
            flags.remove(event)
            if not flags:
                del self._flags[session]
