"""The limits of a service as options. Imports no NumPy."""

import argparse
from collections.abc import Collection
from dataclasses import fields
from typing import Any

from specdec.settings import PREFIX, Settings

GROUP = f"Each can also be set in the environment, as {PREFIX} and its name: {PREFIX}MAX_NEW_TOKENS."


def add_settings(parser: argparse.ArgumentParser, but: Collection[str] = ()) -> None:
    """An option for each setting whose name is not among `but`; left alone it is None."""
    group = parser.add_argument_group("limits", GROUP)
    for spec in fields(Settings):
        if spec.name not in but:
            group.add_argument(
                f"--{spec.name.replace('_', '-')}",
                type=type(spec.default),
                metavar=spec.metadata["metavar"],
                help=f"{spec.metadata['meaning']} (default: {shown(spec.default)})",
            )


def chosen_settings(options: argparse.Namespace) -> dict[str, Any]:
    """What the options say of settings, for `Settings.from_environment`."""
    return {spec.name: getattr(options, spec.name, None) for spec in fields(Settings)}


def shown(default: Any) -> str:
    """A default as documentation has it."""
    return f"{default:g}" if isinstance(default, float) else str(default) or "nothing"
