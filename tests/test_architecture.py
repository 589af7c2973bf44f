"""How the project is built: who may import whom, and how long anything may be. Read from syntax trees."""

import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable

import pytest

from tests.source_rules import (
    LAZILY_REACHED,
    MAX_FILE,
    MAX_FUNCTION,
    MEDIAN_FUNCTION,
    P90_FUNCTION,
    lengths,
    overlong,
    undocumented,
    unsafe,
    wrong_imports,
    wrong_list,
    wrong_packages,
)
from tests.source_tree import ROOT, Source, package_files, repository_files

FILES = package_files()


def offenders(check: Callable[[Source], list[str]], files: Iterable[Source] = FILES) -> dict[str, list[str]]:
    """What a check finds, by file."""
    return {source.name: found for source in files if (found := check(source))}


def test_imports_point_downwards():
    """ui, bench, cluster, onnx, cli → serving, telemetry → decoding → checkpoints, tokenizer → model → the records."""
    assert offenders(wrong_imports) == {}


def test_third_party_packages_stay_where_they_belong():
    """`model` and `decoding` know NumPy alone; others import their packages inside functions."""
    assert offenders(wrong_packages) == {}


def test_lazily_reached_parts_are_reached_lazily():
    """What imports packages at its head is imported inside functions only, but by its own kind."""
    heads = {path.removesuffix("/").removesuffix(".py").replace("/", ".") for path in LAZILY_REACHED}
    eager = {
        f"{source.name}: {module}"
        for source in FILES
        for module, at_once in source.imports()
        if at_once and not source.name.startswith(LAZILY_REACHED)
        if any(module == head or module.startswith(head + ".") for head in heads)
    }
    assert eager == set()


def test_nothing_runs_what_a_file_says():
    """No pickle, eval, exec, yaml.load, shell; no `assert` that -O would drop."""
    assert offenders(unsafe) == {}


def test_files_can_be_read_in_one_sitting():
    """At most 250 lines each."""
    assert offenders(overlong) == {}


def test_every_module_says_what_it_is():
    """Each has a docstring, and each function says what it returns."""
    assert offenders(undocumented) == {}


def test_functions_fit_a_screen():
    """Median ≤ 10 lines, nine in ten ≤ 30, none over 60, over the whole package."""
    counted = lengths(FILES)
    lines = [count for count, _ in counted]
    assert [entry for entry in counted if entry[0] > MAX_FUNCTION] == []
    assert statistics.median(lines) <= MEDIAN_FUNCTION
    assert statistics.quantiles(lines, n=10)[-1] <= P90_FUNCTION


def test_public_names_are_listed():
    """`__all__` is sorted, without repetition, and holds every name that a package re-exports."""
    packages = [source for source in FILES if source.name.endswith("/__init__.py") and source.part]
    assert offenders(wrong_list, packages) == {}


def test_every_public_name_is_there():
    """Each name in `specdec.__all__` resolves, and `dir` shows it."""
    import specdec

    assert {"Engine", "SamplingParams", "Trace", "load_model"} <= set(specdec.__all__)
    assert set(specdec.__all__) <= set(dir(specdec))
    assert [name for name in specdec.__all__ if getattr(specdec, name, None) is None] == []


BLOCKER = """
import sys
from importlib.abc import MetaPathFinder

class OnlyNumPy(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names | {"specdec", "numpy"}:
            raise ModuleNotFoundError(f"{top} is blocked", name=top)

sys.meta_path.insert(0, OnlyNumPy())
import specdec
for name in specdec.__all__:
    getattr(specdec, name)
from specdec.decoding import NgramDrafter
print("numpy" in sys.modules)
"""


def test_numpy_alone_is_enough():
    """`import specdec` and all its public names come up where every other package is refused."""
    run = subprocess.run([sys.executable, "-c", BLOCKER], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout.strip()) == (0, "True"), run.stderr


WORKPLACE = re.compile(r"(?<![\w.:/-])/(?:work|root)/\w|\.\./shared\b")
TEXTS = {".py", ".md", ".toml", ".txt", ".css", ".js", ".html", ".json", ".sh", ".cfg", ".yml", ".yaml", ""}


def test_no_text_names_the_machine_it_was_written_on():
    """Nothing in the repository points at a folder of one particular machine."""
    texts = [path for path in repository_files() if path.suffix in TEXTS]
    found = {str(path): WORKPLACE.findall(path.read_text(encoding="utf-8", errors="replace")) for path in texts}
    assert {name: matches for name, matches in found.items() if matches} == {}


class TestTheRules:
    """Each rule catches a file that breaks it."""

    @pytest.mark.parametrize(
        "line",
        [
            "import pickle",
            "eval('1')",
            "assert 1",
            "np.load(f, allow_pickle=True)",
            "torch.load(f)",
            "run(c, shell=True)",
            "def f():\n    from shelve import open",
        ],
    )
    def test_unsafe_lines_are_found(self, line):
        assert len(unsafe(Source("specdec/x.py", line))) == 1

    def test_safe_lines_pass(self):
        assert unsafe(Source("specdec/x.py", "re.compile('x')\ntorch.load(f, weights_only=True)")) == []

    @pytest.mark.parametrize("part, above", [("model", "decoding"), ("decoding", "serving"), ("serving", "ui")])
    def test_upward_imports_are_found(self, part, above):
        source = Source(f"specdec/{part}/x.py", f"def f():\n    import specdec.{above}.thing")
        assert wrong_imports(source) == [f"specdec.{above}.thing"]

    def test_imports_from_the_root_are_found(self):
        source = Source("specdec/model/x.py", "from specdec import Engine, config")
        assert wrong_imports(source) == ["specdec.Engine"]

    def test_packages_at_the_head_of_a_file_are_found(self):
        text = "import gguf\ndef f():\n    import tokenizers\n    import torch\n    optional('ray')"
        assert wrong_packages(Source("specdec/checkpoints/x.py", text)) == ["gguf", "torch", "ray"]

    def test_long_files_and_untyped_functions_are_found(self):
        assert overlong(Source("specdec/x.py", "x = 1\n" * (MAX_FILE + 1))) == ["251 lines"]
        assert undocumented(Source("specdec/x.py", "def f(): ...")) == ["no docstring", "f"]
