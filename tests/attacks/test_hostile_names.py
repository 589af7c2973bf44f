"""Names that are paths, URLs or worse: refused before a file system or a network sees them."""

import socket
from pathlib import Path

import pytest

from specdec.checkpoints import fetch, known_models, load_model, resolve
from specdec.checkpoints.registry import require_name
from specdec.errors import NotFoundError

NAMES = [
    "", " ", ".", "..", "../x", "a/../b", "../../etc/passwd", "a/..", "../a/b", "./gpt2", "a/b/c", "/etc/passwd",
    "//host/share", "~", "~root", "C:\\models", "..\\x", "a\\b", "gpt2\0", "\0", "org/na\0me", "org/name\n", "gpt2\r\n",
    "http://evil.test/x", "https://huggingface.co/gpt2", "file:///etc/passwd", "hf://org/name", "git+ssh://x/y",
    "org/name@main", "org/name?x=1", "org/name#x", "org/na me", "org/", "/name", "org//name", "-org/name", "org/-name",
    ".org/name", "org/.name", "a..b/c", "org/na..me", "$(id)", "org/$(id)", "`id`", "org/name;id", "gpt2|x", "%2e%2e/x",
    "..%2fx", "org/%2e%2e", "оrg/name", "org/nаme", "org/name\u202e", "x" * 300, "a/" + "x" * 300, "GPT2",
    "specdec-target-4x256/..", "con:", "--help",
]  # fmt: skip


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with targets that a name could hit, and no network at all."""
    for name in ("x", "a", "b", "a/b", "org", "org/name", "a/b/c"):
        (tmp_path / "here" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("SPECDEC_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(socket, "socket", lambda *args, **kwargs: pytest.fail("a socket was opened"))
    return tmp_path


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_what_is_no_name_is_refused(elsewhere: Path, name: str) -> None:
    """By the registry, by resolve without paths, and by fetch; the message is one short printable line."""
    for refuse in (require_name, fetch, lambda name: resolve(name, allow_paths=False)):
        with pytest.raises(NotFoundError) as caught:
            refuse(name)
        message = str(caught.value)
        assert message.isprintable()
        assert message.isascii()
        assert len(message) < 500


@pytest.mark.parametrize("name", [*NAMES, "/" + "x" * 5000, "~nobody-of-this-name/x", "x" * 5000 + ".gguf"], ids=ascii)
def test_load_model_refuses_what_is_neither_name_nor_model(elsewhere: Path, name: str) -> None:
    """Where paths are allowed, they must still lead to a model; NUL and URLs never do."""
    with pytest.raises(NotFoundError):
        load_model(name)


@pytest.mark.parametrize("value", [None, 3, b"gpt2", ["gpt2"], Path("gpt2")])
def test_a_name_is_a_text(value: object) -> None:
    """Anything else is refused as a name."""
    with pytest.raises(NotFoundError):
        require_name(value)


def test_a_path_is_no_name(elsewhere: Path) -> None:
    """Where only names are allowed, an existing folder is not reached, whatever it is called."""
    for path in (elsewhere / "org", Path("org/name"), "./org/name", str(elsewhere / "org")):
        with pytest.raises(NotFoundError):
            resolve(path, allow_paths=False)


def test_every_known_name_is_one() -> None:
    """A control: the project's own names, and the Hub's form of a name, pass."""
    for name in [info.name for info in known_models()] + ["org/name", "Org-1/Na_me.v2-B", "a/b"]:
        assert require_name(name) == name
