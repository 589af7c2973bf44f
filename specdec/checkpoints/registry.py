"""Models by name: those that come with the project, and those it knows on the Hugging Face Hub.

A name is never a path: what looks like one, or like a URL, is refused here, before it reaches a file system or a
network.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from specdec.checkpoints.bundled import DRAFTS, TARGETS
from specdec.errors import NotFoundError

Kind = Literal["bundled", "known"]
Role = Literal["target", "draft", "either"]

_PART = r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,95}"
_HUB_NAME = re.compile(f"{_PART}/{_PART}")


@dataclass(frozen=True, slots=True)
class Entry:
    """A model the project knows. `parameters` counts tied output once; `size` is bytes to download.

    Models of one `vocabulary` give the same ids the same meaning, so that one may draft for another.
    """

    name: str
    kind: Kind
    repository: str
    parameters: int
    size: int
    licence: str
    role: Role
    vocabulary: str


@dataclass(frozen=True, slots=True)
class ModelInfo(Entry):
    """An entry, and where it lies on this machine; `path` None where it does not."""

    path: Path | None


def _bundled(name: str, role: Role) -> Entry:
    return Entry(name, "bundled", "", 0, 0, "Apache-2.0", role, "stories")


def _smollm2(scale: str, parameters: int, size: int, role: Role) -> Entry:
    repository = f"HuggingFaceTB/SmolLM2-{scale}-Instruct"
    return Entry(
        f"smollm2-{scale.lower()}-instruct", "known", repository, parameters, size, "Apache-2.0", role, "smollm2"
    )


def _gpt2(repository: str, parameters: int, size: int, licence: str, role: Role) -> Entry:
    name = repository.rpartition("/")[2]
    return Entry(name, "known", repository, parameters, size, licence, role, "gpt2")


_ALL = (
    *(_bundled(name, "target") for name in TARGETS),
    *(_bundled(name, "draft") for name in DRAFTS),
    _smollm2("135M", 134_515_008, 269_060_552, "either"),
    _smollm2("360M", 361_821_120, 723_674_912, "either"),
    _smollm2("1.7B", 1_711_376_384, 3_422_777_952, "target"),
    _gpt2("distilbert/distilgpt2", 81_912_576, 352_824_413, "Apache-2.0", "draft"),
    _gpt2("openai-community/gpt2", 124_439_808, 548_105_171, "MIT", "either"),
    _gpt2("openai-community/gpt2-medium", 354_823_168, 1_519_984_962, "MIT", "either"),
    _gpt2("openai-community/gpt2-large", 774_030_080, 3_247_159_078, "MIT", "target"),
    _gpt2("openai-community/gpt2-xl", 1_557_611_200, 6_431_829_964, "MIT", "target"),
)
ENTRIES = {entry.name: entry for entry in _ALL}


def require_name(name: object) -> str:
    """The name itself: one of ours, or `organisation/repository`; NotFoundError for anything else."""
    if isinstance(name, str) and (name in ENTRIES or _HUB_NAME.fullmatch(name)):
        return name
    shown = ascii(name[:60]) if isinstance(name, str) else type(name).__name__
    raise NotFoundError(f"no model is called {shown}; known are {', '.join(ENTRIES)}, or organisation/repository")


def hub_repository(name: str) -> str | None:
    """The repository on the Hub that a valid name stands for; None for a bundled model."""
    entry = ENTRIES.get(name)
    return name if entry is None else entry.repository or None
