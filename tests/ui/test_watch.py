"""One run as the page follows it."""

import itertools
import json
import threading
import time
from typing import Any

import pytest

from specdec.records import Finished, Round, Started, Token
from specdec.serving import GenerationRequest, Service, Settings
from specdec.ui import watch as watching
from specdec.ui.watch import Form, Stops, watch
from tests.serving.toys import load_toy


class Scripted(Service):
    """A service whose runs are a script: `rounds` rounds, each after `seconds`."""

    def __init__(self, rounds: int = 3, seconds: float = 0.0, error: Exception | None = None, **more: Any) -> None:
        super().__init__(loader=lambda name: None, **more)  # type: ignore[arg-type, return-value]
        self.rounds, self.seconds, self.error = rounds, seconds, error
        self.asked: list[GenerationRequest] = []
        self.closed = False

    def _stream(self, request: GenerationRequest, cancelled: Any, ticket: Any) -> Any:
        self.asked.append(request)
        try:
            with ticket:
                ticket.wait(10)
                yield Started("big", "small", (1,), 0, "bitwise", {})
                for index in range(self.rounds):
                    time.sleep(self.seconds)
                    yield Round(index, (), (Token(1, " x", "plain"),), " x", 0.0, 0.01, 0.0, 1)
                    if cancelled():
                        yield Finished("cancelled", (), "")
                        return
                if self.error:
                    raise self.error
                yield Finished("length", (), "")
        finally:
            self.closed = True


def form(**changes: Any) -> Form:
    values: dict[str, Any] = {
        "prompt": "Once",
        "target": "big",
        "draft": "small",
        "lookahead": 4.0,
        "auto": False,
        "temperature": 0.5,
        "max_tokens": 16.0,
        "acceptance": "match",
        "top_k": 0.0,
        "top_p": 1,
        "seed": None,
        "chat": False,
    }
    return Form(**values | changes)


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.split("\n") if line]


def never() -> bool:
    return False


def test_text_only_grows_at_its_end():
    """What was sent stays: every update begins with the one before it. The last one is complete."""
    updates = list(watch(Scripted(rounds=50, seconds=0.004), form(), never))
    assert all(after.startswith(before) for before, after in itertools.pairwise(updates))
    assert [event["event"] for event in events(updates[-1])].count("round") == 50
    assert events(updates[-1])[-1]["event"] == "end"


def test_updates_are_few():
    """Fifteen a second, not one a round: 200 rounds in about 0.4 s make far fewer updates."""
    began = time.monotonic()
    updates = list(watch(Scripted(rounds=200, seconds=0.002), form(), never))
    assert len(updates) <= 8 + watching.UPDATES_PER_SECOND * (time.monotonic() - began)


def test_form_becomes_a_request():
    """Every control reaches its setting; page numbers that are whole become integers."""
    service = Scripted()
    list(watch(service, form(top_k=5.0, seed=7.0, chat=True), never))
    request, _ = service.asked  # the other is its plain lane
    assert (request.prompt, request.target, request.draft, request.chat) == ("Once", "big", "small", True)
    assert (request.params.temperature, request.params.max_tokens, request.params.seed) == (0.5, 16, 7)
    assert (request.params.top_k, request.params.top_p) == (5, 1)
    assert (request.speculation.num_speculative_tokens, request.speculation.acceptance) == (4, "match")
    assert form(auto=True).request().speculation.num_speculative_tokens == "auto"
    assert form(auto=True, draft="none").request().speculation.num_speculative_tokens == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": -1.0}, "Seed must lie between 0 and"),
        ({"max_tokens": 2.5}, "Max_tokens must be a whole number, not 2.5."),
        ({"max_tokens": 10_000}, "Max_tokens is 10,000, 512 are allowed here."),
        ({"temperature": float("nan")}, "Temperature must be a finite number"),
        ({"lookahead": 99}, "Num_speculative_tokens must lie between 0 and 15, not 99."),
        ({"prompt": "x" * 20_001}, "The prompt has 20,001 characters, 20,000 are allowed."),
        ({"acceptance": "hope"}, "Acceptance must be one of rejection, match"),
    ],
)
def test_bad_input_gets_a_sentence(changes: dict[str, Any], said: str):
    """The run does not begin, the message names what is wrong."""
    service = Scripted()
    *_, last = watch(service, form(**changes), never)
    error = events(last)[-1]
    assert error["event"] == "error"
    assert error["text"].startswith(said)
    assert service.asked == []


def test_a_fault_inside_is_not_shown_but_logged(caplog: pytest.LogCaptureFixture):
    """What was generated stays; the page gets a sentence, the log the reason, nobody a traceback."""
    *_, last = watch(Scripted(error=RuntimeError("secret path /srv/x")), form(), never)
    kinds = [event["event"] for event in events(last)]
    assert kinds == ["begin", "loading", "start", "round", "round", "round", "error"]
    assert "secret" not in last
    assert "secret path" in caplog.text


def test_a_waiting_run_shows_its_place_and_then_runs():
    """The place is told when it changes; in between, empty signs of life let a closed tab be noticed."""
    service = Scripted()
    others = [service.join(), service.join()]
    updates = watch(service, form(), never)
    texts = [next(updates) for _ in range(4)]
    assert [event.get("place") for event in events(texts[-1])] == [None, 2]
    others[0].close()
    others[1].close()
    *_, last = updates
    assert events(last)[-1]["event"] == "end"


def test_stop_while_waiting():
    """A run that is stopped before its turn ends without taking one."""
    service = Service(loader=load_toy)
    flag = threading.Event()
    with service.join():
        updates = watch(service, form(), flag.is_set)
        next(updates)
        next(updates)
        flag.set()
        *_, last = updates
    assert [event["event"] for event in events(last)] == ["begin", "waiting", "end"]
    assert events(last)[-1]["reason"] == "cancelled"


def test_too_many_get_a_sentence():
    """A full line is an error like any other."""
    service = Scripted(settings=Settings(queue_limit=0))
    with service.join():
        *_, last = watch(service, form(), never)
    assert "try again in a moment" in events(last)[-1]["text"]


def test_closing_closes_the_run():
    """A page that goes away ends the run in the middle and frees the place."""
    service = Scripted(rounds=1000)
    updates = watch(service, form(), never)
    for _ in range(4):
        next(updates)
    updates.close()  # type: ignore[attr-defined]
    assert service.closed
    with service.join() as ticket:
        assert ticket.place == 0


def test_stop_reaches_the_session_it_was_pressed_in():
    """Only that one, and only while it runs."""
    stops = Stops()
    with stops.flag("mine") as mine, stops.flag("mine") as second, stops.flag("yours") as yours:
        stops.stop("mine")
        assert (mine.is_set(), second.is_set(), yours.is_set()) == (True, True, False)
    stops.stop("mine")
    with stops.flag("mine") as later:
        assert not later.is_set()
