"""`load_model`: a name or a path to a language model that can run."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from specdec.checkpoints.checkpoint import open_checkpoint
from specdec.checkpoints.locate import as_path, fetch
from specdec.checkpoints.memory import available_bytes, require_memory
from specdec.checkpoints.progress import Progress
from specdec.checkpoints.registry import ENTRIES, hub_repository
from specdec.model import Transformer
from specdec.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A network with its tokenizer (None where only ids go in and out) and the ids that end a text.

    `licence` is empty where nobody said. `source` is where the weights came from: "bundled", a Hub repository, a path.
    """

    name: str
    network: Transformer
    tokenizer: Tokenizer | None
    eos_ids: frozenset[int]
    licence: str
    source: str


def _name_of(path: Path) -> str:
    """What a folder or a .gguf file is called; a dot in a folder's name is part of it."""
    resolved = path.resolve()
    return resolved.stem if resolved.suffix == ".gguf" else resolved.name


def load_model(
    name_or_path: str | Path, *, threads: int | None = None, progress: Progress | None = None
) -> LanguageModel:
    """Load a model by name (downloaded where it is not on this machine yet), from a folder, or from a .gguf file.

    `threads` is the number of cores for big matrix products, None for all. `progress` gets (what, done, in all): bytes
    of a download, then numbers of weights. Raises LoadError (NotFoundError, UnsupportedError, MemoryLimitError) or
    ConfigError; nothing large is read before configuration, headers and memory have been found good.
    """
    path = as_path(name_or_path)
    name = str(name_or_path) if path is None else _name_of(path)
    entry = ENTRIES.get(name) if path is None else None
    if entry is not None:  # before a download in vain
        require_memory(name, entry.parameters, available_bytes())
    checkpoint = open_checkpoint(fetch(name, progress) if path is None else path)
    require_memory(name, checkpoint.config.parameters, available_bytes())
    weights = checkpoint.weights
    if progress is not None:
        weights = weights.watched(partial(progress, f"loading {name}"))
    return LanguageModel(
        name=name,
        network=Transformer(checkpoint.config, weights, threads=threads),
        tokenizer=checkpoint.tokenizer,
        eos_ids=checkpoint.eos_ids,
        licence=checkpoint.licence if entry is None else entry.licence,
        source=str(path) if path is not None else hub_repository(name) or "bundled",
    )
