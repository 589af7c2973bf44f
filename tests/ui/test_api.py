"""The page's endpoints as programs use them, through `gradio_client` and a real server."""

import itertools
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from specdec.serving import Service
from specdec.trace import Trace
from specdec.ui.step import open_run
from specdec.ui.watch import Form
from tests.serving.toys import load_toy


@pytest.fixture(scope="module")
def client(slow: str) -> Iterator[Client]:
    client = Client(slow, verbose=False, analytics_enabled=False)
    yield client
    client.close()


def complete(client: Client, prompt: Any = "#0", **settings: Any) -> dict[str, Any]:
    """What `/complete` answers."""
    answer = client.predict(prompt, api_name="/complete", **settings)
    assert isinstance(answer, dict)
    return answer


def test_only_what_means_something_is_listed(client: Client):
    """Seven endpoints, each with a description; nothing must be given that the page has a value for."""
    listed = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert set(listed) == {"/complete", "/explore", "/generate", "/race", "/share", "/stop", "/test_losslessness"}
    for name, told in listed.items():
        assert told["description"].endswith("."), name
        assert all(parameter["label"] and parameter["parameter_has_default"] for parameter in told["parameters"])
    names = [parameter["parameter_name"] for parameter in listed["/complete"]["parameters"]]
    assert names == list(Form.__dataclass_fields__)


def test_a_prompt_is_all_that_is_needed(client: Client):
    """The page's own settings are in force; text, figures and trace tell of the same run."""
    answer = complete(client)
    assert set(answer) == {"text", "stats", "trace"}
    trace = Trace.from_json(json.dumps(answer["trace"]))
    assert (answer["text"], answer["stats"]) == (trace.text, json.loads(json.dumps(trace.stats.to_dict())))
    assert len(trace.ids) == 160
    assert (trace.started.target, trace.started.drafter) == ("target", "draft")
    assert trace.started.settings["params"]["temperature"] == 0.8
    assert set(open_run(json.dumps(answer["trace"]))) == {"events"}


@pytest.mark.parametrize("rule", ["rejection", "match"])
def test_a_program_gets_what_the_engine_says(client: Client, rule: Any):
    """The same settings and seed, asked of the service itself: token for token the same, judged the same."""
    settings = {"lookahead": 4, "temperature": 1.2, "max_tokens": 24, "acceptance": rule, "top_k": 5, "seed": 11}
    form = Form("#3", "target", "draft", 4, False, 1.2, 24, rule, 5, 1.0, 11, False)
    expected = Trace.collect(Service(loader=load_toy).stream(form.request()))
    trace = Trace.from_json(json.dumps(complete(client, "#3", **settings)["trace"]))
    assert trace.ids == expected.ids
    assert [step.proposals for step in trace.rounds] == [step.proposals for step in expected.rounds]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"prompt": "x" * 20_001}, "The prompt has 20,001 characters, 20,000 are allowed."),
        ({"prompt": None}, "Prompt is missing."),
        ({"chat": True}, "Target has no chat template: switch chat off."),
        ({"lookahead": 2.5}, "Num_speculative_tokens must be a whole number, not 2.5."),
        ({"target": "/etc/passwd"}, "Value: /etc/passwd is not in the list of choices: ['target']"),
        ({"max_tokens": 5_001}, "Value 5001 is greater than maximum value 5000."),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(client: Client, settings: dict[str, Any], said: str):
    """The page's limits hold, in the page's words or in those of its controls."""
    with pytest.raises(AppError) as refused:
        complete(client, **{"max_tokens": 8} | settings)
    assert str(refused.value) == said


def test_a_run_can_be_stopped_by_who_started_it(client: Client):
    """As on the page: what was said so far is the answer."""
    job = client.submit("#0", max_tokens=5_000, api_name="/complete")
    while not job.done():
        time.sleep(0.3)
        client.predict(api_name="/stop")
    trace = job.result()["trace"]
    assert trace["finish_reason"] == "cancelled"
    assert 0 < len(trace["ids"]) < 5_000


def test_a_run_can_be_followed(client: Client):
    """`/generate` as the page uses it: events that only grow, and hold the whole run in the end."""
    job = client.submit("#0", max_tokens=40, api_name="/generate")
    texts = [events for events in job if isinstance(events, str)]
    assert len(texts) > 2
    assert all(after.startswith(before) for before, after in itertools.pairwise(texts))
    assert [json.loads(line)["event"] for line in texts[-1].splitlines()][-2:] == ["trace", "end"]
