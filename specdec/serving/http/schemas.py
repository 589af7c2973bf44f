"""What may be asked for, field by field. Nothing is converted, nothing unknown is passed over.

Ranges are the engine's own (`SamplingParams`, `SpeculativeConfig`). The fields behind `Extensions` are not OpenAI's.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from specdec.config import LIMITS, AcceptanceRule, Lookahead


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _alone(value: Any) -> Any:
    """A prompt by itself, also where it comes as the only one of a list."""
    if isinstance(value, list) and not (len(value) == 1 and isinstance(value[0], str)):
        raise ValueError("one prompt at a time, as text")
    return value[0] if isinstance(value, list) else value


def _joined(value: Any) -> Any:
    """A message's text, also where it comes in parts."""
    if not isinstance(value, list):
        return value
    if not all(isinstance(part, dict) and part.get("type") == "text" and len(part) == 2 for part in value):
        raise ValueError("only parts of type text are supported here")
    texts = [part.get("text") for part in value]
    return "".join(texts) if all(isinstance(text, str) for text in texts) else texts


def _some(value: Any) -> Any:
    """A value where null stands for none that is known."""
    if value is None:
        raise ValueError("a whole number is expected")
    return value


def _one(value: int | None) -> int | None:
    if value not in (None, 1):
        raise ValueError("only 1 is supported here")
    return value


def _lookahead(value: Any) -> Any:
    if value is None or value == "auto" or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise ValueError('a whole number or "auto" is expected')


def _token(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 8 else value


Stops = Annotated[list[str], BeforeValidator(_listed)]
Top = Annotated[int, Field(ge=0, le=LIMITS.max_top)]
Bias = dict[Annotated[int, BeforeValidator(_token)], float]


class Strict(BaseModel):
    """No conversion, no unknown field, no NaN."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)


class Extensions(Strict):
    """How tokens are proposed, and ways to choose them that OpenAI does not have."""

    draft: str | None = None
    num_speculative_tokens: Annotated[Lookahead | None, BeforeValidator(_lookahead)] = None
    acceptance: AcceptanceRule | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    ignore_eos: bool | None = None


class Sampling(Extensions):
    """How tokens are chosen and where a text ends; null is the default of each endpoint."""

    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: Bias | None = None
    seed: int | None = None
    stop: Stops | None = None


class GenerateBody(Sampling):
    """`POST /generate`. `chat`: the prompt is a user's message; `top`: likeliest tokens to list at each position."""

    prompt: str
    model: str | None = None
    chat: bool = False
    max_tokens: Annotated[int | None, BeforeValidator(_some)] = None
    stop_token_ids: list[int] | None = None
    logprobs: bool = False
    top: Top = 0


class StreamOptions(Strict):
    """`include_usage`: one more chunk at the end, with the usage."""

    include_usage: bool = False


class OpenAIBody(Sampling):
    """What both of OpenAI's endpoints share."""

    model: str
    max_tokens: int | None = None
    n: Annotated[int | None, AfterValidator(_one)] = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None


class CompletionBody(OpenAIBody):
    """`POST /v1/completions`. `logprobs`: so many of the likeliest tokens at each position, beside the chosen one."""

    prompt: Annotated[str, BeforeValidator(_alone)]
    logprobs: Top | None = None


class Message(Strict):
    """A turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: Annotated[str, BeforeValidator(_joined)]


class ChatBody(OpenAIBody):
    """`POST /v1/chat/completions`."""

    messages: Annotated[list[Message], Field(min_length=1)]
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: Top | None = None
