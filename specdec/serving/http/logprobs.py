"""Log-probabilities in OpenAI's two shapes, read off a round. One entry for each token of the usage."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from specdec.records import Candidate, Round, Token

LEAST = -9999.0  # OpenAI's for what cannot be


def positions(step: Round) -> Iterator[tuple[Token, tuple[Candidate, ...]]]:
    """Each token of a round, and what the target held likeliest there.

    Where a draft was judged that stands with the draft; a recovered token's own list is of what the draft left over.
    """
    judged = [proposal.target_top for proposal in step.proposals if proposal.outcome != "discarded"]
    for i, token in enumerate(step.tokens):
        yield token, judged[i] if i < len(judged) else token.top


def legacy(steps: Sequence[Round], offset: int) -> dict[str, Any]:
    """Of completions: four lists of equal length. `offset` is where the first token begins in the answer's text."""
    shape: dict[str, list[Any]] = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
    for token, likeliest in (position for step in steps for position in positions(step)):
        shape["tokens"].append(token.text)
        shape["token_logprobs"].append(_chosen(token))
        shape["top_logprobs"].append(
            {one.text: _log(one.probability) for one in likeliest} | {token.text: _chosen(token)}
        )
        shape["text_offset"].append(offset)
        offset += len(token.text)
    return shape


def chat(steps: Sequence[Round]) -> dict[str, Any]:
    """Of chat completions: one list of objects."""
    entries = [
        _entry(token.text, _chosen(token)) | {"top_logprobs": [_entry(one.text, _log(one.probability)) for one in top]}
        for step in steps
        for token, top in positions(step)
    ]
    return {"content": entries, "refusal": None}


def _entry(text: str, logprob: float) -> dict[str, Any]:
    """`bytes` are unknown of a token that is a part of a character."""
    return {"token": text, "logprob": logprob, "bytes": None if "\ufffd" in text else list(text.encode())}


def _chosen(token: Token) -> float:
    return LEAST if token.logprob is None else max(token.logprob, LEAST)


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else LEAST
