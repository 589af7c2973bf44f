"""`POST /generate`: every round as it happens, and the statistics at the end."""

import socket
from typing import Any

import httpx
import pytest

from specdec.serving import Service
from specdec.serving.http.server import listening
from tests.decoding.toys import ToyCodec
from tests.serving.http.servers import is_free, service_of, serving, streamed
from tests.serving.test_service import counted
from tests.serving.toys import Toy, ToyNetwork, toy

STREAMED: dict[str, dict[str, Any]] = {
    "/generate": {"max_tokens": 2},
    "/v1/completions": {"max_tokens": 2, "model": "target", "stream": True},
}


def test_a_run_is_told_round_by_round(client: httpx.Client):
    """`started`, then each `round` with its `token`s, then `done`; they tell one and the same run."""
    events = streamed(client, "/generate", {"prompt": "#0", "max_tokens": 20, "num_speculative_tokens": 2})
    names = [name for name, _ in events]
    assert (names[0], names[-1]) == ("started", "done")
    assert set(names[1:-1]) == {"round", "token"}
    tokens = [value for name, value in events if name == "token"]
    rounds = [value for name, value in events if name == "round"]
    done = events[-1][1]
    assert "".join(token["text"] for token in tokens) == done["text"] == counted(0, 20)
    assert "".join(step["text"] for step in rounds) + done["tail"] == done["text"]
    assert {token["source"] for token in tokens} >= {"accepted", "recovered", "bonus"}
    assert done["stats"]["rounds"] == len(rounds)
    accepted = [sum(each["outcome"] == "accepted" for each in step["proposals"]) for step in rounds]
    speculation = done["usage"]["speculation"]
    assert speculation["acceptance_histogram"] == [accepted.count(n) for n in range(max(accepted) + 1)]
    assert speculation["mean_acceptance_length"] == pytest.approx(20 / len(rounds))
    assert speculation["draft_acceptance_rate"] == done["stats"]["acceptance_rate"]
    assert done["usage"]["completion_tokens"] == 20


def test_what_is_in_force_is_said(client: httpx.Client):
    """The default draft where none is named, and why nothing is drafted."""
    started = [
        streamed(client, "/generate", {"prompt": "#0", "max_tokens": 4} | more)[0][1]
        for more in ({}, {"model": "other"}, {"draft": "none"}, {"num_speculative_tokens": 0})
    ]
    assert [one["draft"] for one in started] == ["draft", "draft", "none", "none"]
    assert "lookahead of 0" in started[3]["note"]
    assert started[0]["model"] == "target"
    assert "prompt" not in started[0]["settings"]


def test_nothing_drafted_is_no_rate(client: httpx.Client):
    """Plain decoding has no acceptance rate, and emits one token a round."""
    done = streamed(client, "/generate", {"prompt": "#0", "max_tokens": 5, "draft": "none"})[-1][1]
    speculation = done["usage"]["speculation"]
    assert speculation["draft_acceptance_rate"] is None
    assert speculation["mean_acceptance_length"] == 1.0
    assert speculation["acceptance_histogram"] == [5]


@pytest.mark.parametrize("tokens", [0, 1, 2, 3, 4, 5, 100_000 // 50])
def test_exactly_so_many_tokens(client: httpx.Client, tokens: int):
    """Every length is met to the token, zero included."""
    done = streamed(client, "/generate", {"prompt": "#0", "max_tokens": tokens})[-1][1]
    assert done["usage"]["completion_tokens"] == tokens
    assert done["finish_reason"] == "length"


def test_settings_reach_the_engine(client: httpx.Client):
    """A stop string, a bias and likeliest tokens have the effects that the engine gives them."""
    body = {"prompt": "#0", "max_tokens": 20}
    done = streamed(client, "/generate", body | {"stop": " four"})[-1][1]
    assert (done["text"], done["finish_reason"]) == (" one two three", "stop")
    done = streamed(client, "/generate", body | {"stop": ["seven", "five"]})[-1][1]
    assert done["text"] == " one two three four "
    done = streamed(client, "/generate", body | {"logit_bias": {"5": 100}, "max_tokens": 2})[-1][1]
    assert done["text"] == " five five"
    events = streamed(client, "/generate", body | {"top": 2, "logprobs": True, "max_tokens": 1})
    token = next(value for name, value in events if name == "token")
    assert [each["text"] for each in token["top"]] == [" one", "zero"]
    assert token["logprob"] < 0


def test_a_seed_repeats_a_run(client: httpx.Client):
    """And the seed of a run that named none is told, and repeats it as well."""
    body = {"prompt": "#0", "temperature": 2.0, "max_tokens": 40, "num_speculative_tokens": 2}
    first = streamed(client, "/generate", body)
    again = streamed(client, "/generate", body | {"seed": first[0][1]["seed"]})
    assert again[-1][1]["text"] == first[-1][1]["text"]
    assert len({streamed(client, "/generate", body)[-1][1]["text"] for _ in range(5)}) > 1


@pytest.mark.parametrize("path", ["/generate", "/v1/completions"])
def test_the_answer_is_a_stream_that_nobody_may_keep(client: httpx.Client, path: str):
    """`text/event-stream`, `no-store`, no buffering by a proxy."""
    answer = client.post(path, json=STREAMED[path] | {"prompt": "#0"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-accel-buffering"] == "no"


def test_no_event_waits_for_an_acknowledgement():
    """Connections have TCP_NODELAY: without it every answer but the first, and many an event, came 40 ms late."""
    with listening("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_place_is_free_after_an_answer(client: httpx.Client, service: Service):
    """Once the stream has ended the next one begins at once."""
    for _ in range(20):
        streamed(client, "/generate", {"prompt": "#0", "max_tokens": 3})
        assert is_free(service)


def test_characters_of_several_bytes_arrive_whole():
    """Pieces of text that are no ASCII go through JSON and back unchanged."""
    words = ("é", "🙂", "\u2028", "<b>", '"', "\\", "\x00", "\ud7ff")
    with serving(service_of(loader=lambda name: toy(name, words=words))) as client:
        events = streamed(client, "/generate", {"prompt": "#0", "max_tokens": 8})
    assert events[-1][1]["text"] == "".join((*words[1:], words[0]))


def test_a_character_split_over_two_tokens_arrives_whole():
    """Its first half is held back until the second is there, on both streaming paths, drafted or not: no U+FFFD."""
    smile = "🙂".encode()
    words = ToyCodec((b"a", smile[:2], smile[2:], b"b"))

    def halves(name: str) -> Toy:
        return Toy(name, ToyNetwork(4, errs=3 if name == "draft" else 0), words)  # type: ignore[arg-type]

    with serving(service_of(loader=halves, warm=False)) as client:
        for draft in ("none", "draft"):
            body = {"prompt": "a", "max_tokens": 7, "temperature": 0, "draft": draft}
            told = streamed(client, "/generate", body)
            rounds = "".join(value["text"] for name, value in told if name == "round")
            assert rounds + told[-1][1]["tail"] == told[-1][1]["text"] == "🙂ba🙂b"
            *chunks, _ = streamed(client, "/v1/completions", STREAMED["/v1/completions"] | body)
            assert "".join(chunk["choices"][0]["text"] for _, chunk in chunks) == "🙂ba🙂b"
            assert "\ufffd" not in str((told, chunks))
