"""Whatever goes wrong, in one shape: `{"error": {message, type, param, code}}`, as OpenAI's clients expect it.

A message is a sentence for whoever asked. What an error has beyond that (paths, tracebacks) stays in the log.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from pydantic import BaseModel

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.errors import BusyError, ConfigError, ContextError, LoadError, RequestError, SpecdecError, VocabularyError

RETRY_S = 5
SETTINGS = {spec.name for kind in (SamplingParams, SpeculativeConfig) for spec in fields(kind)}
TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
BRANCH = re.compile(r"int|str|float|bool|\[key\]|.*\[.*\]|function-.*")
NO_OBJECT = "the body must be a JSON object, sent with Content-Type: application/json"


class Failure(BaseModel):
    """What an error says."""

    message: str
    type: str
    param: str | None
    code: str


class Refusal(BaseModel):
    """Every answer that is none."""

    error: Failure


class ApiError(SpecdecError):
    """A refusal or a failure as a client is told of it; `retry_after` in seconds."""

    def __init__(
        self, status: int, code: str, message: str, *, param: str | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.retry_after = retry_after

    def body(self) -> dict[str, Any]:
        """The one shape."""
        kind = TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}

    def headers(self) -> dict[str, str]:
        """When to come again, and how to say who one is."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return headers | ({"WWW-Authenticate": "Bearer"} if self.status == 401 else {})


def shutting_down() -> ApiError:
    """For requests that come, wait or run while the server ends."""
    return ApiError(503, "shutting_down", "the server is shutting down: try again in a moment", retry_after=RETRY_S)


def explain(error: Exception) -> ApiError:
    """What a client is told of an error that was raised anywhere."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, BusyError):
        return ApiError(503, "queue_full", str(error), retry_after=RETRY_S)
    if isinstance(error, ContextError):
        return ApiError(400, "context_length_exceeded", str(error))
    if isinstance(error, VocabularyError):
        return ApiError(400, "draft_does_not_fit", str(error), param="draft")
    if isinstance(error, RequestError | ConfigError):
        return ApiError(400, "invalid_value", str(error), param=_named(str(error)))
    if isinstance(error, LoadError):
        message = "the model could not be loaded: whoever runs this server finds the reason in its log"
        return ApiError(503, "model_unavailable", message, retry_after=RETRY_S)
    return ApiError(500, "internal_error", "something went wrong inside the server: its log has this request's id")


def invalid(errors: Sequence[Mapping[str, Any]]) -> ApiError:
    """What a client is told of a body that does not fit its schema: the first field that is wrong, by name."""
    first = errors[0]
    param = _field(first["loc"][1:])
    if first["type"] == "json_invalid":
        return ApiError(400, "invalid_json", f"the body is not JSON: {first['ctx']['error']} at {first['loc'][1]}")
    if not param:
        return ApiError(400, "invalid_body", NO_OBJECT)
    if first["type"] == "extra_forbidden":
        return ApiError(400, "unsupported_parameter", f"{param} is not supported here", param=param)
    if first["type"] == "missing":
        return ApiError(400, "missing_parameter", f"{param} is required", param=param)
    said = str(first["msg"]).removeprefix("Value error, ")
    return ApiError(400, "invalid_value", f"{param}: {said[:1].lower()}{said[1:]}", param=param)


def _field(location: Sequence[str | int]) -> str:
    """A field's name from where pydantic found fault, without the alternatives of its type that it tried."""
    parts = list(map(str, location))
    return ".".join([*parts[:1], *(part for part in parts[1:] if not BRANCH.fullmatch(part))])[:80]


def _named(message: str) -> str | None:
    """The setting with whose name a sentence of the engine begins."""
    word = message.partition(" ")[0]
    return word if word in SETTINGS else None
