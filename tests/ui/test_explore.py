"""A sweep as the page follows it: what runs in which order, how progress is told, and how it ends."""

import itertools
import threading
from dataclasses import asdict
from typing import Any

import pytest

from specdec.errors import LoadError
from specdec.serving import Offer, Service, Settings
from specdec.stats import Stats
from specdec.ui.explore import Wanted, explore
from specdec.ui.measure import WARM_UP_TOKENS
from tests.serving.toys import Toy, load_toy, toy
from tests.ui.test_race import Observed
from tests.ui.test_watch import events, form, never

OFFERS = [Offer("target", 100, "target"), Offer("draft", 10, "draft"), Offer("draft two", 5, "draft")]


def wanted(**changes: Any) -> Wanted:
    own = {"vary": "lookahead", "most": 3.0, "tokens": 24.0}
    pair = {"target": "target", "draft": "draft"}
    asked = form(**pair | {name: value for name, value in changes.items() if name not in own})
    return Wanted(**asdict(asked) | {name: changes.get(name, value) for name, value in own.items()})


def explored(service: Service, **changes: Any) -> list[dict[str, Any]]:
    *_, last = explore(service, wanted(**changes), never)
    return events(last)


def kinds(told: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in told if event["event"] != "round"]


def free(service: Service) -> bool:
    with service.join() as ticket:
        return ticket.place == 0


def test_plain_runs_take_turns_with_every_k_after_a_warm_up():
    """The same request each time but for the draft and k; never two at once; the warm-up counts nowhere."""
    service = Observed()
    told = explored(service, temperature=0.0)
    asked = [(each.draft, each.speculation.num_speculative_tokens, each.params.max_tokens) for each in service.asked]
    plain = ("none", 0, 24)
    drafted = [("draft", k, 24) for k in (1, 2, 3)]
    assert asked == [("draft", 3, WARM_UP_TOKENS), plain, *drafted[:2], plain, drafted[2], plain]
    assert service.at_once == 1
    assert len({(each.prompt, each.params.seed, each.params.temperature) for each in service.asked}) == 1
    assert service.asked[0].params.seed is not None
    assert [each.speculation.top for each in service.asked] == [0] * 7
    alone = [Stats.of(service.stream(request)).mean_acceptance_length for request in service.asked[2:4]]
    assert [row[5] for row in told[-2]["rows"]][1:3] == [f"{tau:.2f}" for tau in alone]


def test_events_come_in_order_and_points_one_by_one():
    """Each run is announced with its place; after it the page knows all that was measured so far."""
    told = explored(Observed())
    assert kinds(told) == ["begin", "plan", "loading", *["step", "lookahead"] * 6, "found"]
    steps = [(event["text"], event["n"], event["of"]) for event in told if event["event"] == "step"]
    names = ["plain", "k = 1", "k = 2", "plain", "k = 3", "plain"]
    assert steps == [(name, place, 6) for place, name in enumerate(names, 1)]
    assert [len(event["points"]) for event in told if event["event"] == "lookahead"] == [0, 1, 2, 2, 3, 3]
    assert told[-1]["note"] == "Finished."
    assert "k = " in told[-1]["text"]


def test_progress_only_grows_and_is_told_ten_times_a_run():
    """In runs, as a fraction."""
    done = [event["done"] for event in explored(Observed(), tokens=100.0) if event["event"] == "round"]
    assert all(one < two for one, two in itertools.pairwise(done))
    assert len(done) <= 60
    assert done[-1] == 6


def test_updates_only_grow():
    """Every update begins with the one before it."""
    updates = list(explore(Observed(), wanted(), never))
    assert all(after.startswith(before) for before, after in itertools.pairwise(updates))


def test_every_pair_that_fits_is_measured_where_models_vary():
    """At the k of the settings, plain decoding in turns; a draft with another tokenizer costs itself only."""

    def load(name: str) -> Toy:
        return toy(name, words=("other", " words")) if name == "foreign" else load_toy(name)

    service = Observed(loader=load, offers=[*OFFERS, Offer("foreign", 1, "draft")])
    told = explored(service, vary="models", lookahead=2.0)
    assert [each.draft for each in service.asked if each.params.max_tokens == 24] == [
        "none",
        "draft",
        "draft two",
        "none",
    ]
    assert {each.speculation.num_speculative_tokens for each in service.asked if each.draft != "none"} == {2}
    (row,) = told[-2]["rows"]
    assert told[-2]["columns"] == ["draft", "draft two", "foreign"]
    assert ["times" in cell for cell in row["cells"]] == [True, True, False]
    assert "foreign cannot draft for target" in row["cells"][2]["note"].lower()
    assert [event["n"] for event in told if event["event"] == "step"] == [1, 2, 3, 4]


