"""Where downloaded models are kept: `$SPECDEC_HOME`, or `~/.cache/specdec`. The Hub's own cache stays where it is."""

import os
from pathlib import Path


def home() -> Path:
    """The project's cache folder, whether or not it exists."""
    chosen = os.environ.get("SPECDEC_HOME")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "specdec"


def model_folder(name: str) -> Path:
    """Where a model of the registry is kept that did not come from the Hub."""
    return home() / "models" / name
