"""What settings must refuse, whatever they are called."""

import math
from typing import Any

import pytest

from specdec.errors import ConfigError

NOT_NUMBERS = [None, "1", True, math.nan, math.inf, -math.inf, [1], 1j]
NOT_INTEGERS = [*NOT_NUMBERS, 1.0, 2.5]


def cases(bounds: dict[str, Any], wrong: list[Any]) -> list[Any]:
    return [pytest.param(name, value, id=f"{name}={value!r}") for name in bounds for value in wrong]


def refused(kind: type, name: str, **values: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        kind(**values)
    assert name in str(caught.value)
