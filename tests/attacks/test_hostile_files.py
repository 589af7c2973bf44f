"""Files written to hurt: one clear error each, naming the file, without a large allocation."""

import json
import os
import socket
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.numpy

from specdec.checkpoints import load_model
from specdec.checkpoints.gguf_file import read_gguf
from specdec.checkpoints.safetensors_file import open_safetensors
from specdec.errors import ConfigError, LoadError
from tests.attacks.files import CONFIG_TEXTS, CONFIGS, GGUF, SAFETENSORS, gguf, one, tiny_model

MAX_PEAK = 16 << 20
MAX_SECONDS = 0.05


def refused(path: Path, read: Callable[[Path], object]) -> str:
    """The message of the LoadError or ConfigError that reading ends in; and reading allocated little."""
    tracemalloc.start()
    try:
        with pytest.raises((LoadError, ConfigError)) as caught:
            read(path)
        assert tracemalloc.get_traced_memory()[1] <= MAX_PEAK
    finally:
        tracemalloc.stop()
    message = str(caught.value)
    assert path.name in message
    assert len(message) < 600
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", SAFETENSORS)
def test_a_wrong_safetensors_header_is_refused(tmp_path: Path, name: str) -> None:
    """LoadError naming the file, peak allocation at most 16 MiB."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(SAFETENSORS[name])
    refused(path, open_safetensors)


def test_the_reference_implementation_refuses_them_too() -> None:
    """All but three, where this reader is stricter: a key given twice, a fraction of a limit, an empty giant."""
    stricter = {"key twice", "nine dimensions", "shape of an empty tensor with a huge side", "entry with more"}
    for name, raw in SAFETENSORS.items():
        try:
            safetensors.numpy.load(raw)
        except Exception:
            continue
        assert name in stricter, name


@pytest.mark.parametrize("name", GGUF)
def test_a_wrong_gguf_header_is_refused(tmp_path: Path, name: str) -> None:
    """LoadError naming the file, before any large allocation."""
    path = tmp_path / "model.gguf"
    path.write_bytes(GGUF[name])
    refused(path, read_gguf)


def test_the_sound_files_are_read(tmp_path: Path) -> None:
    """A control: the generators' right files are right, so that the tests above fail for their reason."""
    (tmp_path / "model.safetensors").write_bytes(one())
    assert open_safetensors(tmp_path / "model.safetensors")["x"].read().tolist() == [0.0, 0.0]
    (tmp_path / "model.gguf").write_bytes(gguf())
    assert read_gguf(tmp_path / "model.gguf").tensors["x"].read().tolist() == [0.0, 0.0]
    assert load_model(tiny_model(tmp_path / "model"), threads=1).network.vocab_size == 400


@pytest.mark.parametrize("name", CONFIGS)
def test_a_hostile_configuration_is_refused(tmp_path: Path, name: str) -> None:
    """ConfigError or LoadError naming config.json, before anything is allocated."""
    folder = tiny_model(tmp_path / "model")
    (folder / "config.json").write_text(json.dumps(CONFIGS[name]))
    refused(folder / "config.json", lambda path: load_model(path.parent))


@pytest.mark.parametrize("name", CONFIG_TEXTS)
def test_a_configuration_that_is_no_json_object_is_refused(tmp_path: Path, name: str) -> None:
    """Deep nesting, giant numbers, giant files, other encodings."""
    folder = tiny_model(tmp_path / "model")
    (folder / "config.json").write_bytes(CONFIG_TEXTS[name])
    refused(folder / "config.json", lambda path: load_model(path.parent))


@pytest.mark.parametrize("name", ["generation_config.json", "tokenizer_config.json", "special_tokens_map.json"])
@pytest.mark.parametrize("kind", ["not JSON", "nested 100,000 deep", "larger than 4 MiB"])
def test_the_other_json_files_are_read_as_carefully(tmp_path: Path, name: str, kind: str) -> None:
    """Each names itself."""
    folder = tiny_model(tmp_path / "model")
    (folder / name).write_bytes(CONFIG_TEXTS[kind])
    refused(folder / name, lambda path: load_model(path.parent))


