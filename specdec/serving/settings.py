"""What the service allows, from the environment or as documented here."""

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from specdec.config import LIMITS, require_int, require_number
from specdec.errors import ConfigError

PREFIX = "SPECDEC_"
BRING = ("off", "known", "any")
TELEMETRY = ("off", "on")
PUBLIC = {"max_new_tokens": 256, "max_prompt_characters": 4_000, "max_seconds": 60.0, "queue_limit": 8}
BYTES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits of the service; each is read from `SPECDEC_<NAME>` by `from_environment`.

    max_new_tokens: most tokens a request may ask for. max_prompt_characters: longest prompt, before tokenisation.
    max_seconds: longest a generation may run, waiting and loading not counted. queue_limit: requests that may wait
    behind the running one. model_memory_mb: float32 weights kept in memory, in units of 10⁶ bytes. threads: worker
    threads of the arithmetic, 0 for the engine's own choice. bring: which models visitors may have fetched: none
    ("off"), those that the project knows by name ("known"), or whatever the Hub or this machine has ("any").

    Of the circuit breaker around each drafter: breaker_failures: failures in a row that open it. breaker_wait_seconds:
    how long it then stays open, until one request is let through on trial. breaker_call_seconds: longest that a
    drafter may take to answer, for each 128 tokens that it has to read; whoever takes longer is not waited for.
    breaker_losing: times the speed of plain decoding below which drafting is paused where nobody chose a lookahead, 0
    for never.

    Of the HTTP API alone: max_wait_seconds: longest a request may wait for its turn. requests_per_minute: of one
    client (network address), 0 for any number. prefix_cache_mb: keys and values of earlier prompts kept for the next
    ones, in units of 10⁶ bytes, 0 for none. api_key: what clients must show, empty for nothing. telemetry: whether
    requests are told to OpenTelemetry, "off" or "on".
    """

    max_new_tokens: int = 512
    max_prompt_characters: int = 20_000
    max_seconds: float = 120.0
    queue_limit: int = 16
    model_memory_mb: int = 8_000
    threads: int = 0
    bring: str = "any"
    max_wait_seconds: float = 60.0
    requests_per_minute: int = 120
    prefix_cache_mb: int = 256
    api_key: str = field(default="", repr=False)
    telemetry: str = "off"
    breaker_failures: int = 5
    breaker_wait_seconds: float = 30.0
    breaker_call_seconds: float = 5.0
    breaker_losing: float = 0.85

    def __post_init__(self) -> None:
        require_int("max_new_tokens", self.max_new_tokens, 1, LIMITS.max_new_tokens)
        require_int("max_prompt_characters", self.max_prompt_characters, 1, 10_000_000)
        require_number("max_seconds", self.max_seconds, 0.001, 86_400)
        require_int("queue_limit", self.queue_limit, 0, 10_000)
        require_int("model_memory_mb", self.model_memory_mb, 1, 10_000_000)
        require_int("threads", self.threads, 0, 1_024)
        if self.bring not in BRING:
            raise ConfigError(f"bring must be one of {', '.join(BRING)}, not {self.bring!r}")
        if self.telemetry not in TELEMETRY:
            raise ConfigError(f"telemetry must be one of {', '.join(TELEMETRY)}, not {self.telemetry!r}")
        require_int("breaker_failures", self.breaker_failures, 1, 1_000)
        require_number("breaker_wait_seconds", self.breaker_wait_seconds, 0.001, 86_400)
        require_number("breaker_call_seconds", self.breaker_call_seconds, 0.001, 86_400)
        require_number("breaker_losing", self.breaker_losing, 0.0, 1.0)
        require_number("max_wait_seconds", self.max_wait_seconds, 0.0, 86_400)
        require_int("requests_per_minute", self.requests_per_minute, 0, 1_000_000)
        require_int("prefix_cache_mb", self.prefix_cache_mb, 0, 1_000_000)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ, host: str = "127.0.0.1") -> Self:
        """Settings with every `SPECDEC_<NAME>` that is set; ConfigError where one is no number or out of range.

        On a Hugging Face Space (`SPACE_ID` is set) anybody may come: what is not set is `PUBLIC`, and half of the
        memory it says it has (`MEMORY`) may hold models. `host` is what the page listens on. Where others can reach
        it, `bring` is "known" unless it is set; on a Space it is "off" unless it is set, and never "any".
        """
        kinds = {spec.name: type(spec.default) for spec in fields(cls)}
        given = {name: environment.get(PREFIX + name.upper(), "").strip() for name in kinds}
        public = bool(environment.get("SPACE_ID"))
        given["bring"] = _bring(given["bring"], on_a_space=public, host=host)
        set_here = {name: _number(name, text, kinds[name]) for name, text in given.items() if text}
        return cls(**(_public(environment) if public else {}) | set_here)


def _public(environment: Mapping[str, str]) -> dict[str, Any]:
    """Limits where anybody may come; a size of memory that cannot be read is as good as none."""
    size = re.fullmatch(r"(\d{1,15})([KMG]?I?)B?", environment.get("MEMORY", "").strip().upper())
    half = int(size[1]) * BYTES.get(size[2], 0) // 2_000_000 if size else 0
    return PUBLIC | ({"model_memory_mb": half} if half else {})


def _number(name: str, text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError as error:
        raise ConfigError(f"{PREFIX}{name.upper()} must be a number, not {text!r}") from error


def _bring(asked: str, *, on_a_space: bool, host: str) -> str:
    """What `bring` is, given what was asked for (empty: nothing) and who can reach the page."""
    if on_a_space:
        return "known" if asked == "any" else asked or "off"
    return asked or ("any" if _is_loopback(host) else "known")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
