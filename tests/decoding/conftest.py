"""Every test here runs with NumPy's warnings as errors: no division by zero, overflow or NaN passes unnoticed."""

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def strict_numbers() -> Iterator[None]:
    """np.errstate(divide, over, invalid = raise) around each test; Python's warnings are errors by configuration."""
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        yield
