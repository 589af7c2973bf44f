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
            "SPECDEC_MAX_WAIT_SECONDS": "1.5",
            "SPECDEC_REQUESTS_PER_MINUTE": "0",
            "SPECDEC_API_KEY": "key",
        }
    )
    assert settings == Settings(64, 100, 2.5, 0, 500, 2, 1.5, 0, "key")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_NEW_TOKENS", "0"),
        ("MAX_NEW_TOKENS", "many"),
        ("MAX_NEW_TOKENS", "1.5"),
        ("MAX_SECONDS", "nan"),
        ("MAX_SECONDS", "-1"),
        ("QUEUE_LIMIT", "-1"),
        ("MAX_WAIT_SECONDS", "-1"),
        ("REQUESTS_PER_MINUTE", "1.5"),
    ],
)
def test_nonsense_is_refused_by_name(name: str, value: str):
    """The message names the setting, so that its owner finds it."""
    with pytest.raises(ConfigError, match=f"(?i){name}"):
        Settings.from_environment({f"SPECDEC_{name}": value})
