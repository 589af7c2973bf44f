"""A request made ready: prompt ids, seed, budget, lookahead, the drafter's session, and what the run says of itself.

Everything a user can get wrong is found here, before any forward pass.
"""

import operator
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from specdec.config import Lookahead, SamplingParams, SpeculativeConfig
from specdec.decoding.protocols import Codec, Drafter, DraftSession, Model
from specdec.errors import ContextError, RequestError, VocabularyError
from specdec.records import Exactness, FinishReason, Started


@dataclass(frozen=True, slots=True)
class Request:
    """`budget` tokens may be generated, and `limit` is the reason where they all are."""

    prompt: tuple[int, ...]
    params: SamplingParams
    speculation: SpeculativeConfig
    seed: int
    budget: int
    limit: FinishReason
    lookahead: Lookahead
    session: DraftSession | None
    started: Started


def prepare(
    target: Model,
    drafter: Drafter | None,
    prompt: str | Sequence[int],
    params: SamplingParams,
    speculation: SpeculativeConfig,
) -> Request:
    """Check a request and begin the drafter's part of it; RequestError, ContextError or VocabularyError."""
    ids = prompt_ids(target, prompt)
    _require_known(target, params)
    budget, limit = _budget(target, ids, params)
    seed = secrets.randbits(32) if params.seed is None else params.seed
    lookahead = _lookahead(drafter, speculation)
    session, note = None, _why_plain(drafter, lookahead, speculation.num_speculative_tokens, budget)
    if drafter is not None and not note:
        session, note = _start(drafter, target, params, seed, len(ids), budget)
    drafts = "none" if drafter is None or session is None else drafter.name
    settings = {
        "params": _plain(params),
        "lookahead": lookahead,
        "acceptance": speculation.acceptance,
        "exact": speculation.exact,
        "drafter": "none" if drafter is None else drafter.name,
    }
    started = Started(target.name, drafts, ids, seed, _exactness(target, speculation), settings, note)
    return Request(ids, params, speculation, seed, budget, limit, lookahead, session, started)


def prompt_ids(target: Model, prompt: str | Sequence[int]) -> tuple[int, ...]:
    """The prompt as ids of the target; an empty one is what the tokenizer begins a text with, if anything."""
    codec = target.tokenizer
    if isinstance(prompt, str):
        if codec is None:
            raise RequestError(f"{target.name} has no tokenizer: give the prompt as token ids")
        ids = tuple(codec.encode(prompt))
    else:
        ids = _as_ids(prompt)
    if not ids:
        ids = _beginning(target.name, codec)
    size = target.network.vocab_size
    for token in ids:
        if not 0 <= token < size:
            raise RequestError(f"the prompt holds token {token}, {target.name} knows 0 to {size - 1}")
    return ids


def _require_known(target: Model, params: SamplingParams) -> None:
    """Raise RequestError where the parameters name tokens that the target does not have."""
    size = target.network.vocab_size
    for name, tokens in (("logit_bias", params.logit_bias), ("stop_token_ids", params.stop_token_ids)):
        for token in tokens:
            if token >= size:
                raise RequestError(f"{name} names token {token}, {target.name} knows 0 to {size - 1}")


def _as_ids(prompt: Sequence[int]) -> tuple[int, ...]:
    if isinstance(prompt, bytes | bytearray):
        raise RequestError("the prompt must be text or token ids, not bytes")
    try:
        return tuple(operator.index(token) for token in prompt)
    except TypeError as error:
        raise RequestError(f"the prompt must be text or token ids: {error}") from error


def _beginning(name: str, codec: Codec | None) -> tuple[int, ...]:
    ids = () if codec is None else tuple(codec.encode(""))
    if not ids:
        raise RequestError(f"the prompt is empty, and {name} has no token that begins a text: give at least one token")
    return ids


def _budget(target: Model, ids: Sequence[int], params: SamplingParams) -> tuple[int, FinishReason]:
    """How many tokens may follow the prompt, and what their end is called."""
    if params.stop and target.tokenizer is None:
        raise RequestError(f"stop strings need a tokenizer, and {target.name} has none")
    context = target.network.context_length
    if len(ids) >= context:
        raise ContextError(f"the prompt has {len(ids)} tokens, {target.name} holds {context} with its answer")
    room = context - len(ids)
    return (params.max_tokens, "length") if params.max_tokens <= room else (room, "context")


def _lookahead(drafter: Drafter | None, speculation: SpeculativeConfig) -> Lookahead:
    if drafter is None:
        return 0
    asked = speculation.num_speculative_tokens
    return drafter.num_speculative_tokens if asked is None else asked


def _why_plain(drafter: Drafter | None, lookahead: Lookahead, asked: Lookahead | None, budget: int) -> str:
    """Why nothing will be drafted although it was asked for; empty where it will be, or was not."""
    if drafter is None:
        return "plain decoding: drafts were asked for, but there is no drafter" if asked else ""
    if lookahead == 0:
        return "plain decoding: a lookahead of 0 drafts nothing"
    tokens = "1 token" if budget == 1 else f"{budget} tokens"
    return f"plain decoding: an answer of at most {tokens} leaves no room for drafts" if budget < 2 else ""


def _start(
    drafter: Drafter, target: Model, params: SamplingParams, seed: int, prompt_length: int, budget: int
) -> tuple[DraftSession | None, str]:
    """The drafter's session, and what is to be said about it."""
    try:
        session = drafter.start(target, params, seed, prompt_length + budget)
        context = session.context_length
        full = context is not None and operator.index(context) <= prompt_length
    except VocabularyError:
        raise
    except Exception as error:
        return None, f"plain decoding: the drafter could not start: {type(error).__name__}: {str(error)[:200]}"
    if context is None or context >= prompt_length + budget:
        return session, ""
    if full:
        return None, f"plain decoding: the prompt's {prompt_length} tokens fill {drafter.name}'s context of {context}"
    return session, f"drafts end where the text reaches {drafter.name}'s context of {context} tokens"


def _exactness(target: Model, speculation: SpeculativeConfig) -> Exactness:
    if not speculation.exact:
        return "off"
    return "bitwise" if target.network.bit_exact else "near-ties"


def _plain(params: SamplingParams) -> dict[str, Any]:
    """The parameters as JSON values."""
    values = {spec.name: getattr(params, spec.name) for spec in fields(params)}
    bias = {str(token): value for token, value in params.logit_bias.items()}
    return values | {"logit_bias": bias, "stop": list(params.stop), "stop_token_ids": list(params.stop_token_ids)}
