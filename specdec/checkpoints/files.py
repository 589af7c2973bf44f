"""A model's folder, read as what it is: data from a stranger.

Only named, regular files inside the folder are opened, and only up to a size. Links are followed as far as the
folder, or, in the Hugging Face Hub's cache, as far as the repository's own store of blobs; never out of it.
"""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from specdec.errors import ConfigError, LoadError, NotFoundError

MAX_JSON_BYTES = 4 << 20
MAX_TOKENIZER_BYTES = 128 << 20


class ModelFolder:
    """Files of one model by their plain names."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise NotFoundError(f"there is no model folder {path}")
        self.path = path
        self._root = _boundary(path.resolve())

    def find(self, name: str) -> Path | None:
        """The file's path, or None where there is none; LoadError where it is not a plain file of this folder."""
        if not is_plain_name(name):
            raise LoadError(f"{self.path} refers to {name[:100]!r}, which is not a plain file name")
        path = self.path / name
        if not path.is_symlink() and not path.exists():
            return None
        try:
            target = path.resolve()
        except (OSError, RuntimeError) as error:
            raise LoadError(f"{path} is a link that leads nowhere") from error
        if not target.is_relative_to(self._root):
            raise LoadError(f"{path} is a link that leads out of the model's folder")
        require_regular(target, path)
        return path

    def require(self, name: str) -> Path:
        """The file's path; NotFoundError where there is none."""
        path = self.find(name)
        if path is None:
            raise NotFoundError(f"{self.path} has no {name}")
        return path

    def text(self, name: str, limit: int = MAX_JSON_BYTES) -> str | None:
        """The whole of a text file of at most `limit` bytes, or None where there is none."""
        path = self.find(name)
        return None if path is None else read_text(path, limit)

    def json(self, name: str, limit: int = MAX_JSON_BYTES) -> dict[str, Any] | None:
        """A JSON object, or None where there is no such file."""
        text = self.text(name, limit)
        return None if text is None else parse_object(text, str(self.path / name))


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the file's name before the message of an error of ours that lacks it."""
    try:
        yield
    except (ConfigError, LoadError) as error:
        if str(path) in str(error):
            raise
        raise type(error)(f"{path}: {error}") from error


def is_plain_name(name: str) -> bool:
    """Whether `name` can only mean a file directly inside a folder."""
    printable = name.isascii() and name.isprintable() and not set(name) & set("/\\:")
    return printable and 0 < len(name) <= 255 and name not in (".", "..")


def require_regular(target: Path, shown: Path) -> None:
    """Raise LoadError unless `target` is a regular file: opening a pipe or a device could wait for ever."""
    try:
        mode = target.stat().st_mode
    except OSError as error:
        raise LoadError(f"{shown} cannot be read: {error.strerror or error}") from error
    if not stat.S_ISREG(mode):
        raise LoadError(f"{shown} is not a regular file")


def read_text(path: Path, limit: int) -> str:
    """A UTF-8 file of at most `limit` bytes."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(min(size, limit) + 1)  # no more than is there: a read allocates what it is asked for
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(data) > limit:
        raise LoadError(f"{path} is larger than {limit:,} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LoadError(f"{path} is not UTF-8 text") from error


def parse_object(text: str, where: str) -> dict[str, Any]:
    """A JSON object; LoadError where the text is none, is nested too deeply, or names a key twice."""
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except RecursionError as error:
        raise LoadError(f"{where} is nested too deeply") from error
    except ValueError as error:
        raise LoadError(f"{where} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise LoadError(f"{where} must hold a JSON object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key appears twice")
    return result


def _boundary(folder: Path) -> Path:
    """How far links may lead: `models--org--name` for a snapshot in the Hub's cache, else the folder itself."""
    repository = folder.parent.parent
    if folder.parent.name == "snapshots" and repository.name.startswith("models--"):
        return repository
    return folder
