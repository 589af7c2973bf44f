"""docs/api.md says what is so: its curl commands run, its tables are the settings' and the schemas'."""

import json
import re
import subprocess

import pytest

from specdec.serving import Settings
from specdec.serving.http.body import MAX_BYTES
from specdec.serving.http.schemas import ChatBody, CompletionBody
from tests.serving.http.servers import parse, program, until
from tests.source_tree import ROOT

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
EXAMPLES = [block for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) if "curl" in block]


@pytest.fixture(scope="module")
def said() -> list[str]:
    """What each example prints, with the bundled models."""
    with program("specdec", "serve", "--port", "0") as (_, address):
        until(lambda: _run("curl -sf http://127.0.0.1:8000/readyz", address))
        return [_run(block, address) for block in EXAMPLES]


def _run(script: str, address: str) -> str:
    filled = script.replace("http://127.0.0.1:8000", address)
    return subprocess.run(["bash", "-c", filled], capture_output=True, text=True, timeout=60, check=False).stdout


def test_curl_gets_an_answer(said: list[str]):
    """The whole text with its usage."""
    answer = json.loads(said[0])
    assert answer["choices"][0]["text"].startswith(", there was a little girl named Lily.")
    assert answer["usage"]["speculation"]["mean_acceptance_length"] > 1


def test_curl_gets_a_stream(said: list[str]):
    """Chunks, the usage, [DONE]."""
    events = [value for _, value in parse(iter(said[1].splitlines()))]
    assert events[-1] == "[DONE]"
    assert events[-2]["usage"]["completion_tokens"] == 24
    assert events[-2]["usage"]["speculation"]["num_speculative_tokens"] == 5


def test_curl_sees_every_round(said: list[str]):
    """Named events, with likeliest tokens and log-probabilities."""
    events = list(parse(iter(said[2].splitlines())))
    assert {name for name, _ in events} == {"started", "round", "token", "done"}
    assert len([value for name, value in events if name == "token" and value["logprob"] < 0]) == 12


def test_curl_asks_for_models_health_and_trouble(said: list[str]):
    """Three answers in JSON, one after the other; and an error that names its field."""
    decoder, rest, answers = json.JSONDecoder(), said[3], []
    while rest:
        answer, end = decoder.raw_decode(rest)
        answers.append(answer)
        rest = rest[end:]
    assert [*map(list, answers)] == [["object", "data"], ["status"], ["status"]]
    assert json.loads(said[4])["error"]["param"] == "max_tokens"
    assert len(said) == 5


def test_limits_are_the_settings():
    """Each variable is one that is read, with the default that the page tells."""
    rows = re.findall(r"\| `SPECDEC_(\w+)` \|.*?\| (\S+) \|.*\|\n", PAGE)
    assert len(rows) == 8
    for name, default in rows:
        value = getattr(Settings(), name.lower())
        assert default == ("none" if value == "" else f"{value:g}")
    assert f"{MAX_BYTES // 1024} KiB" in PAGE


def test_every_field_is_told():
    """Of both of OpenAI's endpoints."""
    for schema in (CompletionBody, ChatBody):
        assert [name for name in schema.model_fields if f"`{name}`" not in PAGE and f"`{name}." not in PAGE] == []