def test_models_vary_with_the_k_that_the_engine_chooses_too():
    """`auto` is measured like any other."""
    told = explored(Observed(offers=OFFERS), vary="models", auto=True)
    assert told[-1]["event"] == "found"


@pytest.mark.parametrize("after", [3, WARM_UP_TOKENS + 10, WARM_UP_TOKENS + 24 + 3])
def test_stop_takes_effect_within_a_round(after: int):
    """While warming up, in a plain run, in a speculative one; what was measured stays, the rest is not told."""
    service = Observed()
    *_, last = explore(service, wanted(), lambda: service.rounds >= after)
    told = events(last)
    assert service.rounds == after
    assert told[-1]["event"] == "stopped"
    assert told[-1]["text"].startswith("Stopped after ")
    assert free(service)


def test_stop_while_waiting_measures_nothing():
    """Somebody else's turn is not disturbed."""
    service, flag = Observed(), threading.Event()
    with service.join():
        updates = explore(service, wanted(), flag.is_set)
        told = list(itertools.islice(updates, 3))
        assert events(told[-1])[-1] == {"event": "waiting", "place": 1}
        flag.set()
        *_, last = updates
    assert events(last)[-1] == {"event": "stopped", "text": "Stopped after 0 of 6 runs."}
    assert service.asked == []


def test_a_sweep_lasts_no_longer_than_a_generation_may(monkeypatch: pytest.MonkeyPatch):
    """A clock that goes a second each time it is read: some runs are measured, the rest is given up, and it says so."""
    clock = itertools.count()
    monkeypatch.setattr("specdec.ui.explore.monotonic", lambda: float(next(clock)))
    told = explored(Observed(settings=Settings(max_seconds=90)))
    assert told[-1]["event"] == "found"
    assert told[-1]["note"].startswith("The time limit was reached after ")
    assert len([event for event in told if event["event"] == "lookahead"]) in range(2, 6)


def test_closing_the_page_frees_the_engine():
    """In the middle of a run, at once; until then whoever comes waits."""
    service = Observed()
    updates = explore(service, wanted(), never)
    while service.rounds < WARM_UP_TOKENS + 30:
        next(updates)
    with service.join() as other:
        assert other.place == 1
        updates.close()  # type: ignore[attr-defined]
        assert other.place == 0
    assert service.under_way == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"draft": "none"}, "Choose a drafter: without drafts there is no k to explore."),
        ({"most": 0.0}, "Choose a largest k of 1 or more."),
        ({"most": 40.0}, "Num_speculative_tokens must lie between 0 and 15"),
        ({"tokens": 10_000.0}, "Max_tokens is 10,000, 512 are allowed here."),
        ({"vary": "models", "lookahead": 0.0}, "Model sizes need a lookahead k of 1 or more"),
        ({"vary": "everything"}, "Vary must be one of"),
        ({"seed": -1.0}, "Seed must lie between 0 and"),
    ],
)
def test_errors_are_a_sentence(changes: dict[str, Any], said: str):
    """Before anything runs."""
    service = Observed(offers=OFFERS)
    told = explored(service, **changes)
    assert (told[-1]["event"], service.asked) == ("error", [])
    assert told[-1]["text"].startswith(said)


def test_no_draft_model_on_offer_is_an_error():
    """Model sizes need two."""
    told = explored(Observed(offers=OFFERS[:1]), vary="models")
    assert told[-1]["text"].startswith("Model sizes need")


def test_a_draft_that_cannot_be_loaded_is_an_error_and_frees_the_place():
    """A sentence, and nothing measured, where k varies."""

    def load(name: str) -> Toy:
        if name == "draft":
            raise LoadError("the file of draft is cut short")
        return load_toy(name)

    service = Observed(loader=load)
    assert explored(service)[-1] == {"event": "error", "text": "The file of draft is cut short."}
    assert free(service)
