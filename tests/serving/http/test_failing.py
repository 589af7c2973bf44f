"""What goes wrong in the middle: every stream ends with an event that says so."""

import threading
from collections.abc import Callable
from itertools import islice, product
from typing import Any

import httpx
import pytest

from specdec.errors import LoadError, NumericalError
from specdec.serving import Service, Settings
from specdec.serving.http import wire
from specdec.serving.http.errors import explain
from tests.serving.http.servers import OFFERS, chatty, gated, is_free, parse, service_of, serving, streamed
from tests.serving.http.test_refusals import SECRETS, refused
from tests.serving.toys import Toy, load_toy

BODY = {"model": "target", "prompt": "SECRET#0", "max_tokens": 60}


class Faulty:
    """A loader of toys whose target fails on its `at`-th pass."""

    def __init__(self) -> None:
        self.at = -1
        self.passes = 0
        self.error: Callable[[], Exception] = lambda: ZeroDivisionError("/specdec/SECRET.py")

    def __call__(self, name: str) -> Toy:
        model = chatty(name)
        if name == "target":
            usual = model.network.forward
            model.network.forward = lambda *a, **o: usual(*a, **o) if self._sound() else []  # type: ignore[method-assign, assignment]
        return model

    def _sound(self) -> bool:
        self.passes += 1
        if self.passes == self.at:
            raise self.error()
        return True


ENDPOINTS = {
    "/generate": {"prompt": "SECRET#0"},
    "/v1/completions": {"model": "target", "prompt": "SECRET#0", "stream": True},
    "/v1/chat/completions": {"model": "target", "messages": [{"role": "user", "content": "SECRET"}], "stream": True},
}
POINTS = list(product(ENDPOINTS.items(), ("none", "draft"), (NumericalError, ZeroDivisionError), range(1, 18)))


def test_no_stream_ends_without_saying_how():
    """204 points of failure, each met and not tried again: a last event has the request's own id and no secret."""
    faulty = Faulty()
    service = service_of(loader=faulty)
    failed = 0
    with serving(service) as client:
        for (path, body), draft, error, at in POINTS:
            faulty.passes, faulty.at, faulty.error = 0, at, error
            own = {"X-Request-ID": f"point-{failed}"}
            name, last = streamed(client, path, body | {"draft": draft, "max_tokens": 80}, own)[-1]
            failed += faulty.passes == at
            assert name == ("error" if path == "/generate" else None)
            assert set(last) == {"error", "request_id"}
            assert last["error"]["code"] == "internal_error"
            assert last["request_id"] == own["X-Request-ID"]
            assert not [secret for secret in SECRETS if secret in str(last)]
            assert is_free(service)
    assert failed == len(POINTS) >= 200


@pytest.mark.parametrize("error", [ZeroDivisionError, lambda: httpx.ConnectError("down")], ids=["fault", "network"])
def test_an_answer_in_one_piece_fails_with_a_status(error: Callable[[], Exception]):
    """500 in the one shape after the third pass, with none behind it: a generation is not repeated, as a download is
    after the same error; the next request is served."""
    faulty = Faulty()
    with serving(service_of(loader=faulty)) as client:
        faulty.passes, faulty.at, faulty.error = 0, 3, error
        assert refused(client.post("/v1/completions", json=BODY), 500)["type"] == "server_error"
        assert faulty.passes == 3
        assert client.post("/v1/completions", json=BODY).status_code == 200


def test_a_model_that_cannot_be_loaded():
    """503 without the file's name, in a stream as an event since that began before; and the server is not ready."""

    def broken(name: str) -> Toy:
        raise LoadError(f"/home/SECRET/{name}.gguf is truncated")

    with serving(service_of(loader=broken, warm=False)) as client:
        assert refused(client.post("/v1/completions", json=BODY), 503)["code"] == "model_unavailable"
        name, last = streamed(client, "/generate", BODY)[-1]
        assert (name, last["error"]["code"]) == ("error", "model_unavailable")
        assert "SECRET" not in str(last)
        assert refused(client.get("/readyz"), 503)["code"] == "not_ready"


