"""A race as the page follows it: what is measured, in which order, and how it ends."""

import itertools
import threading
from collections.abc import Generator
from typing import Any

import pytest

from specdec.errors import LoadError
from specdec.records import Record, Round
from specdec.serving import GenerationRequest, Service, Settings
from specdec.ui.measure import WARM_UP_TOKENS
from specdec.ui.race import race
from specdec.ui.step import open_run
from tests.serving.toys import Toy, load_toy
from tests.ui.test_watch import events, form, never


class Observed(Service):
    """A service of toys that notes every run: its request, and whether another was under way."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**{"loader": load_toy} | more)
        self.asked: list[GenerationRequest] = []
        self.under_way = 0
        self.at_once = 0
        self.rounds = 0

    def _stream(self, request: GenerationRequest, *more: Any) -> Generator[Record, None, None]:
        self.asked.append(request)
        self.under_way += 1
        self.at_once = max(self.at_once, self.under_way)
        try:
            for record in super()._stream(request, *more):
                self.rounds += isinstance(record, Round)
                yield record
        finally:
            self.under_way -= 1


def raced(service: Service, **changes: Any) -> list[dict[str, Any]]:
    *_, last = race(service, form(**{"target": "target", "draft": "draft", "max_tokens": 40} | changes), never)
    return events(last)


def ids(told: list[dict[str, Any]], lane: str) -> list[str]:
    """The texts of a lane's tokens, refused drafts left out."""
    rounds = [event for event in told if event["event"] == "round" and event["lane"] == lane]
    return [chip[1] for step in rounds for chip in step["chips"] if chip[0] != "r"]


def test_each_lane_is_warmed_up_and_measured_alone_plain_first():
    """Plain, then speculative; never two at once; the same request but for the draft."""
    service = Observed()
    raced(service)
    assert [(asked.draft, asked.params.max_tokens) for asked in service.asked] == [
        ("none", WARM_UP_TOKENS),
        ("none", 40),
        ("draft", WARM_UP_TOKENS),
        ("draft", 40),
    ]
    assert service.at_once == 1
    assert [asked.speculation.num_speculative_tokens for asked in service.asked] == [0, 0, 4, 4]
    assert len({(asked.prompt, asked.target, asked.params.temperature) for asked in service.asked}) == 1


def test_each_lane_is_told_once_more_as_a_run_to_step_through():
    """The events that opening its trace gives: the same tokens, refused drafts, and those that were never judged."""
    told = raced(Observed(), max_tokens=40)
    assert list(told[-1]["runs"]) == ["plain", "speculative"]
    for lane, run in told[-1]["runs"].items():
        (trace,) = [event["text"] for event in events(run) if event["event"] == "trace"]
        assert open_run(trace) == {"events": run}
        raced_rounds = [event for event in told if event["event"] == "round" and event["lane"] == lane]
        rounds = [event for event in events(run) if event["event"] == "round"]
        for one, two in zip(raced_rounds, rounds, strict=True):
            assert one["chips"] == [chip for chip in two["chips"] if chip[0] != "d"]
            assert one["proposed"] == sum(chip[0] in "ard" for chip in two["chips"])


def test_the_warm_up_is_not_counted():
    """What is told begins with round 0 and has exactly the tokens asked for."""
    told = raced(Observed())
    for lane in ("plain", "speculative"):
        rounds = [event for event in told if event["event"] == "round" and event["lane"] == lane]
        assert [step["n"] for step in rounds] == list(range(len(rounds)))
        assert rounds[-1]["tokens"] == len(ids(told, lane)) == 40
        assert all(one["at"] < two["at"] for one, two in itertools.pairwise(rounds))


def test_events_come_in_order():
    """Each lane is announced, begins, has its rounds; the verdict is last."""
    told = raced(Observed())
    kinds = [(event["event"], event.get("lane")) for event in told if event["event"] not in ("round", "loading")]
    lanes = [(kind, lane) for lane in ("plain", "speculative") for kind in ("lane", "start")]
    assert kinds == [("begin", None), *lanes, ("verdict", None)]
    assert not [event["note"] for event in told if event["event"] == "start" and event["note"]]
    assert "d" not in [chip[0] for event in told if event["event"] == "round" for chip in event["chips"]]


@pytest.mark.parametrize("changes", [{"temperature": 0.0, "acceptance": "rejection"}, {"acceptance": "match"}])
def test_the_same_tokens_under_greedy_and_match(changes: dict[str, Any]):
    """Checked, and said, also where no seed was given."""
    told = raced(Observed(), **changes)
    assert ids(told, "plain") == ids(told, "speculative")
    assert told[-1]["texts"] == "Both lanes: the same 40 tokens, token for token."


