"""What the service allows, from the environment or as documented here."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from specdec.config import LIMITS, require_int, require_number
from specdec.errors import ConfigError

PREFIX = "SPECDEC_"


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits of the service; each is read from `SPECDEC_<NAME>` by `from_environment`.

    max_new_tokens: most tokens a request may ask for. max_prompt_characters: longest prompt, before tokenisation.
    max_seconds: longest a generation may run, waiting and loading not counted. queue_limit: requests that may wait
    behind the running one. model_memory_mb: float32 weights kept in memory, in units of 10⁶ bytes. threads: worker
    threads of the arithmetic, 0 for the engine's own choice.

    Of the HTTP API alone: max_wait_seconds: longest a request may wait for its turn. requests_per_minute: of one
    client (network address), 0 for any number. api_key: what clients must show, empty for nothing.
    """

    max_new_tokens: int = 512
    max_prompt_characters: int = 20_000
    max_seconds: float = 120.0
    queue_limit: int = 16
    model_memory_mb: int = 8_000
    threads: int = 0
    max_wait_seconds: float = 60.0
    requests_per_minute: int = 120
    api_key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        require_int("max_new_tokens", self.max_new_tokens, 1, LIMITS.max_new_tokens)
        require_int("max_prompt_characters", self.max_prompt_characters, 1, 10_000_000)
        require_number("max_seconds", self.max_seconds, 0.001, 86_400)
        require_int("queue_limit", self.queue_limit, 0, 10_000)
        require_int("model_memory_mb", self.model_memory_mb, 1, 10_000_000)
        require_int("threads", self.threads, 0, 1_024)
        require_number("max_wait_seconds", self.max_wait_seconds, 0.0, 86_400)
        require_int("requests_per_minute", self.requests_per_minute, 0, 1_000_000)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Settings with every `SPECDEC_<NAME>` that is set; ConfigError where one is no number or out of range."""
        kinds = {spec.name: type(spec.default) for spec in fields(cls)}
        given = {name: environment.get(PREFIX + name.upper(), "").strip() for name in kinds}
        return cls(**{name: _number(name, text, kinds[name]) for name, text in given.items() if text})


def _number(name: str, text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError as error:
        raise ConfigError(f"{PREFIX}{name.upper()} must be a number, not {text!r}") from error
