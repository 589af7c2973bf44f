"""What needs more than NumPy says which package is missing, and how to get it."""

import subprocess
import sys
from pathlib import Path

import pytest

from specdec.checkpoints import DEFAULT_DRAFT
from tests.checkpoints.converter import to_gguf
from tests.checkpoints.files import bpe, tokenizer_metadata
from tests.model.random_models import llama_reference

BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"tokenizers", "gguf", "jinja2", "huggingface_hub", "safetensors", "tqdm"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocker())
"""


def run(code: str, *arguments: object) -> str:
    """Output of a fresh interpreter in which only NumPy is installed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", BLOCKED + code, *map(str, arguments)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_package_is_imported_with_numpy_alone() -> None:
    """Importing, listing and refusing names needs nothing else."""
    assert "specdec-draft-2x64" in run(
        "from specdec.checkpoints import known_models, resolve; import specdec.tokenizer\n"
        "print([info.name for info in known_models() if info.path is not None])\n"
    )


ATTEMPT = """
from specdec.errors import MissingExtraError
from specdec.checkpoints import load_model
try:
    load_model(sys.argv[1])
except MissingExtraError as error:
    print(error)
"""


@pytest.mark.parametrize("package", ["tokenizers", "gguf", "huggingface_hub"])
def test_a_missing_package_is_named_with_its_remedy(tmp_path: Path, package: str) -> None:
    """tokenizers for a folder with one, gguf for a GGUF file, huggingface_hub for the Hub."""
    metadata = tokenizer_metadata(bpe(), "gpt-2")
    file = to_gguf(llama_reference(vocab_size=400), tmp_path / "m.gguf", "llama", metadata=metadata)
    wanted = {"tokenizers": DEFAULT_DRAFT, "gguf": file, "huggingface_hub": "org/name"}[package]
    assert run(ATTEMPT, wanted) == f"{package} is not installed: run pip install '.[models]' in the project's folder"


def test_a_model_for_ids_needs_numpy_alone(tmp_path: Path) -> None:
    """A safetensors folder without a tokenizer runs with nothing else installed."""
    llama_reference().save_pretrained(tmp_path)
    code = "from specdec.checkpoints import load_model\nprint(load_model(sys.argv[1], threads=1).network.vocab_size)"
    assert run(code, tmp_path) == "300"
