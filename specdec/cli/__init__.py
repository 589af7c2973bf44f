"""The command line: `python -m specdec generate | serve | models | fetch | bench`.

Read in this order: `options.py`, `bench_options.py`, `setting_options.py` (what can be asked), `values.py`, `entry.py`
(from arguments to an exit status), `interrupts.py` (Ctrl-C), `generate.py`, `serve.py`, `models.py`, `bench.py` (the
commands), `terminal.py` (what a terminal is given). Nothing here imports NumPy before the number of threads is set:
BLAS reads it only then.
"""

from specdec.cli.entry import main

__all__ = ["main"]