def test_rejection_sampling_promises_a_distribution():
    """Texts may differ there; the page says why that is right."""
    assert "the same distribution" in raced(Observed(), acceptance="rejection", temperature=1.0)[-1]["texts"]


@pytest.mark.parametrize("seed", [None, 7.0])
def test_both_lanes_have_one_seed(seed: float | None):
    """One is chosen where the field is empty."""
    service = Observed()
    told = raced(service, seed=seed)
    (used,) = {asked.params.seed for asked in service.asked}
    assert used is not None if seed is None else used == 7
    assert all(f"seed {used}" in event["about"] for event in told if event["event"] == "start")


def test_updates_only_grow():
    """Every update begins with the one before it."""
    updates = list(race(Observed(), form(target="target", draft="draft", max_tokens=300), never))
    assert all(after.startswith(before) for before, after in itertools.pairwise(updates))


@pytest.mark.parametrize("after", [3, WARM_UP_TOKENS + 3, WARM_UP_TOKENS + 40 + 1])
def test_stop_in_the_middle_takes_effect_within_a_round(after: int):
    """While warming up, in the plain lane, in the speculative one: at most one round more, no verdict."""
    service = Observed()

    def stopped() -> bool:
        return service.rounds >= after

    *_, last = race(service, form(target="target", draft="draft", max_tokens=40), stopped)
    assert events(last)[-1]["event"] == "stopped"
    assert service.rounds == after
    with service.join() as ticket:
        assert ticket.place == 0


def test_stop_while_waiting_measures_nothing():
    """Somebody else's turn is not disturbed."""
    service, flag = Observed(), threading.Event()
    with service.join():
        updates = race(service, form(target="target", draft="draft"), flag.is_set)
        next(updates)
        assert events(next(updates))[-1] == {"event": "waiting", "place": 1}
        flag.set()
        *_, last = updates
    assert events(last)[-1]["event"] == "stopped"
    assert service.asked == []


def test_the_place_is_kept_between_the_lanes():
    """Whoever comes during the plain lane waits until the race is over."""
    service = Observed()
    updates = race(service, form(target="target", draft="draft", max_tokens=4), never)
    with service.join() as earlier:
        next(updates)
        next(updates)
        other = service.join()
        earlier.close()
        text = ""
        while '"verdict"' not in text:
            assert other.place == 1
            text = next(updates)
        assert other.wait(0)
        other.close()


def test_closing_the_page_frees_the_engine():
    """In the middle of a lane, at once."""
    service = Observed()
    updates = race(service, form(target="target", draft="draft"), never)
    while not service.rounds > WARM_UP_TOKENS + 1:
        next(updates)
    updates.close()  # type: ignore[attr-defined]
    assert service.under_way == 0
    with service.join() as ticket:
        assert ticket.place == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"draft": "none"}, "Choose a drafter and a lookahead k of 1 or more"),
        ({"lookahead": 0}, "Choose a drafter and a lookahead k of 1 or more"),
        ({"max_tokens": 10_000}, "Max_tokens is 10,000, 512 are allowed here."),
        ({"seed": -1.0}, "Seed must lie between 0 and"),
    ],
)
def test_errors_are_a_sentence(changes: dict[str, Any], said: str):
    """Before anything runs."""
    service = Observed()
    told = raced(service, **changes)
    assert told[-1]["event"] == "error"
    assert told[-1]["text"].startswith(said)
    assert service.asked == []


def test_a_full_line_is_an_error():
    """With what to do about it."""
    service = Observed(settings=Settings(queue_limit=0))
    with service.join():
        assert "try again in a moment" in raced(service)[-1]["text"]


def test_a_draft_that_cannot_be_loaded_is_an_error_and_frees_the_place():
    """Found after the plain lane was measured: a sentence still, and no verdict."""

    def load(name: str) -> Toy:
        if name == "draft":
            raise LoadError("the file of draft is cut short")
        return load_toy(name)

    service = Observed(loader=load)
    told = raced(service)
    assert told[-1] == {"event": "error", "text": "The file of draft is cut short."}
    with service.join() as ticket:
        assert ticket.place == 0


def test_a_drafter_that_finds_nothing_is_told():
    """Plain on both sides: the verdict says that nothing was drafted."""
    told = raced(Observed(), draft="ngram", max_tokens=1)
    assert "Nothing was drafted" in told[-1]["reason"]


def test_a_lane_shows_its_prompt():
    """As it was typed, with no `<` on its way."""
    *_, last = race(Observed(), form(target="target", draft="draft", prompt="Once <b>"), never)
    assert "<" not in last
    starts = [event for event in events(last) if event["event"] == "start"]
    assert [start["prompt"] for start in starts] == ["Once <b>", "Once <b>"]
