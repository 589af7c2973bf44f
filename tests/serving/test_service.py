"""The one door to an engine: admission, limits, cancellation, and that every way out frees the place."""

import gc
import threading
import time
import weakref
from collections.abc import Iterator

import pytest

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.errors import BusyError, NotFoundError, RequestError
from specdec.records import Finished, Record, Round, Started
from specdec.serving import GenerationRequest, ModelStore, Offer, Service, Settings
from specdec.stats import Stats
from tests.serving.toys import WORDS, Toy, load_toy, toy


def ask(prompt: str = "#0", draft: str = "none", tokens: int = 8, **more: object) -> GenerationRequest:
    """A greedy request to the counting target."""
    params = SamplingParams(max_tokens=tokens, **more)  # type: ignore[arg-type]
    return GenerationRequest(prompt, "target", draft, params=params, speculation=SpeculativeConfig(3))


def counted(start: int, tokens: int) -> str:
    """What the counting target says after word `start`."""
    return "".join(WORDS[(start + 1 + i) % len(WORDS)] for i in range(tokens))


def end(records: Iterator[Record]) -> Finished:
    """The last record of a run."""
    *_, last = records
    assert isinstance(last, Finished)
    return last


def is_free(service: Service) -> bool:
    """Whether the place inside is free at this moment."""
    with service.join() as ticket:
        return ticket.wait(0)


@pytest.fixture
def service() -> Service:
    """A service of toys."""
    return Service(loader=load_toy)


@pytest.mark.parametrize("draft", ["none", "ngram", "draft"])
def test_every_drafter_gives_the_targets_own_text(service: Service, draft: str):
    """Started, rounds, Finished, in this order; the text is the plain target's whatever drafts."""
    records = list(service.stream(ask("#2", draft, 20)))
    assert isinstance(records[0], Started)
    assert all(isinstance(record, Round) for record in records[1:-1])
    assert end(iter(records)).text == counted(2, 20)
    assert is_free(service)


def test_a_drafting_model_is_judged(service: Service):
    """The erring draft model gives all three kinds: kept, refused and corrected, and a bonus."""
    records = list(service.stream(ask(draft="draft", tokens=40)))
    stats = Stats.of(records)
    sources = {token.source for record in records if isinstance(record, Round) for token in record.tokens}
    assert stats.accepted > 0
    assert stats.rejected > 0
    assert {"accepted", "recovered", "bonus"} <= sources


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        (ask("x" * 101), RequestError, "101 characters, 100 are allowed"),
        (ask(tokens=201), RequestError, "max_tokens is 201, 200 are allowed"),
        (GenerationRequest("#0", "../../etc/passwd"), NotFoundError, "no model '../../etc/passwd'"),
        (GenerationRequest("#0", "none"), NotFoundError, "no model 'none'"),
        (GenerationRequest("#0", "target", "https://example.org/x"), NotFoundError, "no model 'https"),
    ],
)
def test_limits_are_checked_before_anything_runs(request_: GenerationRequest, error: type[Exception], message: str):
    """Too long, too much, not on offer: refused at once, with the numbers, and without touching a model."""
    loaded: list[str] = []
    offers = [Offer("target"), Offer("draft")]
    service = Service(Settings(200, 100), lambda name: loaded.append(name) or load_toy(name), offers)  # type: ignore[func-returns-value]
    with pytest.raises(error, match=message):
        service.stream(request_)
    assert loaded == []
    assert end(service.stream(ask("x" * 98 + "#0", tokens=200))).reason == "length"


def test_a_chat_template_is_applied_or_its_absence_said(service: Service):
    """chat=True needs a template; where there is one, the model gets the templated ids."""
    with pytest.raises(RequestError, match="no chat template"):
        list(service.stream(GenerationRequest("hello", "target", chat=True)))
    assert is_free(service)

    def chatty(name: str) -> Toy:
        model = toy(name)
        model.tokenizer.has_chat_template = True
        return model

    first = next(Service(loader=chatty).stream(GenerationRequest("hello", "target", chat=True)))
    assert isinstance(first, Started)
    assert first.prompt_ids == (1,)


def test_a_cancelled_run_ends_before_the_next_round():
    """Once the flag is set, the target does not work again, and what was said so far is kept."""
    model, flag = toy("target"), threading.Event()
    records = Service(loader=lambda name: model).stream(ask(tokens=500), cancelled=flag.is_set)
    seen = [next(records) for _ in range(4)]
    passes = model.network.passes
    flag.set()
    last = end(records)
    assert last.reason == "cancelled"
    assert last.text == counted(0, 3)
    assert last.ids == tuple(token.id for record in seen if isinstance(record, Round) for token in record.tokens)
    assert model.network.passes == passes


def test_text_held_back_is_released_when_a_run_is_cut(service: Service):
    """Text that might have been the start of a stop string belongs to the answer once the run is cancelled."""
    flag = threading.Event()
    records = service.stream(ask(tokens=8, stop=(" three four six",)), cancelled=flag.is_set)
    shown = [next(records) for _ in range(4)]  # started, one, two, three (held back)
    flag.set()
    last = end(records)
    text = "".join(record.text for record in shown if isinstance(record, Round))
    assert last.text == " one two three"
    assert text + last.tail == last.text
    assert last.tail.endswith(" three")


def test_cancelled_while_waiting_is_a_single_record(service: Service):
    """A run that never began says so and leaves the line."""
    with service.join():
        assert list(service.stream(ask(), cancelled=lambda: True)) == [Finished("cancelled", (), "")]
    assert is_free(service)


