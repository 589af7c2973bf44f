"""Models that arrive while the service runs: what may be fetched, what is refused, how it ends."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specdec.checkpoints import DEFAULT_TARGET
from specdec.config import SamplingParams
from specdec.errors import BusyError, NotFoundError, RequestError
from specdec.records import Finished
from specdec.serving import GenerationRequest, Job, Offer, Service, Settings, catalogue
from tests.attacks.files import tiny_model
from tests.attacks.test_hostile_names import NAMES
from tests.checkpoints.servers import Hub, out_of_reach, serving

REPOSITORY = "toys/tiny"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A stand-in Hub of one small model, empty caches."""
    out_of_reach(tmp_path, monkeypatch)
    folder = tiny_model(tmp_path / "tiny")
    with serving(Hub(REPOSITORY, {path.name: path.read_bytes() for path in folder.iterdir()})) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub


@pytest.fixture
def service(hub: Hub) -> Service:
    """A service that offers the bundled models."""
    return Service(offers=catalogue())


def wait(service: Service, until: Callable[[Job], bool]) -> Job:
    """The job, once it is as it should be."""
    ends = time.monotonic() + 60
    while not ((job := service.bringing.job) and until(job)):
        assert time.monotonic() < ends, job
        time.sleep(0.01)
    return job


def ended(service: Service) -> Job:
    """The job, once it is over."""
    return wait(service, lambda job: not job.running)


def ask(target: str, draft: str = "ngram") -> GenerationRequest:
    return GenerationRequest("Once", target, draft, params=SamplingParams(max_tokens=4))


def test_a_model_arrives_and_runs(service: Service):
    """Refused before, offered with its size after, and it generates; the other offers stay as they were."""
    before = service.offers
    with pytest.raises(NotFoundError, match="no model"):
        service.check(ask(REPOSITORY))
    service.bringing.start(REPOSITORY)
    job = ended(service)
    assert (job.phase, job.problem) == ("done", "")
    assert service.offers[:-1] == before
    assert service.offers[-1].name == REPOSITORY
    assert service.offers[-1].parameters == 8_752
    *_, last = service.stream(ask(REPOSITORY))
    assert isinstance(last, Finished)
    assert len(last.ids) == 4


def test_progress_is_in_bytes_and_runs_are_not_held_up(service: Service, hub: Hub):
    """While a file is on its way, the job says how far it is, and a generation goes through."""
    hub.held["model.safetensors"] = threading.Event()
    service.bringing.start(REPOSITORY)
    job = wait(service, lambda job: job.phase == "fetching" and job.done > 0)
    assert job.done < sum(map(len, hub.files.values()))
    *_, last = service.stream(ask(DEFAULT_TARGET))
    assert isinstance(last, Finished)
    hub.held["model.safetensors"].set()
    assert ended(service).phase == "done"


def test_one_at_a_time_and_it_can_be_cancelled(service: Service, hub: Hub):
    """A second one is told to wait; a cancelled one is not offered, and can be begun again."""
    gate = hub.held["model.safetensors"] = threading.Event()
    service.bringing.start(REPOSITORY)
    wait(service, lambda job: job.phase == "fetching")
    with pytest.raises(BusyError, match=f"{REPOSITORY} is being fetched, one at a time"):
        service.bringing.start("gpt2")
    service.bringing.cancel()
    gate.set()
    assert ended(service).phase == "cancelled"
    assert REPOSITORY not in {offer.name for offer in service.offers}
    service.bringing.start(REPOSITORY)
    assert ended(service).phase == "done"


@pytest.mark.parametrize("name", ["gpt2-xl", REPOSITORY])
def test_what_does_not_fit_is_refused_before_its_weights_are_asked_for(
    service: Service, hub: Hub, name: str, monkeypatch: pytest.MonkeyPatch
):
    """With both numbers; of a stranger's model its configuration alone is fetched."""
    monkeypatch.setattr("specdec.serving.bringing.available_bytes", lambda: 20_000)
    service.bringing.start(name)
    job = ended(service)
    assert job.phase == "failed"
    assert f"{name} needs " in job.problem
    assert "MiB are available" in job.problem
    assert hub.downloaded() <= {"config.json"}


def test_models_that_could_be_let_go_count_as_room(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    """Memory that loaded models take does not speak against another one."""
    service = Service(offers=catalogue())
    service.warm_up(DEFAULT_TARGET, "none")
    monkeypatch.setattr("specdec.serving.bringing.available_bytes", lambda: 0)
    service.bringing.require_room("x", 10_000_000)
    service.bringing.start(REPOSITORY)
    assert ended(service).phase == "done"


def test_offline_is_said_in_one_sentence(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Known or not: what is not here, and that the Hub is out of reach."""
    out_of_reach(tmp_path, monkeypatch)
    for name in ("gpt2", "somebody/model"):
        service.bringing.start(name)
        job = ended(service)
        assert job.phase == "failed"
        assert job.problem.endswith("is not on this machine, and the Hugging Face Hub is out of reach")


def test_what_the_hub_does_not_have_and_what_does_not_run_here(service: Service, hub: Hub):
    """404 is not "offline"; another architecture is refused by its configuration, before its weights."""
    service.bringing.start("toys/other")
    assert ended(service).problem == "the Hugging Face Hub has no public model toys/other"
    hub.files["config.json"] = b'{"model_type": "t5"}'
    service.bringing.start(REPOSITORY)
    assert "t5" in ended(service).problem
    assert hub.downloaded() == {"config.json"}


def test_a_folder_on_this_machine_is_offered_as_it_lies(service: Service, hub: Hub, tmp_path: Path):
    """Without the network, by its path."""
    service.bringing.start(str(tmp_path / "tiny"))
    assert ended(service).phase == "done"
    assert service.offers[-1] == Offer(str(tmp_path / "tiny"), 8_752)
    assert hub.requests == []


@pytest.mark.parametrize("allowed", ["known", "any"])
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_hostile_names_are_refused_at_once(name: str, allowed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """No job, no thread, one short printable sentence; an existing folder without a model is none of them."""
    monkeypatch.chdir(tmp_path)
    service = Service(Settings(bring=allowed), offers=())
    monkeypatch.setattr(threading.Thread, "start", lambda thread: None)
    try:
        service.bringing.start(name)
    except NotFoundError as error:
        assert str(error).isprintable()
        assert len(str(error)) < 500
        assert service.bringing.job is None
    else:
        assert allowed == "any"
        assert Path(name).expanduser().is_dir()  # "..", "~" and their like are folders of the user's own


def test_a_shared_page_fetches_known_names_or_nothing(tmp_path: Path):
    """Neither a path that exists nor a stranger's repository where only known ones may be; nothing where it is off."""
    folder = tiny_model(tmp_path / "tiny")
    service = Service(Settings(bring="known"), offers=())
    for name in (str(folder), REPOSITORY):
        with pytest.raises(NotFoundError, match="only these are fetched here"):
            service.bringing.start(name)
    with pytest.raises(RequestError, match="machine of your own"):
        Service(Settings(bring="off"), offers=()).bringing.start("gpt2")


def test_an_offer_that_is_there_keeps_its_place():
    """Brought once more, it is replaced where it stands, so that the defaults stay the defaults."""
    service = Service(offers=[Offer("a"), Offer("b")])
    service.add(Offer("a", 7))
    service.add(Offer("c"))
    assert service.offers == (Offer("a", 7), Offer("b"), Offer("c"))
