"""The tab Bring a model: what it tells, what it answers."""

import threading
from pathlib import Path
from typing import Any

import pytest

from specdec.errors import RequestError
from specdec.serving import Job, Offer, Service, Settings
from specdec.ui import bring
from tests.attacks.test_hostile_names import NAMES
from tests.checkpoints.servers import out_of_reach


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Known names only, on a machine that has none of them."""
    out_of_reach(tmp_path, monkeypatch)
    return Service(Settings(bring="known"), offers=[Offer("gpt2")])


def functions(service: Service) -> dict[str, Any]:
    """What the browser may call."""
    return {call.__name__: call for call in bring.functions(service)}


def test_each_known_model_says_what_it_takes(service: Service):
    """Parameters, download, memory, licence; with what it is used; whether it is on offer."""
    rows = {row["name"]: row for row in bring.look(service)["models"]}
    assert len(rows) == 8
    row = rows["smollm2-1.7b-instruct"]
    assert row["facts"] == ["1.71 B parameters", "3.4 GB to download", "7.9 GB of memory", "Apache-2.0"]
    assert row["use"] == "Drafter: n-gram lookup, smollm2-135m-instruct, smollm2-360m-instruct."
    assert rows["distilgpt2"]["use"] == "A draft for its larger relatives."
    assert [name for name, row in rows.items() if row["offered"]] == ["gpt2"]
    assert not any(row["here"] for row in rows.values())


def test_what_does_not_fit_says_so_before_anybody_clicks(service: Service, monkeypatch: pytest.MonkeyPatch):
    """One sentence with both numbers, for those that are too large and for no others."""
    monkeypatch.setattr("specdec.serving.bringing.available_bytes", lambda: 4 << 30)
    refused = {row["name"]: row["refused"] for row in bring.look(service)["models"]}
    assert [name for name, said in refused.items() if said] == ["smollm2-1.7b-instruct", "gpt2-xl"]
    assert refused["gpt2-xl"].startswith("gpt2-xl needs 6,833 MiB of memory")
    assert refused["gpt2-xl"].endswith("4,096 MiB are available.")


@pytest.mark.parametrize("name", [*NAMES, None, 3, ["gpt2"], {"name": "gpt2"}], ids=ascii)
def test_the_browser_can_ask_for_nothing_but_names(service: Service, name: Any, monkeypatch: pytest.MonkeyPatch):
    """Whatever a request holds: a sentence, no job."""
    monkeypatch.setattr(threading.Thread, "start", lambda thread: pytest.fail("a download was begun"))
    answer = functions(service)["fetch"](name)
    assert list(answer) == ["error"]
    assert answer["error"].startswith("Only these are fetched here")
    assert service.bringing.job is None


def test_where_nothing_may_be_brought_nothing_is(service: Service):
    """Off: the list is shown, a request is answered with a sentence."""
    off = Service(Settings(bring="off"), offers=())
    assert bring.look(off)["allowed"] == "off"
    assert "machine of your own" in functions(off)["fetch"]("gpt2")["error"]
    with pytest.raises(RequestError):
        off.bringing.start("gpt2")


def test_a_model_that_is_said_to_be_there_is_in_the_lists(service: Service, monkeypatch: pytest.MonkeyPatch):
    """It arrives while the lists are being made: the browser, told that it goes on, asks once more."""
    bringing = service.bringing
    monkeypatch.setattr(bringing, "_job", Job("gpt2-medium", "fetching"))
    known = bringing.models()

    def arriving() -> list[Any]:
        bringing._end("done")
        return known

    monkeypatch.setattr(bringing, "models", arriving)
    seen = bring.look(service)
    assert seen["job"]["running"]
    assert not bring.look(service)["job"]["running"]


@pytest.mark.parametrize(
    ("job", "said", "share"),
    [
        (Job("x"), "Asking the Hugging Face Hub …", 0),
        (Job("x", "fetching", 1_500_000, 6_000_000), "1.5 MB of 6.0 MB", 0.25),
        (Job("x", "fetching", 2_000_000_000, 4_000_000_000), "2.0 GB of 4.0 GB", 0.5),
        (Job("x", "done", 5, 5), "x is in the lists of models now.", 1),
        (Job("x", "failed", problem="the Hub is out of reach"), "The Hub is out of reach.", 0),
        (Job("x", "cancelled"), "Cancelled.", 0),
    ],
)
def test_a_download_is_told_in_bytes_and_sentences(job: Job, said: str, share: float):
    """How far it is while it runs, one sentence when it has ended."""
    told = bring.job_row(job)
    assert told is not None
    assert (told["said"], told["share"]) == (said, share)


def test_offline_ends_in_a_sentence(service: Service):
    """A click, then what the page asks while it waits."""
    calls = functions(service)
    job = calls["fetch"]("gpt2")["job"]
    while (job := calls["progress"]("")["job"] or job)["running"]:
        threading.Event().wait(0.02)
    assert job["said"].endswith("is not on this machine, and the Hugging Face Hub is out of reach.")
    assert calls["cancel"]("")["job"] == job
