"""The command line: `python -m specdec generate | serve | models | fetch`.

Read in this order: `options.py` (what can be asked), `entry.py` (from arguments to an exit status), `generate.py`,
`serve.py`, `models.py` (the commands), `terminal.py` (what a terminal is given). Nothing here imports NumPy before the
number of threads is set: BLAS reads it only then.
"""

from specdec.cli.entry import main

__all__ = ["main"]
