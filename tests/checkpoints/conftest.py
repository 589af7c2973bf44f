"""Caches that are empty, and a Hub to fill them from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checkpoints.files import bpe, write_tokenizer
from tests.checkpoints.servers import Hub, out_of_reach, serving
from tests.model.random_models import llama_reference


@pytest.fixture
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty caches, and a Hub and a package index that are out of reach."""
    out_of_reach(tmp_path, monkeypatch)
    return tmp_path


@pytest.fixture(scope="package")
def repository(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A repository's files: a model with tokenizer, and much that must not be downloaded."""
    folder = tmp_path_factory.mktemp("repository")
    llama_reference(vocab_size=400).save_pretrained(folder)
    write_tokenizer(folder, bpe())
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    rubbish = [
        "pytorch_model.bin",
        "README.md",
        "onnx/model.safetensors",
        "tf_model.h5",
        "run.py",
        "model.safetensors.py",
    ]
    return files | dict.fromkeys(rubbish, b"do not fetch")


@pytest.fixture
def hub(clean: Path, repository: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The stand-in Hub, in the place of the real one."""
    with serving(Hub("toys/llama", repository)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub
