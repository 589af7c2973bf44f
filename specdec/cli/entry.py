"""From arguments to an exit status.

0 done · 1 it failed, after one sentence on standard error · 2 the arguments cannot be meant · 130 Ctrl-C ·
141 nobody reads the output any more.
"""

import argparse
import io
import os
import sys
from collections.abc import Sequence

from specdec.cli.interrupts import Interrupts, remembered
from specdec.cli.options import parse
from specdec.cli.terminal import printable
from specdec.errors import MissingExtraError, SpecdecError
from specdec.threads import calm_blas

FAILED, INTERRUPTED, UNREAD = 1, 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit status. SystemExit where arguments are wrong or help was asked for."""
    _prepare_streams()
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if arguments[:1] == ["train"]:
            return _train(arguments[1:])
        options = parse(arguments)
        calm_blas()
        with remembered() as interrupts:
            _run(options, arguments, interrupts)
        sys.stdout.flush()
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            print(file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _close_output()
        return UNREAD
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        print(f"specdec: {MissingExtraError('numpy', 'models')}", file=sys.stderr)
        return FAILED
    except (SpecdecError, OSError, MemoryError) as error:
        print(f"specdec: {_sentence(error)}", file=sys.stderr)
        return FAILED
    return 0


def _run(options: argparse.Namespace, arguments: list[str], interrupts: Interrupts) -> None:
    if options.command == "generate":
        from specdec.cli.generate import generate

        generate(options, interrupts)
    elif options.command == "bench":
        from specdec.cli.bench import bench

        bench(options, arguments)
    elif options.command == "serve":
        from specdec.cli.serve import serve_api

        serve_api(options)
    elif options.command == "models":
        from specdec.cli.models import list_models

        list_models(as_json=options.json)
    else:
        from specdec.cli.models import fetch_model

        fetch_model(options.name)


def _train(arguments: Sequence[str]) -> int:
    """Training has a command line of its own, and PyTorch threads of its own."""
    from specdec.training import main as train

    return train(arguments)


def _prepare_streams() -> None:
    """Output that a shell closed (`>&-`) goes to nowhere; characters that an encoding lacks become question marks."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _close_output() -> None:
    """Send what is left to nowhere, so that the interpreter does not complain about it when it leaves."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _sentence(error: BaseException) -> str:
    text = str(error) or ("out of memory" if isinstance(error, MemoryError) else type(error).__name__)
    return printable(" ".join(text.split()))
