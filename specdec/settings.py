"""What a service allows: from options, from the environment, or as documented here. Imports no NumPy."""

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
PUBLIC = {
    "max_new_tokens": 256,
    "max_prompt_characters": 4_000,
    "max_seconds": 60.0,
    "queue_limit": 8,
    "requests_per_minute": 30,
}
BYTES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}
ORIGIN = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")


def setting(default: Any, metavar: str, meaning: str, **options: Any) -> Any:
    """A field with what its documentation needs: a unit or kind, and what it says."""
    return field(default=default, metadata={"metavar": metavar, "meaning": meaning}, **options)


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits of the service, each documented by its `meaning`; ConfigError where one is out of range.

    `from_environment` reads each from `SPECDEC_<NAME>`.
    """

    max_new_tokens: int = setting(512, "N", "most tokens a request may ask for")
    max_prompt_characters: int = setting(20_000, "N", "longest prompt or conversation, in characters")
    max_seconds: float = setting(120.0, "S", "longest a generation may run, waiting and loading not counted")
    queue_limit: int = setting(16, "N", "requests that may wait behind the running one")
    model_memory_mb: int = setting(8_000, "MB", "weights kept in memory, in units of 10⁶ bytes")
    threads: int = setting(0, "N", "cores for the arithmetic, 0 for all that this process may use")
    bring: str = setting(
        "any",
        "off|known|any",
        "models that visitors of the page may have fetched: none, those that the project knows by name, or whatever "
        "the Hub or this machine has; where others can reach the page known, unless it is set, and on a Space off",
    )
    max_wait_seconds: float = setting(60.0, "S", "longest a request to the API may wait for its turn")
    requests_per_minute: int = setting(120, "N", "requests to the API of one address, 0 for any number")
    prefix_cache_mb: int = setting(
        256,
        "MB",
        "what models have read of earlier prompts, kept so that a conversation's next turn starts sooner, in units of "
        "10⁶ bytes; 0 for nothing",
    )
    api_key: str = setting(
        "",
        "KEY",
        "what clients of the API must show, empty for nothing; better in the environment, where no other user of this "
        "machine sees it",
        repr=False,
    )
    cors_origins: str = setting(
        "",
        "ORIGINS",
        "sites whose pages may read answers of the API, as https://example.org with commas between them; * for all, "
        "empty for none",
    )
    telemetry: str = setting("off", "off|on", "whether requests are told to OpenTelemetry")
    breaker_failures: int = setting(5, "N", "failures of a drafter in a row, after which it is left alone")
    breaker_wait_seconds: float = setting(30.0, "S", "how long, until one request is let through on trial")
    breaker_call_seconds: float = setting(
        5.0, "S", "longest that a drafter may take to answer, for each 128 tokens that it has to read"
    )
    breaker_losing: float = setting(
        0.85,
        "X",
        "times the speed of plain decoding below which drafts are left out, where nobody chose a lookahead; 0 for "
        "never",
    )

    def __post_init__(self) -> None:
        require_int("max_new_tokens", self.max_new_tokens, 1, LIMITS.max_new_tokens)
        require_int("max_prompt_characters", self.max_prompt_characters, 1, 10_000_000)
        require_number("max_seconds", self.max_seconds, 0.001, 86_400)
        require_int("queue_limit", self.queue_limit, 0, 10_000)
        require_int("model_memory_mb", self.model_memory_mb, 1, 10_000_000)
        require_int("threads", self.threads, 0, 1_024)
        _require_word("bring", self.bring, BRING)
        require_number("max_wait_seconds", self.max_wait_seconds, 0.0, 86_400)
        require_int("requests_per_minute", self.requests_per_minute, 0, 1_000_000)
        require_int("prefix_cache_mb", self.prefix_cache_mb, 0, 1_000_000)
        for origin in self.origins:
            if origin != "*" and not ORIGIN.fullmatch(origin):
                raise ConfigError(f"cors_origins must be * or origins as https://example.org, not {origin!r}")
        _require_word("telemetry", self.telemetry, TELEMETRY)
        require_int("breaker_failures", self.breaker_failures, 1, 1_000)
        require_number("breaker_wait_seconds", self.breaker_wait_seconds, 0.001, 86_400)
        require_number("breaker_call_seconds", self.breaker_call_seconds, 0.001, 86_400)
        require_number("breaker_losing", self.breaker_losing, 0.0, 1.0)

    @property
    def origins(self) -> list[str]:
        """`cors_origins`, one by one."""
        return [origin.strip() for origin in self.cors_origins.split(",") if origin.strip()]

    @classmethod
    def from_environment(
        cls,
        environment: Mapping[str, str] = os.environ,
        host: str = "127.0.0.1",
        options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Settings with what `options` say (None: nothing), then every `SPECDEC_<NAME>` that is set.

        On a Hugging Face Space (`SPACE_ID` is set) anybody may come: what is not set is `PUBLIC`, and half of the
        memory it says it has (`MEMORY`) may hold models. `host` is what the page listens on. Where others can reach
        it, `bring` is "known" unless it is set; on a Space it is "off" unless it is set, and never "any".
        ConfigError where one is no number or out of range.
        """
        kinds = {spec.name: type(spec.default) for spec in fields(cls)}
        given = {name: environment.get(PREFIX + name.upper(), "").strip() for name in kinds}
        chosen = {name: value for name, value in (options or {}).items() if value is not None}
        public = bool(environment.get("SPACE_ID"))
        chosen["bring"] = _bring(chosen.get("bring") or given["bring"], on_a_space=public, host=host)
        set_here = {name: _value(name, text, kinds[name]) for name, text in given.items() if text}
        return cls(**(_public(environment) if public else {}) | set_here | chosen)


def _public(environment: Mapping[str, str]) -> dict[str, Any]:
    """Limits where anybody may come; a size of memory that cannot be read is as good as none."""
    size = re.fullmatch(r"(\d{1,15})([KMG]?I?)B?", environment.get("MEMORY", "").strip().upper())
    half = int(size[1]) * BYTES.get(size[2], 0) // 2_000_000 if size else 0
    return PUBLIC | ({"model_memory_mb": half} if half else {})


def _value(name: str, text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError as error:
        raise ConfigError(f"{PREFIX}{name.upper()} must be a number, not {text!r}") from error


def _require_word(name: str, value: str, words: tuple[str, ...]) -> None:
    if value not in words:
        raise ConfigError(f"{name} must be one of {', '.join(words)}, not {value!r}")


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
