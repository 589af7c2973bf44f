"""Packages that only checkpoints need: imported where used, so that `import specdec` works with NumPy alone."""

import importlib
from typing import Any

from specdec.errors import MissingExtraError

EXTRA = "models"


def optional(module: str) -> Any:
    """The module, or MissingExtraError with the pip command that brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError((error.name or module).partition(".")[0], EXTRA) from error
