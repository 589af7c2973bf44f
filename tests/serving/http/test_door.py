"""Who may come in, and how often."""

import asyncio
from dataclasses import replace

import httpx
import pytest

from specdec.serving import Settings
from specdec.serving.http.door import MAX_CLIENTS, Rate
from specdec.ui.server import create_app
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


ASKED = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}


def allowed(answer: httpx.Response) -> dict[str, str]:
    """What an answer says of other sites."""
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control")}


def test_no_other_site_reads_answers_unless_it_is_named():
    """No header by default; with `cors_origins` the sites named and no other, also where the door refuses."""
    with serving(service_of()) as client:
        assert allowed(client.get("/v1/models", headers={"origin": "https://a.example"})) == {}
        assert client.options("/generate", headers={"origin": "https://a.example"} | ASKED).status_code == 405
    settings = replace(ANYBODY, cors_origins="https://a.example, http://localhost:3000", api_key="key")
    with serving(service_of(settings)) as client:
        for origin, named in (("https://a.example", True), ("http://localhost:3000", True), ("https://b.a", False)):
            asked = client.options("/generate", headers={"origin": origin} | ASKED)
            assert (asked.status_code == 200) == named
            answer = client.get("/v1/models", headers={"origin": origin})
            refused(answer, 401)
            for each in (asked, answer):
                assert allowed(each).get("access-control-allow-origin") == (origin if named else None)
                assert "access-control-allow-credentials" not in each.headers
    with serving(service_of(replace(ANYBODY, cors_origins="*"))) as client:
        answer = client.post("/generate", json=GENERATE, headers={"origin": "https://b.example"})
        assert allowed(answer)["access-control-allow-origin"] == "*"


def test_the_page_stays_closed_where_the_api_is_open():
    """`cors_origins` is for the API's paths; the page answers no other site."""

    async def answers() -> list[httpx.Response]:
        app = create_app(service_of(replace(ANYBODY, cors_origins="*")))
        there, origin = httpx.ASGITransport(app), {"origin": "https://a.example"}
        async with httpx.AsyncClient(transport=there, base_url="http://here", headers=origin) as here:
            asked = [await here.options(path, headers=ASKED) for path in ("/v1/models", "/gradio_api/info")]
            return [*asked, await here.get("/gradio_api/info"), await here.get("/ui/tokens.css")]

    api, *page = asyncio.run(answers())
    assert (api.status_code, allowed(api)["access-control-allow-origin"]) == (200, "*")
    assert [allowed(each).get("access-control-allow-origin") for each in page] == [None, None, None]
