"""From arguments to an exit status.

0 done · 1 it failed, after one sentence on standard error · 2 the arguments cannot be meant · 130 Ctrl-C ·
141 nobody reads the output any more.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from specdec.cli.options import parse
from specdec.cli.terminal import printable
from specdec.errors import SpecdecError

THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
FAILED, INTERRUPTED, UNREAD = 1, 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit status. SystemExit where arguments are wrong or help was asked for."""
    options = parse(arguments)
    _calm_blas()
    try:
        _run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            print(file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _close_output()
        return UNREAD
    except (SpecdecError, OSError, MemoryError) as error:
        print(f"specdec: {_sentence(error)}", file=sys.stderr)
        return FAILED
    return 0


def _calm_blas() -> None:
    """Keep BLAS to one thread, which it reads when NumPy is imported, unless the user's environment says otherwise.

    The engine splits big products over its own threads. Those of OpenBLAS wait for each other by spinning: on a machine
    that is busy with something else too, prefill then takes many times as long.
    """
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, "1")


def _run(options: argparse.Namespace) -> None:
    if options.command == "generate":
        from specdec.cli.generate import generate

        generate(options)
    elif options.command == "models":
        from specdec.cli.models import list_models

        list_models(as_json=options.json)
    else:
        from specdec.cli.models import fetch_model

        fetch_model(options.name)


def _close_output() -> None:
    """Send what is left to nowhere, so that the interpreter does not complain about it when it leaves."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _sentence(error: BaseException) -> str:
    text = str(error) or ("out of memory" if isinstance(error, MemoryError) else type(error).__name__)
    return printable(" ".join(text.split()))
