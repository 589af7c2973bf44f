"""Who computes on how many threads. Must be settled before NumPy is imported, so that this module does without it.

The engine splits big products over its own threads. Those of a BLAS wait for each other by spinning: on a machine that
is busy with something else too, prefill then takes many times as long. So BLAS keeps to one.
"""

import os
from collections.abc import MutableMapping

VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def calm_blas(environment: MutableMapping[str, str] = os.environ) -> None:
    """Keep BLAS to one thread, which it reads when NumPy is imported, unless the environment says otherwise."""
    for name in VARIABLES:
        environment.setdefault(name, "1")
