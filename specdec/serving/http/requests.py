"""From what a client wrote to what the service is asked. Pure, but that names are looked up."""

from dataclasses import fields
from typing import Any

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.serving.http import names
from specdec.serving.http.errors import ApiError
from specdec.serving.http.schemas import ChatBody, CompletionBody, GenerateBody, OpenAIBody, Sampling
from specdec.serving.service import GenerationRequest, Service

SAMPLING = {spec.name for spec in fields(SamplingParams)} - {"logprobs"}
TOKENS, OPENAI_TOKENS = 128, 16  # the most that are made where nobody says; of completions as OpenAI has it


def generation(body: GenerateBody, service: Service) -> GenerationRequest:
    """`POST /generate`."""
    params = _params(body, logprobs=body.logprobs, max_tokens=_at_most(TOKENS, service))
    return _request(body, body.model, service, params, body.top, prompt=body.prompt, chat=body.chat)


def completion(body: CompletionBody, service: Service) -> GenerationRequest:
    """`POST /v1/completions`."""
    params = _openai_params(body, _at_most(OPENAI_TOKENS, service), logprobs=body.logprobs is not None)
    top = _top(params, body.logprobs, "logprobs")
    return _request(body, body.model, service, params, top, prompt=body.prompt)


def chat(body: ChatBody, service: Service) -> GenerationRequest:
    """`POST /v1/chat/completions`."""
    if body.top_logprobs and not body.logprobs:
        raise ApiError(400, "invalid_value", "top_logprobs needs logprobs to be true", param="top_logprobs")
    if body.max_tokens is not None and body.max_completion_tokens is not None:
        message = "max_completion_tokens is another name of max_tokens: give one of them"
        raise ApiError(400, "invalid_value", message, param="max_completion_tokens")
    most = body.max_completion_tokens
    params = _openai_params(body, service.settings.max_new_tokens if most is None else most, bool(body.logprobs))
    messages = tuple(message.model_dump() for message in body.messages)
    said = "\n".join(message.content for message in body.messages)
    top = _top(params, body.top_logprobs, "top_logprobs")
    return _request(body, body.model, service, params, top, prompt=said, chat=True, messages=messages)


def _at_most(tokens: int, service: Service) -> int:
    return min(tokens, service.settings.max_new_tokens)


def _request(
    body: Sampling, model: str | None, service: Service, params: SamplingParams, top: int, **more: Any
) -> GenerationRequest:
    target = names.target(service, model)
    draft = names.draft(service, body.draft, target)
    speculation = SpeculativeConfig(body.num_speculative_tokens, body.acceptance or "rejection", top=top)
    return GenerationRequest(target=target, draft=draft, params=params, speculation=speculation, reuse=True, **more)


def _openai_params(body: OpenAIBody, max_tokens: int, logprobs: bool) -> SamplingParams:
    """With OpenAI's defaults, which are not the engine's."""
    if body.stream_options is not None and not body.stream:
        raise ApiError(400, "invalid_value", "stream_options needs stream to be true", param="stream_options")
    return _params(body, logprobs=logprobs, temperature=1.0, max_tokens=max_tokens)


def _params(body: Sampling, *, logprobs: bool, **defaults: Any) -> SamplingParams:
    given: dict[str, Any] = defaults | body.model_dump(include=SAMPLING, exclude_none=True)
    lists: dict[str, Any] = {name: tuple(given[name]) for name in ("stop", "stop_token_ids") if name in given}
    return SamplingParams(**given | lists, logprobs=logprobs)


def _top(params: SamplingParams, asked: int | None, name: str) -> int:
    """How many likeliest tokens to record.

    They are listed as they were used, after all processors; log-probabilities are the target's own. The two are one
    where no processor changes anything, and only then are they given.
    """
    plain = SamplingParams(
        temperature=params.temperature if params.greedy else 1.0,
        top_k=params.top_k if params.greedy else 0,
        seed=params.seed,
        max_tokens=params.max_tokens,
        stop=params.stop,
        ignore_eos=params.ignore_eos,
        logprobs=params.logprobs,
    )
    if asked and params != plain:
        message = f"{name} above 0 is supported with temperature 0 or 1, without penalties, logit_bias, top_p or min_p"
        raise ApiError(400, "unsupported_parameter", message, param=name)
    return asked or 0
