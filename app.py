"""The demo: `python app.py`, then open the address it prints.

Options come from the command line, then from the environment (GRADIO_SERVER_NAME, GRADIO_SERVER_PORT, CPU_CORES, and
SPECDEC_… for limits). Thread counts are set before NumPy is imported, because it reads them only then; Gradio's
switches are set by `specdec.ui`, before it imports Gradio.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from specdec.cli.setting_options import add_settings, chosen_settings
from specdec.threads import calm_blas


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line, its defaults taken from the environment."""
    parser = argparse.ArgumentParser(description="Speculative decoding in NumPy, to be watched in a browser.")
    parser.add_argument("--host", default=os.environ.get("GRADIO_SERVER_NAME") or _host(), help="address to listen on")
    parser.add_argument(
        "--port", type=int, default=os.environ.get("GRADIO_SERVER_PORT") or "7860", help="port to listen on"
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=os.environ.get("SPECDEC_THREADS") or os.environ.get("CPU_CORES") or None,
        help="threads for the arithmetic",
    )
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="NAME",
        help="offer this model too: a name, folder or .gguf file",
    )
    add_settings(parser, but=("threads",))
    return parser.parse_args(arguments)


def _host() -> str:
    """This machine alone; on a Hugging Face Space, whose door is another machine, anybody."""
    return "0.0.0.0" if os.environ.get("SPACE_ID") else "127.0.0.1"


def limit_threads(threads: int | None) -> None:
    """Settle who computes on how many threads, before NumPy is imported."""
    calm_blas()
    if threads:
        os.environ["SPECDEC_THREADS"] = str(threads)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; the exit status."""
    chosen = options(arguments)
    limit_threads(chosen.threads)
    from specdec.errors import SpecdecError
    from specdec.serving import Service, Settings, catalogue
    from specdec.ui.launch import launch

    try:
        settings = Settings.from_environment(host=chosen.host, options=chosen_settings(chosen))
        launch(Service(settings, offers=catalogue(chosen.model)), chosen.host, chosen.port)
    except SpecdecError as error:
        print(f"specdec: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