def test_a_drafter_that_fails_costs_its_drafts_only():
    """The text is the target's own, and the answer is no error."""

    def loader(name: str) -> Toy:
        model = load_toy(name)
        if name == "draft":
            model.network.forward = lambda *_, **__: 1 / 0  # type: ignore[method-assign, assignment, return-value]
        return model

    with serving(service_of(loader=loader)) as client:
        done = streamed(client, "/generate", {"prompt": "#0", "max_tokens": 4})[-1][1]
    assert done["text"] == " one two three four"


def test_unknown_errors_tell_nothing():
    """Whatever an exception says, a client hears one sentence."""
    for error in (KeyError("SECRET"), OSError("/SECRET"), MemoryError(), RecursionError("SECRET")):
        assert explain(error).status == 500
        assert "SECRET" not in str(explain(error).body())


def test_signs_of_life_while_nothing_comes(monkeypatch: pytest.MonkeyPatch):
    """Comments while models load or a long prompt is read; the events follow when they are there."""
    monkeypatch.setattr("specdec.serving.http.wire.PING_S", 0.05)
    gate = threading.Event()

    def loader(name: str) -> Toy:
        gate.wait(30)
        return load_toy(name)

    with (
        serving(service_of(loader=loader, warm=False)) as client,
        client.stream("POST", "/generate", json={"prompt": "#0", "max_tokens": 2}) as answer,
    ):
        events = parse(answer.iter_lines())
        assert [next(events)[0] for _ in range(5)] == ["comment"] * 5
        gate.set()
        names = [name for name, _ in events if name != "comment"]
    assert (names[0], names[-1]) == ("started", "done")


@pytest.mark.parametrize("path", ["/generate", "/v1/completions"])
def test_signs_of_life_while_a_long_prompt_is_read(path: str, monkeypatch: pytest.MonkeyPatch):
    """Warm models that take long: five comments before the first token; unpatched one comes every 15 s or sooner."""
    assert wire.PING_S <= 15
    monkeypatch.setattr(wire, "PING_S", 0.05)
    gate = threading.Event()
    gate.set()
    with serving(service_of(loader=gated(gate))) as client:
        gate.clear()
        with client.stream("POST", path, json=ENDPOINTS[path] | {"max_tokens": 2}) as answer:
            events = parse(answer.iter_lines())
            first = [name for name, _ in islice(events, 6)]
            gate.set()
            said = str(list(events))
    assert first == ["started" if path == "/generate" else "comment"] + ["comment"] * 5
    assert " one" in said


def test_ready_only_once_it_is_warm():
    """Health is told at once; readiness when the default pair is loaded and has taken a step."""
    service = service_of(warm=False)
    with serving(service) as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        answer = client.get("/readyz")
        assert refused(answer, 503)["code"] == "not_ready"
        assert answer.headers["retry-after"]
        service.warm_up("target", "draft")
        assert client.get("/readyz").json() == {"status": "ready"}


def test_a_folder_is_offered_by_its_name(tmp_path: Any):
    """A model of the server's own disk is called by the last part of its path, and nothing else shows that."""
    from specdec.serving import Offer

    folder = tmp_path / "SECRET" / "mine"
    folder.mkdir(parents=True)
    service = Service(Settings(), load_toy, (Offer(str(folder), None), *OFFERS))
    with serving(service) as client:
        assert "SECRET" not in client.get("/v1/models").text
        answer = client.post("/v1/completions", json={"model": "mine", "prompt": "#0", "temperature": 0})
        assert answer.json()["model"] == "mine"
        assert client.post("/generate", json={"prompt": "#0", "model": str(folder)}).status_code == 404
        assert "SECRET" not in str(streamed(client, "/generate", {"prompt": "#0"})[0])