def test_the_deadline_is_announced_and_kept():
    """The time limit is in the first record; a run that meets it keeps its text and says "length"."""
    service = Service(Settings(max_seconds=0.05), load_toy)
    records = service.stream(ask(tokens=500))
    first = next(records)
    assert isinstance(first, Started)
    assert first.settings["max_seconds"] == 0.05
    next(records)
    time.sleep(0.06)
    last = end(records)
    assert last.reason == "length"
    assert last.text == counted(0, len(last.ids))
    assert len(last.ids) <= 2


def test_closing_frees_the_place(service: Service):
    """A reader that stops reading makes room at once."""
    records = service.stream(ask())
    next(records)
    assert not is_free(service)
    records.close()
    assert is_free(service)


def test_an_error_in_the_reader_frees_the_place(service: Service):
    """A reader that fails makes room once its error has been dealt with."""

    def read() -> None:
        for record in service.stream(ask()):
            if isinstance(record, Round):
                raise KeyError("reader")

    with pytest.raises(KeyError):
        read()
    gc.collect()
    assert is_free(service)


def test_a_dropped_stream_frees_the_place(service: Service):
    """A stream that is forgotten in the middle makes room when it is collected; one never begun takes none."""
    records = service.stream(ask())
    next(records)
    unread = service.stream(ask())
    del records
    gc.collect()
    assert is_free(service)
    del unread
    assert is_free(service)


def test_an_error_in_the_engine_or_the_loader_frees_the_place():
    """Neither a broken model nor a missing one blocks the next request."""

    def loader(name: str) -> Toy:
        if name == "missing":
            raise NotFoundError("there is no model 'missing'")
        model = toy(name)
        model.network.forward = lambda *_, **__: 1 / 0  # type: ignore[method-assign, assignment, return-value]
        return model

    service = Service(loader=loader)
    with pytest.raises(ZeroDivisionError):
        list(service.stream(ask()))
    assert is_free(service)
    with pytest.raises(NotFoundError):
        list(service.stream(GenerationRequest("#0", "missing")))
    assert is_free(service)


def test_requests_are_served_in_the_order_in_which_they_came(service: Service):
    """Eight wait; each begins only after the one before it has ended."""
    order: list[int] = []

    def run(number: int) -> None:
        assert end(service.stream(ask(f"#{number}", tokens=3), ticket=tickets[number])).text == counted(number, 3)
        order.append(number)

    with service.join():
        tickets = [service.join() for _ in range(8)]
        threads = [threading.Thread(target=run, args=(number,)) for number in reversed(range(8))]
        for thread in threads:
            thread.start()
        assert [ticket.place for ticket in tickets] == list(range(1, 9))
    for thread in threads:
        thread.join(30)
    assert order == list(range(8))


def test_busy_beyond_the_queue_limit():
    """The one that finds the line full is told at once; those admitted all finish."""
    service = Service(Settings(queue_limit=1), load_toy)
    running = service.stream(ask(tokens=4))
    next(running)
    with service.join() as waiting:
        with pytest.raises(BusyError):
            next(service.stream(ask()))
        assert end(running).reason == "length"
        assert end(service.stream(ask("#3", tokens=2), ticket=waiting)).text == counted(3, 2)


def test_requests_at_once_do_not_mix(service: Service):
    """Twelve threads, three drafters, different prompts: everybody gets the answer to its own question."""
    answers: dict[int, str] = {}

    def run(number: int) -> None:
        draft = ("none", "ngram", "draft")[number % 3]
        answers[number] = end(service.stream(ask(f"#{number % 8}", draft, 10 + number))).text

    threads = [threading.Thread(target=run, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == {number: counted(number % 8, 10 + number) for number in range(12)}
    assert is_free(service)


def test_warming_up_leaves_both_models_ready(service: Service):
    """After it nothing is left to load, and the place is free."""
    assert not service.holds("target", "draft")
    service.warm_up("target", "draft")
    assert service.holds("target", "draft")
    assert service.holds("target", "ngram")
    assert is_free(service)


def test_what_a_pair_learnt_outlives_its_models():
    """The same pair keeps its measurements and breakers, and no model is kept alive by them once the store drops it."""
    service = Service(loader=load_toy)
    sizes = {"target": 1, "draft": 1, "other": 8_000}
    service._store = ModelStore(load_toy, 8_000, lambda model: sizes[model.name])
    end(service.stream(ask(draft="draft", tokens=20)))
    known = service._guard(("target", "draft"))
    assert known.timings.passes
    kept = weakref.ref(service._store.get("draft"))
    end(service.stream(GenerationRequest("#0", "other", params=SamplingParams(max_tokens=2))))
    gc.collect()
    assert kept() is None
    end(service.stream(ask(draft="draft", tokens=20)))
    assert service._guard(("target", "draft")) is known
    assert service._guard(("target", "none")) is not known


@pytest.mark.parametrize(("params", "reason"), [({"stop": (" three",)}, "stop"), ({"stop_token_ids": (3,)}, "stop")])
def test_the_runs_own_end_comes_first(service: Service, params: dict[str, object], reason: str):
    """A flag set, or a deadline passed, once the last round is out changes nothing: no stop string slips through."""
    expected = end(service.stream(ask(tokens=20, **params)))
    assert expected.reason == reason
    assert " three" not in expected.text
    flag = threading.Event()
    for record in service.stream(ask(tokens=20, **params), cancelled=flag.is_set):
        if isinstance(record, Round) and record.last:
            flag.set()
    assert record == expected


def test_a_deadline_that_passes_after_the_last_round_is_not_one():
    """A reader that takes its time with the last round still gets the run's own end."""
    service = Service(Settings(max_seconds=0.3), loader=load_toy)
    for record in service.stream(ask(tokens=20, stop=(" three",))):
        if isinstance(record, Round) and record.last:
            time.sleep(0.4)
    assert isinstance(record, Finished)
    assert (record.reason, record.text) == ("stop", " one two")
