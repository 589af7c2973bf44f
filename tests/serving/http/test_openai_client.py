"""OpenAI's own Python client gets what it expects."""

import math
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from specdec.checkpoints import DEFAULT_TARGET
from specdec.serving import Service, catalogue
from specdec.serving.http.requests import OPENAI_TOKENS
from tests.serving.http.servers import OFFERS, program, service_of, serving
from tests.serving.test_service import counted
from tests.serving.toys import WORDS

COUNT: dict[str, Any] = {"model": "target", "prompt": "#0", "temperature": 0, "max_tokens": 12}
CHAT: dict[str, Any] = {
    "model": "target",
    "messages": [{"role": "system", "content": "Count."}, {"role": "user", "content": "Go on."}],
    "temperature": 0,
    "max_tokens": 12,
}
CHATTED = counted(2, 12)  # the toy's template gives the number of messages


@pytest.fixture(scope="module")
def ai(client: httpx.Client) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{client.base_url}/v1", api_key="none", max_retries=0) as ai:
        yield ai


def test_a_completion(ai: openai.OpenAI):
    """Text, reason, usage, and how speculation went, under vLLM's names."""
    answer = ai.completions.create(**COUNT, extra_body={"num_speculative_tokens": 2})
    assert answer.object == "text_completion"
    assert answer.model == "target"
    assert answer.choices[0].text == counted(0, 12)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (1, 12, 13)
    speculation = answer.usage.model_extra["speculation"]  # type: ignore[index]
    rounds = sum(speculation["acceptance_histogram"])
    assert speculation["mean_acceptance_length"] == pytest.approx(12 / rounds)
    assert 0 < speculation["draft_acceptance_rate"] < 1


def test_a_streamed_completion(ai: openai.OpenAI):
    """Chunks of one id add up to the text; the reason comes last and once; usage only where it was asked for."""
    chunks = list(ai.completions.create(**COUNT, stream=True))
    assert {chunk.object for chunk in chunks} == {"text_completion"}
    assert len({chunk.id for chunk in chunks}) == 1
    assert "".join(chunk.choices[0].text for chunk in chunks) == counted(0, 12)
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["length"]
    assert all(chunk.usage is None for chunk in chunks)
    *others, last = ai.completions.create(**COUNT, stream=True, stream_options={"include_usage": True})
    assert all(chunk.usage is None and chunk.choices for chunk in others)
    assert (last.choices, last.usage.completion_tokens) == ([], 12)


def test_a_chat_completion(ai: openai.OpenAI):
    """The whole conversation goes through the template; the answer is the assistant's message."""
    answer = ai.chat.completions.create(**CHAT)
    assert answer.object == "chat.completion"
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content == CHATTED
    parts = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
    answer = ai.chat.completions.create(**CHAT | {"messages": parts})
    assert answer.choices[0].message.content == counted(1, 12)


def test_a_streamed_chat_completion(ai: openai.OpenAI):
    """The role comes first, the text bit by bit, the reason last, then the usage."""
    chunks = list(ai.chat.completions.create(**CHAT, stream=True, stream_options={"include_usage": True}))
    *said, last = chunks
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1
    assert said[0].choices[0].delta.role == "assistant"
    assert all(chunk.choices[0].delta.role is None for chunk in said[1:])
    assert "".join(chunk.choices[0].delta.content or "" for chunk in said) == CHATTED
    assert [chunk.choices[0].finish_reason for chunk in said] == [None] * (len(said) - 1) + ["length"]
    assert (last.choices, last.usage.total_tokens) == ([], 13)