def test_a_configuration_larger_than_its_weights_is_refused(tmp_path: Path) -> None:
    """The configuration asks for more than the file holds: the first tensor of the wrong shape is named."""
    folder = tiny_model(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 64}))
    with pytest.raises(LoadError, match=r"mlp\.(gate|up|down)_proj\.weight has shape"):
        load_model(folder, threads=1)


LINKED = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"]


@pytest.mark.parametrize("name", LINKED)
def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path, name: str) -> None:
    """Whatever the file is called, and whether the link is absolute or relative."""
    folder, outside = tiny_model(tmp_path / "model"), tiny_model(tmp_path / "outside")
    (outside / "chat_template.jinja").write_text("secret")
    for target in (outside / name, Path("..") / "outside" / name, "/etc/passwd", "/dev/zero"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)
        assert "leads out of" in refused(folder / name, lambda path: load_model(path.parent))


def test_a_link_to_nowhere_is_an_error(tmp_path: Path) -> None:
    """A dangling link inside the folder is not an absent file."""
    folder = tiny_model(tmp_path / "model")
    (folder / "tokenizer_config.json").unlink()
    (folder / "tokenizer_config.json").symlink_to(folder / "nothing")
    refused(folder / "tokenizer_config.json", lambda path: load_model(path.parent))


def test_a_link_to_itself_is_an_error(tmp_path: Path) -> None:
    """A loop of links ends in an error, not in another."""
    folder = tiny_model(tmp_path / "model")
    (folder / "tokenizer_config.json").unlink()
    (folder / "tokenizer_config.json").symlink_to("tokenizer_config.json")
    refused(folder / "tokenizer_config.json", lambda path: load_model(path.parent))


def test_links_inside_a_hub_cache_are_followed(tmp_path: Path) -> None:
    """The Hub's cache links its snapshots to blobs of the same repository; of another one they are refused."""
    repository = tmp_path / "models--org--name"
    blobs = tiny_model(repository / "blobs")
    snapshot = repository / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    for path in blobs.iterdir():
        (snapshot / path.name).symlink_to(Path("..") / ".." / "blobs" / path.name)
    assert load_model(snapshot, threads=1).network.vocab_size == 400
    other = tiny_model(tmp_path / "models--org--other" / "blobs")
    (snapshot / "config.json").unlink()
    (snapshot / "config.json").symlink_to(other / "config.json")
    refused(snapshot / "config.json", lambda path: load_model(path.parent))


def test_pipes_sockets_and_folders_are_not_opened(tmp_path: Path) -> None:
    """Reading a pipe would wait for ever."""
    folder = tiny_model(tmp_path / "model")
    path = folder / "config.json"
    path.unlink()
    os.mkfifo(path)
    assert "not a regular file" in refused(path, lambda path: load_model(path.parent))
    path.unlink()
    path.mkdir()
    assert "not a regular file" in refused(path, lambda path: load_model(path.parent))
    path.rmdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        assert "not a regular file" in refused(path, lambda path: load_model(path.parent))
    os.mkfifo(tmp_path / "pipe.gguf")
    assert "not a regular file" in refused(tmp_path / "pipe.gguf", load_model)


@pytest.mark.load
def test_refusals_are_quick(tmp_path: Path) -> None:
    """50 ms for every safetensors and GGUF file above (best of three)."""
    for files, read, suffix in ((SAFETENSORS, open_safetensors, "safetensors"), (GGUF, read_gguf, "gguf")):
        path = tmp_path / f"model.{suffix}"
        for name, raw in files.items():
            path.write_bytes(raw)
            seconds = []
            for _ in range(3):
                start = time.perf_counter()
                with pytest.raises(LoadError):
                    read(path)
                seconds.append(time.perf_counter() - start)
            assert min(seconds) <= MAX_SECONDS, name
