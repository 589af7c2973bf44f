"""Models from the Hugging Face Hub, by `huggingface_hub` and in its cache, so that other programs' copies are found.

Only what is read is asked for: JSON, the chat template and safetensors, never a pickle. `HF_ENDPOINT`, `HF_HOME`,
`HF_HUB_CACHE`, `HF_HUB_OFFLINE` and `HF_TOKEN` mean what they mean to that library.
"""

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specdec.checkpoints.extras import optional
from specdec.checkpoints.files import ModelFolder
from specdec.checkpoints.patience import patience
from specdec.checkpoints.progress import Progress
from specdec.checkpoints.safetensors_file import INDEX, SINGLE, shard_names
from specdec.errors import LoadError, NotFoundError, UnsupportedError

FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "chat_template.json",
    SINGLE,
    INDEX,
    "model-*-of-*.safetensors",
)


def cached(repository: str) -> Path | None:
    """The repository's folder in the Hub's cache, where all that is needed lies there; no network."""
    try:
        folder = Path(_snapshot(repository, local_files_only=True))
    except Exception:  # whatever is wrong with a copy in the cache, it is not one to use
        return None
    return folder if _is_whole(folder) else None


def configuration(repository: str) -> Path:
    """The repository's folder with its config.json and maybe nothing else; NotFoundError as `download` raises it."""
    return _fetched(repository, ("config.json",), lambda *_: None)  # without a bar


def download(repository: str, progress: Progress | None = None) -> Path:
    """The repository's folder in the Hub's cache, completed from the network; NotFoundError where that cannot be."""
    folder = _fetched(repository, FILES, progress)
    if not _is_whole(folder):
        raise UnsupportedError(
            f"{repository} has no config.json with safetensors weights, the only kind read from the Hub"
        )
    return folder


def _fetched(repository: str, files: Sequence[str], progress: Progress | None) -> Path:
    """The repository's folder with those of the files that there are; what goes wrong is told in one sentence."""
    errors: Any = optional("huggingface_hub.errors")
    report = _Report(repository, progress)
    patiently = patience(report.repeat)
    bars = {} if progress is None else {"tqdm_class": _bars(report)}
    try:
        return Path(patiently(lambda: _snapshot(repository, files, **bars)))
    except errors.GatedRepoError as error:
        raise NotFoundError(
            f"{repository} asks for its terms to be accepted on the Hub first, and for HF_TOKEN"
        ) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise NotFoundError(f"the Hugging Face Hub has no public model {repository}") from error
    except errors.LocalEntryNotFoundError as error:
        raise NotFoundError(f"{repository} is not on this machine, and the Hugging Face Hub is out of reach") from error
    except Exception as error:
        if report.failure:
            raise report.failure from None
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise NotFoundError(f"{repository} could not be downloaded: {reason}") from error


def _snapshot(repository: str, files: Sequence[str] = FILES, **options: Any) -> str:
    home = os.environ.get("HF_HOME")
    path: str = optional("huggingface_hub").snapshot_download(
        repository,
        allow_patterns=list(files),
        cache_dir=os.environ.get("HF_HUB_CACHE") or (Path(home) / "hub" if home else None),
        endpoint=os.environ.get("HF_ENDPOINT"),
        **options,
    )
    return path


def _is_whole(path: Path) -> bool:
    """Whether configuration and every file of weights are there; the library links a file only when it is complete."""
    try:
        folder = ModelFolder(path)
        folder.require("config.json")
        for name in shard_names(folder):
            folder.require(name)
    except LoadError:
        return False
    return True


class _Report:
    """Tells `progress` of one repository. What that raises, to cancel for instance, is kept in `failure`."""

    def __init__(self, repository: str, progress: Progress | None) -> None:
        self._repository = repository
        self._progress = progress
        self._last = (0, 1)
        self.failure: BaseException | None = None

    def __call__(self, done: int, total: int) -> None:
        self._last = done, total
        self.repeat()

    def repeat(self) -> None:
        """Tell the same as last time."""
        try:
            if self._progress:
                self._progress(self._repository, *self._last)
        except BaseException as error:
            self.failure = error
            raise


def _bars(report: _Report) -> type[Any]:
    """A progress bar that draws nothing and reports the bytes of the whole download; what `report` raises ends it."""
    tqdm: Any = optional("tqdm").tqdm

    class Bar(tqdm):  # type: ignore[misc]
        monitor_interval = 0  # no watching thread

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options | {"file": io.StringIO(), "disable": False})

        def update(self, n: float | None = 1) -> bool | None:
            changed: bool | None = super().update(n)
            if self.unit == "B" and self.total:
                report(int(min(self.n, self.total)), int(self.total))
            return changed

    return Bar