def test_defaults_are_openais(ai: openai.OpenAI, service: Service):
    """16 tokens of a completion, as many as are allowed of a chat; temperature 1.

    At temperature 1 one token in 430 is not the likeliest: twelve texts of 512 are all the same once in a million.
    """
    answer = ai.completions.create(model="target", prompt="#0", temperature=0)
    assert answer.usage and answer.usage.completion_tokens == OPENAI_TOKENS
    texts = {ai.completions.create(model="target", prompt="#0", max_tokens=512).choices[0].text for _ in range(12)}
    assert len(texts) > 1
    same = {ai.completions.create(model="target", prompt="#0", max_tokens=512, seed=7).choices[0].text for _ in "ab"}
    assert len(same) == 1
    answer = ai.completions.create(**COUNT | {"temperature": None, "max_tokens": None, "stop": None})
    assert answer.usage and answer.usage.completion_tokens <= OPENAI_TOKENS


def test_where_it_ends(ai: openai.OpenAI):
    """`stop` as text or list, in a stream too, never lets the stop string through."""
    for stop in (" five", [" six", " five"]):
        answer = ai.completions.create(**COUNT, stop=stop)
        assert (answer.choices[0].text, answer.choices[0].finish_reason) == (counted(0, 4), "stop")
        chunks = list(ai.chat.completions.create(**CHAT, stop=stop, stream=True))
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == counted(2, 2)
        assert chunks[-1].choices[0].finish_reason == "stop"
    assert (
        ai.chat.completions.create(**CHAT | {"max_tokens": None}, max_completion_tokens=3).usage.completion_tokens == 3
    )  # type: ignore[union-attr]


def test_what_changes_the_choice(ai: openai.OpenAI):
    """Bias, penalties and nucleus reach the engine."""
    answer = ai.completions.create(**COUNT | {"max_tokens": 2}, logit_bias={"5": 100})
    assert answer.choices[0].text == " five five"
    answer = ai.completions.create(**COUNT | {"max_tokens": 9}, presence_penalty=2, frequency_penalty=2)
    assert answer.choices[0].text == counted(0, 9)  # penalties of 4 against logits of 8
    answer = ai.completions.create(**COUNT | {"temperature": 1}, top_p=0.01, extra_body={"top_k": 1, "min_p": 0.5})
    assert answer.choices[0].text == counted(0, 12)


LIKELY, UNLIKELY = (logit - math.log(math.exp(8) + len(WORDS) - 1) for logit in (8, 0))


def test_logprobs_of_a_completion(ai: openai.OpenAI):
    """log p under the target for each token, accepted drafts included, the same whole and streamed."""
    answer = ai.completions.create(**COUNT, logprobs=2, extra_body={"num_speculative_tokens": 2}).choices[0].logprobs
    assert answer and answer.tokens and answer.token_logprobs and answer.top_logprobs and answer.text_offset
    assert "".join(answer.tokens) == counted(0, 12)
    assert answer.token_logprobs == pytest.approx([LIKELY] * 12, abs=1e-5)
    for token, top in zip(answer.tokens, answer.top_logprobs, strict=True):
        assert top == pytest.approx({token: LIKELY} | dict.fromkeys(set(top) - {token}, UNLIKELY), abs=1e-5)
        assert len(top) == 2
    assert [
        counted(0, 12)[offset:].startswith(token)
        for offset, token in zip(answer.text_offset, answer.tokens, strict=True)
    ] == [True] * 12
    chunks = [chunk.choices[0].logprobs for chunk in ai.completions.create(**COUNT, logprobs=2, stream=True)]
    assert [token for chunk in chunks if chunk for token in chunk.tokens] == answer.tokens
    assert [offset for chunk in chunks if chunk for offset in chunk.text_offset] == answer.text_offset
    assert ai.completions.create(**COUNT).choices[0].logprobs is None


