"""The rules of how the project is written, each a function from a file to what is wrong with it."""

import ast
import sys

from tests.source_tree import Source

LAYERS = (
    {"errors", "config", "machine", "records", "settings", "stats", "threads", "trace"},
    {"model"},
    {"checkpoints", "tokenizer"},
    {"decoding"},
    {"serving", "telemetry"},
    {"ui", "bench", "cluster", "onnx", "cli", "training"},
)
RANKS = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}
SIDEWAYS = {  # within a layer
    ("config", "errors"),
    ("settings", "config"),
    ("settings", "errors"),
    ("trace", "errors"),
    ("stats", "records"),
    ("trace", "records"),
    ("trace", "stats"),
    ("checkpoints", "tokenizer"),
    ("tokenizer", "checkpoints"),
    ("serving", "telemetry"),
    ("cli", "bench"),
    ("cli", "training"),
}
THIRD_PARTY = {  # beside NumPy; whoever is not named here has nothing but NumPy
    "checkpoints": {"gguf", "huggingface_hub", "jinja2", "safetensors", "tenacity", "tokenizers", "tqdm"},
    "tokenizer": {"jinja2", "tokenizers"},
    "serving": {"anyio", "fastapi", "pydantic", "starlette", "uvicorn"},
    "telemetry": {"opentelemetry", "prometheus_client"},
    "ui": {"fastapi", "gradio", "plotly", "starlette", "uvicorn"},
    "bench": {"jinja2", "llama_cpp", "plotly", "rich", "torch", "transformers"},
    "training": {"matplotlib", "rich", "safetensors", "tokenizers", "torch"},
    "onnx": {"onnx", "onnx_ir", "onnxruntime"},
    "cluster": {"fastapi", "ray"},
}
LAZILY_REACHED = (  # imported inside functions only: these may import packages at their head
    "specdec/ui/",
    "specdec/serving/http/",
    "specdec/telemetry/",
    "specdec/training/",
    "specdec/bench/charts.py",
    "specdec/bench/report.py",
    "specdec/bench/screen.py",
    "specdec/bench/suite.py",
    "specdec/cluster/",
    "specdec/onnx/",
    "specdec/checkpoints/template_sandbox.py",
)
MAX_FILE, MAX_FUNCTION, P90_FUNCTION, MEDIAN_FUNCTION = 250, 60, 30, 10
FORBIDDEN_MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "yaml.load", "os.system", "os.popen", "pickle.load"}
UNSAFE_ARGUMENTS = {("allow_pickle", True), ("shell", True), ("weights_only", False), ("trust_remote_code", True)}


def wrong_imports(source: Source) -> list[str]:
    """Imports of a file that do not point downwards."""
    rank = RANKS.get(source.part)
    if rank is None:
        return [] if source.part == "" else [f"{source.part} has no layer"]
    wrong = []
    for module, _ in source.imports():
        top, _, rest = module.partition(".")
        part = rest.partition(".")[0]
        if top != "specdec" or part == source.part:
            continue
        below = part in RANKS and RANKS[part] < rank
        if not below and (source.part, part) not in SIDEWAYS and rest:
            wrong.append(module)
    return wrong


def wrong_packages(source: Source) -> list[str]:
    """Third-party packages that a file may not import, or not there."""
    allowed = THIRD_PARTY.get(source.part, set())
    wrong = []
    for module, at_once in source.imports():
        top = module.partition(".")[0]
        if top in sys.stdlib_module_names or top in ("specdec", "numpy"):
            continue
        if top not in allowed or (at_once and not source.name.startswith(LAZILY_REACHED)):
            wrong.append(module)
    return wrong


def called_name(call: ast.Call) -> str:
    """`f` or `module.f`, as it was written; empty for anything else."""
    return ast.unparse(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else ""


def unsafe(source: Source) -> list[str]:
    """Ways to run what a file or a user says, and checks that `python -O` would drop."""
    found = [module for module, _ in source.imports() if module.partition(".")[0] in FORBIDDEN_MODULES]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assert):
            found.append(f"assert in line {node.lineno}")
        if isinstance(node, ast.Call):
            arguments = {(k.arg, k.value.value) for k in node.keywords if isinstance(k.value, ast.Constant)}
            loose = called_name(node) == "torch.load" and ("weights_only", True) not in arguments
            if called_name(node) in FORBIDDEN_CALLS or arguments & UNSAFE_ARGUMENTS or loose:
                found.append(f"{called_name(node)} in line {node.lineno}")
    return found


def lengths(files: list[Source]) -> list[tuple[int, str]]:
    """Lines of every function, its decorators left out."""
    return sorted(
        ((node.end_lineno or 0) - node.lineno + 1, f"{source.name}: {node.name}")
        for source in files
        for node in source.functions
    )


def overlong(source: Source) -> list[str]:
    """A file that cannot be read in one sitting."""
    count = len(source.text.splitlines())
    return [f"{count} lines"] if count > MAX_FILE else []


def undocumented(source: Source) -> list[str]:
    """A module without a docstring, and functions without a return type."""
    untyped = [node.name for node in source.functions if node.returns is None]
    return untyped if ast.get_docstring(source.tree) else ["no docstring", *untyped]


def reexports(source: Source) -> set[str]:
    """Public names that a package's `__init__` imports at its head."""
    imported = [node for node in source.tree.body if isinstance(node, ast.ImportFrom)]
    names = {alias.asname or alias.name for node in imported for alias in node.names}
    return {name for name in names if not name.startswith("_")}


def sort_key(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def wrong_list(source: Source) -> list[str]:
    """What is wrong with a package's `__all__`."""
    listed: list[str] = []
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            listed = list(ast.literal_eval(node.value))
    wrong = [] if listed == sorted(set(listed), key=sort_key) else ["not sorted, or with repetitions"]
    return wrong + sorted(reexports(source) - set(listed))
