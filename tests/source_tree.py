"""The project's own source as syntax trees, for tests that are about how it is written."""

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = {".git", ".venv", ".venv-test", ".cache", "dist", "node_modules"}


@dataclass(frozen=True)
class Source:
    """A Python file; `name` is its path from the root, as POSIX has it."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.name)

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    @property
    def part(self) -> str:
        """The package or module below `specdec` that it belongs to: "model", "records"; "" for the root itself."""
        inside = PurePosixPath(self.name).relative_to("specdec").with_suffix("").parts
        return "" if inside[0] in ("__init__", "__main__") else inside[0]

    def imports(self) -> Iterator[tuple[str, bool]]:
        """Modules imported, each with whether that happens as soon as this file is imported."""
        yield from _imports(self.tree, True)


def _imports(node: ast.AST, at_once: bool) -> Iterator[tuple[str, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, at_once) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"relative import in line {child.lineno}"
            module = child.module or ""
            names = [f"{module}.{alias.name}" for alias in child.names] if module == "specdec" else [module]
            yield from ((name, at_once) for name in names)
        elif isinstance(child, ast.Call) and _is_import(child):
            yield ast.literal_eval(child.args[0]), False
        else:
            deferred = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _imports(child, at_once and not deferred)


def _is_import(call: ast.Call) -> bool:
    """Whether a call imports a module that it names: `optional("gguf")`, `importlib.import_module("gguf")`."""
    named = bool(call.args) and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
    return named and ast.unparse(call.func) in ("optional", "importlib.import_module", "import_module")


def package_files() -> list[Source]:
    """Every Python file of the package."""
    paths = sorted((ROOT / "specdec").rglob("*.py"))
    return [Source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def repository_files() -> list[Path]:
    """Every file that is, or would be, under version control; all files where there is no git."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split("\0")
        found = [ROOT / name for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        found = [path for path in ROOT.rglob("*") if not SKIPPED & set(path.relative_to(ROOT).parts)]
    return sorted(path for path in found if path.is_file())