def test_logprobs_of_a_chat(ai: openai.OpenAI):
    """In the shape of chats, with as many alternatives as were asked for, at temperature 1 too."""
    for temperature in (0, 1):
        chat = CHAT | {"temperature": temperature}
        answer = ai.chat.completions.create(**chat, logprobs=True, top_logprobs=3, seed=1).choices[0]
        assert answer.logprobs and answer.logprobs.content
        assert "".join(entry.token for entry in answer.logprobs.content) == answer.message.content
        for entry in answer.logprobs.content:
            assert len(entry.top_logprobs) == 3
            assert bytes(entry.bytes or []).decode() == entry.token
            assert entry.top_logprobs[0].logprob == pytest.approx(LIKELY, abs=1e-5)
            same = [top.logprob for top in entry.top_logprobs if top.token == entry.token]
            assert same == pytest.approx([entry.logprob] * len(same), abs=1e-5)
    answer = ai.chat.completions.create(**CHAT, logprobs=True).choices[0]
    assert answer.logprobs and [entry.top_logprobs for entry in answer.logprobs.content or []] == [[]] * 12


@pytest.mark.parametrize(
    "more", [{"temperature": 0.7}, {"presence_penalty": 1}, {"logit_bias": {"1": 1}}, {"top_p": 0.9}]
)
def test_likeliest_tokens_are_given_only_where_they_are_the_targets(ai: openai.OpenAI, more: dict[str, Any]):
    """Lists are recorded after all processors: with any at work they are refused by name, the chosen one is not."""
    chat = CHAT | {"temperature": 1} | more
    with pytest.raises(openai.BadRequestError, match="top_logprobs above 0") as caught:
        ai.chat.completions.create(**chat, logprobs=True, top_logprobs=1)
    assert caught.value.param == "top_logprobs"
    assert ai.chat.completions.create(**chat, logprobs=True).choices[0].logprobs


def test_models_are_listed(ai: openai.OpenAI):
    """Each on offer, under the name to ask for it."""
    assert [model.id for model in ai.models.list()] == [offer.name for offer in OFFERS]
    assert {model.object for model in ai.models.list()} == {"model"}


def test_errors_are_the_clients_own(ai: openai.OpenAI):
    """Each refusal arrives as the exception that OpenAI's users catch, with its parameter and the request's id."""
    with pytest.raises(openai.NotFoundError) as missing:
        ai.completions.create(**COUNT | {"model": "gpt-4"})
    assert (missing.value.param, missing.value.code) == ("model", "model_not_found")
    assert missing.value.request_id
    for name, value in {"tools": [], "user": "me", "best_of": 2, "n": 2, "echo": True, "suffix": "x"}.items():
        with pytest.raises(openai.BadRequestError) as refused:
            ai.completions.create(**COUNT, extra_body={name: value})
        assert refused.value.param == name
    with pytest.raises(openai.BadRequestError, match="give one"):
        ai.chat.completions.create(**CHAT, max_completion_tokens=3)
    with pytest.raises(openai.BadRequestError, match="stream_options needs stream"):
        ai.completions.create(**COUNT, extra_body={"stream_options": {"include_usage": True}})


def test_a_conversation_needs_a_template():
    """A model without one says so in place of making something up."""
    with serving(service_of()) as client:
        ai = openai.OpenAI(base_url=f"{client.base_url}/v1", api_key="none")
        with pytest.raises(openai.BadRequestError, match="no chat template"), ai:
            ai.chat.completions.create(**CHAT, stream=True)


def test_the_bundled_models():
    """`python -m specdec serve` tells the target's own greedy story, whatever drafts; ready once they are warm."""
    story: dict[str, Any] = {"model": DEFAULT_TARGET, "prompt": "Once upon a time", "temperature": 0, "max_tokens": 24}
    text = ", there was a little girl named Lily. She loved to play outside in the sun. One day, she saw a"
    with (
        program("specdec", "serve", "--port", "0") as (_, address),
        openai.OpenAI(base_url=f"{address}/v1", api_key="none") as ai,
    ):
        plain = ai.completions.create(**story, extra_body={"draft": "none"})
        drafted = ai.completions.create(**story, extra_body={"num_speculative_tokens": 4})
        assert plain.choices[0].text == drafted.choices[0].text == text
        assert "".join(chunk.choices[0].text for chunk in ai.completions.create(**story, stream=True)) == text
        assert {offer.name for offer in catalogue()} == {model.id for model in ai.models.list()}
