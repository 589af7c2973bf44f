"""The plain lane behind a run: when it is measured, what it counts, and who is told of it."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from specdec.records import Finished, Record, Round
from specdec.serving import GenerationRequest, Service
from specdec.stats import Stats
from specdec.trace import Trace
from specdec.ui import baseline, measure
from specdec.ui.baseline import MOST_TOKENS, Baselines, compared, from_measurements
from specdec.ui.traces import events_of
from specdec.ui.verdict import FEW
from specdec.ui.watch import watch
from tests.serving.toys import load_toy
from tests.ui.test_race import Observed
from tests.ui.test_watch import events, form, never

SPECULATIVE = Stats(tokens=90, rounds=30, drafted=90, accepted=60, rejected=20, draft_s=0.1, verify_s=0.2)
SAVED = {"plain_tokens": 30.0, "plain_rounds": 30.0, "plain_verify_s": 0.25, "plain_sample_s": 0.05}


def run(
    service: Service, baselines: Baselines | None = None, cancelled: Callable[[], bool] = never, **changes: Any
) -> list[dict[str, Any]]:
    asked = form(**{"target": "target", "draft": "draft", "max_tokens": 60, "seed": 5} | changes)
    *_, last = watch(service, asked, cancelled, baselines)
    return events(last)


def last(baselines: Baselines, **changes: Any) -> Stats | None:
    """What is remembered of requests like those of `run`."""
    return baselines.last(form(**{"target": "target"} | changes).request())


def named(told: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in told if event["event"] == name]


def test_the_lane_comes_after_the_text_and_before_the_end():
    """All rounds, the lane, its result, the trace, the end; steps of the lane count up from the second on."""
    told = run(Observed())
    names = [event["event"] for event in told]
    order = [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]
    assert order == ["begin", "loading", "start", "round", "comparing", "plain", "compared", "trace", "end"]
    assert [step["tokens"] for step in named(told, "plain")] == list(range(2, MOST_TOKENS + 1))


def test_the_lane_is_the_same_request_without_drafts():
    """Prompt, target, parameters and the seed that was drawn are the run's; it is short, and never overlaps it."""
    service = Observed()
    told = run(service, seed=None)
    own, plain = service.asked
    seed = Trace.from_json(named(told, "trace")[0]["text"]).started.seed
    params = replace(own.params, seed=seed, max_tokens=MOST_TOKENS)
    assert plain == measure.plain(replace(own, params=params))
    assert plain.draft == "none"
    assert service.at_once == 1


def test_the_speed_up_is_the_runs_speed_by_the_lanes():
    """Both without their first round; the trace keeps what it takes to tell it again, and a file does so."""
    told = run(Observed())
    trace = Trace.from_json(named(told, "trace")[0]["text"])
    plain = from_measurements(trace.measurements)
    assert plain is not None
    assert (plain.tokens, plain.rounds) == (MOST_TOKENS - 1, MOST_TOKENS - 1)
    times = Stats.of(trace.rounds[1:]).tokens_per_second / plain.tokens_per_second
    (result,) = named(told, "compared")
    assert result["figures"]["speedup"] == f"{times:.2f}"
    assert named(events(events_of(trace.to_json())), "compared") == [result]


def test_a_slow_target_ends_the_lane_early(monkeypatch: pytest.MonkeyPatch):
    """Engine time is what counts: with no time at all, one step behind the warm-up is measured, if any."""
    monkeypatch.setattr(baseline, "MOST_S", 0.0)
    assert named(run(Observed()), "plain") == []
    monkeypatch.setattr(baseline, "MOST_S", 1e-9)
    service = Observed()
    run(service)
    assert service.rounds < 60


@pytest.mark.parametrize("changes", [{"draft": "none"}, {"lookahead": 0}, {"max_tokens": 1}])
def test_without_drafts_there_is_nothing_to_compare(changes: dict[str, Any]):
    """No lane, no result; the run itself is plain."""
    service = Observed()
    told = run(service, **changes)
    assert len(service.asked) == 1
    assert not named(told, "comparing") + named(told, "compared")
    assert told[-1]["event"] == "end"


def test_a_long_prompt_is_not_read_twice(monkeypatch: pytest.MonkeyPatch):
    """Where prefill took longer than anybody would wait again, the lane is left out."""
    monkeypatch.setattr(baseline, "LONGEST_PREFILL_S", -1.0)
    service = Observed()
    assert not named(run(service), "comparing")
    assert len(service.asked) == 1


def test_a_stopped_run_has_no_lane():
    """Stop is Stop."""
    service = Observed()
    told = run(service, cancelled=lambda: service.rounds >= 3)
    assert (told[-1]["event"], told[-1]["reason"]) == ("end", "cancelled")
    assert len(service.asked) == 1


def test_a_failed_run_has_no_lane():
    """An error is its last event."""

    class Failing(Observed):
        def _stream(self, request: GenerationRequest, *more: Any) -> Any:
            for record in super()._stream(request, *more):
                if isinstance(record, Finished):
                    raise RuntimeError
                yield record

    service = Failing()
    assert run(service)[-1]["event"] == "error"
    assert len(service.asked) == 1


