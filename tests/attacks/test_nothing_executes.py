"""Nothing that a file says is ever run: no pickle, no eval, no exec, no loader that could, anywhere in the package.

`torch.load` is let through with `weights_only=True`, which unpickles nothing but tensors.
"""

import ast
from pathlib import Path

import pytest

import specdec

PACKAGE = Path(specdec.__file__).parent
FORBIDDEN_MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "marshal",
    "shelve",
    "yaml",
    "imp",
}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_METHODS = {
    ("np", "load"),
    ("numpy", "load"),
    ("torch", "load"),
    ("os", "system"),
    ("os", "popen"),
    ("yaml", "load"),
}
FORBIDDEN_ARGUMENTS = {"allow_pickle", "shell", "trust_remote_code"}


def offences(source: str) -> list[str]:
    """What a module does that it must not."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names if name.name.partition(".")[0] in FORBIDDEN_MODULES]
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in FORBIDDEN_MODULES:
            found.append(str(node.module))
        if isinstance(node, ast.Call):
            found += [call for call in [_offence(node)] if call]
    return found


def _offence(node: ast.Call) -> str:
    arguments = {word.arg for word in node.keywords if not isinstance(word.value, ast.Constant) or word.value.value}
    if arguments & FORBIDDEN_ARGUMENTS:
        return str(arguments & FORBIDDEN_ARGUMENTS)
    if isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
        return node.func.id
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        call = (node.func.value.id, node.func.attr)
        safe = call == ("torch", "load") and "weights_only" in arguments
        return ".".join(call) if call in FORBIDDEN_METHODS and not safe else ""
    return ""


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_can_execute_data(path: Path) -> None:
    """Syntax tree of every module of the package."""
    assert offences(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle", "from pickle import loads", "import yaml.x", "eval('1')", "exec(x)", "compile(x, '', 'exec')",
        "np.load(x)", "torch.load(x)", "torch.load(x, weights_only=False)", "f(allow_pickle=True)", "os.system(x)",
        "subprocess.run(x, shell=True)", "__import__(x)", "f(trust_remote_code=True)",
    ],
)  # fmt: skip
def test_the_check_itself_finds_them(source: str) -> None:
    """A control."""
    assert offences(source)


def test_a_pickle_in_the_place_of_weights_is_not_opened(tmp_path: Path) -> None:
    """A file that would create another one when unpickled, under every name that weights have: nothing happens."""
    from specdec.checkpoints import load_model
    from specdec.errors import LoadError
    from tests.attacks.files import tiny_model

    proof = tmp_path / "executed"
    bomb = b"cos\nsystem\n(S'touch " + str(proof).encode() + b"'\ntR."
    for name in ("model.safetensors", "pytorch_model.bin", "tokenizer.json", "config.json"):
        folder = tiny_model(tmp_path / name.partition(".")[0])
        if name == "pytorch_model.bin":
            (folder / "model.safetensors").unlink()
        (folder / name).write_bytes(bomb)
        with pytest.raises(LoadError):
            load_model(folder)
    assert not proof.exists()
