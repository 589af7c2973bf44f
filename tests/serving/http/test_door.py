"""Who may come in, and how often."""

from dataclasses import replace

import pytest

from specdec.serving import Settings
from specdec.serving.http.door import MAX_CLIENTS, Rate
from tests.serving.http.servers import ANYBODY, service_of, serving
from tests.serving.http.test_refusals import GENERATE, refused


def test_a_key_opens_everything_but_health():
    """Wrong, missing, empty and strange keys are 401; health and readiness are for everybody."""
    with serving(service_of(replace(ANYBODY, api_key="s3cret-é"))) as client:
        for value in (
            "",
            "Bearer",
            "Bearer wrong",
            "s3cret-é",
            "Basic s3cret-é",
            "Bearer s3cret-é x",
            "Bearer \xff",
        ):
            for path in ("/v1/models", "/generate", "/nowhere"):
                answer = client.get(path, headers={b"authorization": value.encode("latin-1")})
                refused(answer, 401)
                assert answer.headers["www-authenticate"] == "Bearer"
        for path in ("/healthz", "/readyz"):
            assert client.get(path).status_code == 200
        key = {b"authorization": b"Bearer " + "s3cret-é".encode()}
        assert client.get("/v1/models", headers=key).status_code == 200
        assert client.post("/generate", json=GENERATE, headers=key).status_code == 200


def test_the_key_is_in_no_text_of_the_settings():
    """Settings that are printed or logged do not tell it."""
    settings = Settings.from_environment({"SPECDEC_API_KEY": "s3cret"})
    assert settings.api_key == "s3cret"
    assert "s3cret" not in repr(settings)


def test_so_many_requests_a_minute():
    """The one beyond is 429 with when to come again; headers that name another client do not help; health goes on."""
    with serving(service_of(replace(ANYBODY, requests_per_minute=5))) as client:
        for _ in range(5):
            assert client.get("/v1/models").status_code == 200
        for forged in ({}, {"x-forwarded-for": "1.2.3.4"}, {"forwarded": "for=1.2.3.4"}, {"x-real-ip": "1.2.3.4"}):
            answer = client.post("/generate", json=GENERATE, headers=forged)
            assert "at most 5 requests a minute" in refused(answer, 429)["message"]
            assert 50 <= int(answer.headers["retry-after"]) <= 60
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("limit", [1, 7])
def test_a_minute_slides(limit: int):
    """A request is allowed exactly a minute after the one whose place it takes; each client has its own."""
    now = [0.0]
    rate = Rate(limit, lambda: now[0])
    for second in range(limit):
        now[0] = second
        assert rate.wait("a") == 0
    assert rate.wait("a") == pytest.approx(60 - now[0])
    assert rate.wait("b") == 0
    now[0] = 59.999
    assert 0 < rate.wait("a") < 0.01
    now[0] = 60
    assert rate.wait("a") == 0
    assert rate.wait("a") > 0


def test_many_clients_cost_little_memory():
    """However many addresses come, only the latest are remembered; without a limit nothing is."""
    rate = Rate(1, lambda: 0.0)
    for client in range(MAX_CLIENTS + 500):
        rate.wait(str(client))
    assert len(rate._seen) == MAX_CLIENTS
    free = Rate(0, lambda: 0.0)
    assert [free.wait("a") for _ in range(1_000)] == [0.0] * 1_000


def test_refused_requests_do_not_count():
    """A client that waits as it is told gets in."""
    now = [0.0]
    rate = Rate(1, lambda: now[0])
    assert rate.wait("a") == 0
    for second in range(1, 60):
        now[0] = second
        assert rate.wait("a") == 60 - second
    now[0] = 60
    assert rate.wait("a") == 0