def test_stop_in_the_lane_leaves_it_out():
    """The run ends as it ended, whole and with its trace; nothing is compared or remembered."""
    service, baselines = Observed(), Baselines()
    own: list[int] = []

    def stopped() -> bool:
        if len(service.asked) == 1:
            own.append(service.rounds)
        return len(service.asked) == 2 and service.rounds > own[-1] + 4

    told = run(service, baselines, stopped)
    assert named(told, "plain") and not named(told, "compared")
    assert told[-1]["reason"] == "length"
    assert Trace.from_json(named(told, "trace")[0]["text"]).measurements == {}
    assert last(baselines) is None


def test_the_lane_keeps_the_place_in_the_line():
    """Whoever waits goes on waiting until the lane is measured, and is let in then."""
    service = Observed()
    updates = watch(service, form(target="target", draft="draft"), never)
    next(updates)
    next(updates)
    other = service.join()
    text = ""
    while '"compared"' not in text:
        assert other.place == 1 or '"plain"' in text
        text = next(updates)
    assert other.wait(0)
    other.close()


def test_the_next_run_tells_its_speed_up_from_the_start():
    """Against the lane of the run before with the same target, whatever the draft; then against its own."""
    service, baselines = Observed(loader=load_toy), Baselines()
    first = run(service, baselines)
    assert all(step["figures"].get("speedup", "–") == "–" for step in named(first, "round"))
    before = last(baselines)
    second = run(service, baselines, draft="ngram")
    assert before is not None
    assert named(second, "start")[0]["plain"] == pytest.approx(before.tokens_per_second, rel=1e-3)
    assert float(named(second, "round")[0]["figures"]["speedup"]) > 0
    assert last(baselines) not in (None, before)
    for other in ({"target": "other"}, {"temperature": 0.8 if form().temperature == 0 else 0.0}):
        assert named(run(service, baselines, **other), "start")[0]["plain"] is None


def test_a_plain_run_has_no_speed_up():
    """Whatever is remembered of its target: it is what a speed-up is told against."""
    service, baselines = Observed(), Baselines()
    run(service, baselines)
    plain = run(service, baselines, draft="none")
    assert named(plain, "start")[0]["plain"] is None
    assert all(step["figures"].get("speedup", "–") == "–" for step in named(plain, "round"))


def test_baselines_may_be_shared_between_threads():
    """Eight at once, each with a target of its own: every one is remembered."""
    baselines = Baselines()
    threads = [
        threading.Thread(target=run, args=(Observed(), baselines), kwargs={"target": f"target{i}", "max_tokens": 8})
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(last(baselines, target=f"target{i}") for i in range(8))


def test_a_page_that_goes_away_in_the_lane_frees_the_place():
    """At once, as in the run itself."""
    service = Observed()
    updates = watch(service, form(target="target", draft="draft"), never)
    while '"comparing"' not in next(updates):
        pass
    updates.close()  # type: ignore[attr-defined]
    assert service.under_way == 0
    with service.join() as ticket:
        assert ticket.place == 0


def test_what_is_said_of_the_comparison():
    """The lane's speed and length; where it is slower, that first, with its cause and the number that shows it."""
    (fast,) = events(compared(Stats(tokens=30, rounds=30, verify_s=0.3), SPECULATIVE))
    assert (fast["outcome"], fast["speed"]) == ("faster", 100)
    assert fast["text"] == "Against plain decoding, 100 tokens/s over 30 tokens right after this run."
    few = replace(SPECULATIVE, tokens=32, accepted=2, rejected=30)
    (slow,) = events(compared(Stats(tokens=30, rounds=30, verify_s=0.15), few))
    assert slow["figures"]["versus"] == "×, slower than plain"
    assert slow["text"].startswith("Slower than plain decoding, 200 tokens/s")
    assert slow["text"].endswith(f"{FEW}, α = 6 %.")


def test_a_trace_keeps_the_lane():
    """Four numbers, from which the same statistics come back."""
    plain = from_measurements(SAVED | {"other": 1.0})
    assert plain == Stats(tokens=30, rounds=30, verify_s=0.25, sample_s=0.05)


@pytest.mark.parametrize(
    "changes",
    [
        {"plain_tokens": 0.0},
        {"plain_rounds": -1.0},
        {"plain_tokens": 1e300},
        {"plain_verify_s": 0.0},
        {"plain_verify_s": 1e-320},
        {"plain_sample_s": -1.0},
        {"plain_sample_s": 1e300},
    ],
)
def test_a_strangers_numbers_are_not_believed(changes: dict[str, float]):
    """What no run has is no plain lane; neither is a part of one."""
    assert from_measurements(SAVED | changes) is None
    assert from_measurements({name: SAVED[name] for name in SAVED if name not in changes}) is None


def records_of(told: list[dict[str, Any]]) -> tuple[Record, ...]:
    return Trace.from_json(named(told, "trace")[0]["text"]).records


def test_the_trace_is_the_run_alone():
    """No round of the lane is among its rounds."""
    rounds = [record for record in records_of(run(Observed())) if isinstance(record, Round)]
    assert sum(len(step.tokens) for step in rounds) == 60
