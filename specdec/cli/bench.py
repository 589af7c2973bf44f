"""`bench`: the suite of `specdec.bench`, whose packages are an extra."""

import argparse
import shlex

from specdec.errors import MissingExtraError


def bench(options: argparse.Namespace, arguments: list[str]) -> None:
    """Measure, and write and print what was found; MissingExtraError where rich, plotly or jinja2 is missing."""
    try:
        from specdec.bench.suite import run_suite
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("rich", "plotly", "jinja2"):
            raise
        raise MissingExtraError(package, "bench") from error
    command = f"python -m specdec {shlex.join(arguments)}"
    run_suite(options.scope, options.out, command, options.compare)
