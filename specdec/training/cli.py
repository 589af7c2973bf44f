"""The command line of `specdec.training`: from a text file to a bundled model.

    python -m specdec train tokenizer
    python -m specdec train model specdec-target-4x256 --epochs 6
    python -m specdec train export specdec-target-4x256 --out assets/models/specdec-target-4x256
    python -m specdec train teach assets/models/specdec-target-4x256
    python -m specdec train model specdec-draft-2x64 --lessons specdec-target-4x256 …
    python -m specdec train evaluate assets/models/specdec-draft-2x64

Text comes from `--corpus` (default `$SPECDEC_CORPUS`, else `stories.txt`), runs live in `--runs` (default
`$SPECDEC_RUNS`, else `../runs`), outside the repository. An interrupted `model` is resumed by the same command.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import MISSING, fields
from pathlib import Path

from specdec.errors import MissingExtraError, SpecdecError
from specdec.training.settings import ModelShape, Recipe

SHAPE_OPTIONS = {
    "--layers": "num_hidden_layers",
    "--hidden": "hidden_size",
    "--intermediate": "intermediate_size",
    "--heads": "num_attention_heads",
    "--kv-heads": "num_key_value_heads",
    "--context": "context",
}
DEFAULT = "default: %(default)s"
PACKAGES = ("torch", "tokenizers", "safetensors", "rich", "matplotlib")


def build_parser() -> argparse.ArgumentParser:
    """The command line; defaults of shape and recipe are those of `settings`."""
    parser = argparse.ArgumentParser(
        prog="python -m specdec train", description="Train small Llama models and export them for specdec."
    )
    common, corpus = _common_options(), _corpus_options()
    commands = parser.add_subparsers(dest="command", required=True)
    tokenizer = commands.add_parser("tokenizer", parents=[common, corpus], help="train a byte-level BPE")
    tokenizer.add_argument("--vocab-size", type=int, default=4096, metavar="N")
    _add_train_options(commands.add_parser("model", parents=[common, corpus], help="train a model, or go on"))
    export = commands.add_parser("export", parents=[common], help="write a run's best weights as a model folder")
    export.add_argument("name", help="the run's name")
    export.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    _add_teach_options(commands.add_parser("teach", parents=[common, corpus], help="let a target write lessons"))
    evaluate = commands.add_parser("evaluate", parents=[corpus], help="held-out loss of an exported model")
    evaluate.add_argument("model", type=Path, metavar="FOLDER")
    evaluate.add_argument("--target", type=Path, metavar="FOLDER", help="how often this one would accept the model")
    return parser


def _common_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    runs = Path(os.environ.get("SPECDEC_RUNS", "../runs"))
    options.add_argument("--runs", type=Path, default=runs, metavar="FOLDER", help="of all runs (default: %(default)s)")
    options.add_argument("--tokenizer", type=Path, metavar="FOLDER", help="default: RUNS/tokenizer")
    return options


def _corpus_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    corpus = Path(os.environ.get("SPECDEC_CORPUS", "stories.txt"))
    options.add_argument(
        "--corpus", type=Path, nargs="+", default=[corpus], metavar="FILE", help=f"UTF-8 text (default: {corpus})"
    )
    options.add_argument("--held-out-every", type=int, default=100, metavar="N", help="documents (default: 100)")
    return options


def _add_train_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="the run's name, and later the model's")
    for option, name in SHAPE_OPTIONS.items():
        parser.add_argument(option, dest=name, type=int, default=getattr(ModelShape(), name), metavar="N", help=DEFAULT)
    parser.add_argument("--head-dim", type=int, metavar="N", help="default: hidden / heads")
    for field in fields(Recipe):
        if field.name != "held_out_every":
            _add_recipe_option(parser, field.name, field.default)
    parser.add_argument("--initial", type=Path, metavar="FOLDER", help="exported model to begin from")
    parser.add_argument("--lessons", type=Path, metavar="FOLDER", help="exported target whose lessons to learn from")
    parser.add_argument("--threads", type=int, metavar="N", help="default: PyTorch's")
    parser.add_argument(
        "--compile", action="store_true", help="fuse operations with torch.compile (needs a C++ compiler)"
    )
    parser.add_argument("--device", default="cpu", help="PyTorch's name of it (default: cpu)")


def _add_teach_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", type=Path, metavar="FOLDER", help="an exported model")
    parser.add_argument(
        "--own-windows", type=int, default=2048, metavar="N", help=f"of the target's own text ({DEFAULT})"
    )
    parser.add_argument("--text-windows", type=int, metavar="N", help="of the corpus, at most (default: all)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help=DEFAULT)


def _add_recipe_option(parser: argparse.ArgumentParser, name: str, default: object) -> None:
    unset = default is None or default is MISSING
    kind = (int if name == "steps" else float) if unset else type(default)
    text = "one of steps, epochs, minutes is needed" if unset else DEFAULT
    parser.add_argument("--" + name.replace("_", "-"), type=kind, default=default, metavar="X", help=text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0, or 1 after a sentence on standard error."""
    argv = list(sys.argv[1:] if argv is None else argv)
    options = build_parser().parse_args(argv)
    try:
        _run(options, argv)
    except (SpecdecError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _run(options: argparse.Namespace, argv: list[str]) -> None:
    """Hand over to `commands`. Raises MissingExtraError where PyTorch or another package of the extra is missing."""
    try:
        from specdec.training import commands
    except ModuleNotFoundError as error:
        if error.name not in PACKAGES:
            raise
        raise MissingExtraError(error.name, "training") from error
    if "runs" in options and options.tokenizer is None:
        options.tokenizer = options.runs / "tokenizer"
    commands.COMMANDS[options.command](options, argv)
