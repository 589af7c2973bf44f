"""Where the models lie that come with the project."""

from pathlib import Path

import specdec

TARGETS = ("specdec-target-8x384", "specdec-target-4x256")  # the default first
DRAFTS = ("specdec-draft-2x128", "specdec-draft-2x64", "specdec-draft-1x128")
DEFAULT_TARGET, DEFAULT_DRAFT = TARGETS[0], DRAFTS[0]


def assets_dir() -> Path:
    """The folder of assets: inside the package where it was installed from a wheel, beside it in a checkout."""
    package = Path(specdec.__file__).resolve().parent
    inside = package / "assets"
    return inside if inside.is_dir() else package.parent / "assets"


def bundled_path(name: str) -> Path:
    """The folder of a bundled model, whether or not it is there."""
    return assets_dir() / "models" / name
