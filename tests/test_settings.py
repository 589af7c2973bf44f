"""Settings of the service: what the environment may say."""

import pytest

from specdec.errors import ConfigError
from specdec.serving import Settings


def test_defaults_without_environment():
    """Nothing set, nothing changed; blank counts as not set."""
    assert Settings.from_environment({"SPECDEC_MAX_SECONDS": " ", "OTHER": "1"}) == Settings()


def test_every_setting_can_be_set():
    """Each field has its variable, and numbers keep their kind."""
    settings = Settings.from_environment(
        {
            "SPECDEC_MAX_NEW_TOKENS": "64",
            "SPECDEC_MAX_PROMPT_CHARACTERS": "100",
            "SPECDEC_MAX_SECONDS": "2.5",
            "SPECDEC_QUEUE_LIMIT": "0",
            "SPECDEC_MODEL_MEMORY_MB": "500",
            "SPECDEC_THREADS": "2",
            "SPECDEC_BRING": "known",
            "SPECDEC_MAX_WAIT_SECONDS": "1.5",
            "SPECDEC_REQUESTS_PER_MINUTE": "0",
            "SPECDEC_PREFIX_CACHE_MB": "64",
            "SPECDEC_API_KEY": "key",
            "SPECDEC_CORS_ORIGINS": "https://a.example, *",
            "SPECDEC_TELEMETRY": "on",
            "SPECDEC_BREAKER_FAILURES": "3",
            "SPECDEC_BREAKER_WAIT_SECONDS": "7",
            "SPECDEC_BREAKER_CALL_SECONDS": "0.5",
            "SPECDEC_BREAKER_LOSING": "0",
        }
    )
    assert settings.origins == ["https://a.example", "*"]
    assert settings == Settings(
        64, 100, 2.5, 0, 500, 2, "known", 1.5, 0, 64, "key", "https://a.example, *", "on", 3, 7.0, 0.5, 0.0
    )


@pytest.mark.parametrize(
    ("asked", "space", "host", "allowed"),
    [
        ("", False, "127.0.0.1", "any"),
        ("", False, "::1", "any"),
        ("", False, "localhost", "any"),
        ("", False, "0.0.0.0", "known"),
        ("", False, "demo.example.org", "known"),
        ("any", False, "0.0.0.0", "any"),
        ("off", False, "127.0.0.1", "off"),
        ("", True, "127.0.0.1", "off"),
        ("known", True, "0.0.0.0", "known"),
        ("any", True, "127.0.0.1", "known"),
    ],
)
def test_who_can_reach_the_page_decides_what_may_be_brought(asked: str, space: bool, host: str, allowed: str):
    """Anything on one's own machine, known names on a network, nothing on a Space unless its owner names it."""
    environment = {"SPECDEC_BRING": asked} | ({"SPACE_ID": "somebody/specdec"} if space else {})
    assert Settings.from_environment(environment, host).bring == allowed


def test_options_come_before_the_environment():
    """None is no option; `bring` from an option is bound by a Space as that from the environment is."""
    options = {"max_seconds": 5.0, "queue_limit": None, "bring": "any"}
    environment = {"SPECDEC_MAX_SECONDS": "9", "SPECDEC_QUEUE_LIMIT": "3", "SPACE_ID": "a/b"}
    settings = Settings.from_environment(environment, options=options)
    assert (settings.max_seconds, settings.queue_limit, settings.bring) == (5.0, 3, "known")


def test_a_public_space_has_tighter_limits():
    """SPACE_ID: fewer tokens, shorter prompts, less time, a shorter queue; what is set by name comes first."""
    usual, public = Settings(), Settings.from_environment({"SPACE_ID": "a/b"})
    for name in ("max_new_tokens", "max_prompt_characters", "max_seconds", "queue_limit", "requests_per_minute"):
        assert getattr(public, name) < getattr(usual, name)
    own = Settings.from_environment({"SPACE_ID": "a/b", "SPECDEC_MAX_NEW_TOKENS": "400"})
    assert (own.max_new_tokens, own.max_seconds) == (400, public.max_seconds)


@pytest.mark.parametrize(
    ("memory", "megabytes"),
    [("16Gi", 8_589), ("32G", 16_000), ("2048Mi", 1_073), ("17179869184", 8_589), ("a lot", 8_000), ("", 8_000)],
)
def test_half_of_a_spaces_memory_is_for_models(memory: str, megabytes: int):
    """As Kubernetes writes sizes; anything else changes nothing, nor does it where there is no Space."""
    assert Settings.from_environment({"SPACE_ID": "a/b", "MEMORY": memory}).model_memory_mb == megabytes
    assert Settings.from_environment({"MEMORY": memory}) == Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_NEW_TOKENS", "0"),
        ("MAX_NEW_TOKENS", "many"),
        ("MAX_NEW_TOKENS", "1.5"),
        ("MAX_SECONDS", "nan"),
        ("MAX_SECONDS", "-1"),
        ("QUEUE_LIMIT", "-1"),
        ("BRING", "yes"),
        ("MAX_WAIT_SECONDS", "-1"),
        ("REQUESTS_PER_MINUTE", "1.5"),
        ("TELEMETRY", "yes"),
        ("PREFIX_CACHE_MB", "-1"),
        ("CORS_ORIGINS", "example.org"),
        ("CORS_ORIGINS", "https://a.example/path"),
    ],
)
def test_nonsense_is_refused_by_name(name: str, value: str):
    """The message names the setting, so that its owner finds it."""
    with pytest.raises(ConfigError, match=f"(?i){name}"):
        Settings.from_environment({f"SPECDEC_{name}": value})
