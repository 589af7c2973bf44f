"""What one rendering of a chat template may cost: loop turns, characters, and sizes of the values it makes.

Every value a template can print, compare or take apart has been weighed when it was made: a list that holds another
one twice counts it twice, so that sixty doublings of a list are refused at the nineteenth.
"""

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

BUDGET = 5_000_000  # characters and items put together
MAX_SIZE = 1_000_000  # of one text or value
TURN = 200  # what a loop turn or a macro call costs
ITEM = 16  # what a value costs, whatever it is, when it or what holds it is made
DEADLINE_S = 5.0
MAX_INT_BITS = 4_096


class BudgetError(Exception):
    """The template would run away."""


class Budget:
    """Charged for everything that can grow."""

    def __init__(self) -> None:
        self._left = BUDGET
        self._deadline = time.monotonic() + DEADLINE_S

    def spend(self, amount: int) -> None:
        """BudgetError where the amount, the sum of all amounts, or the time is too much."""
        self._left -= amount
        if amount > MAX_SIZE or self._left < 0 or time.monotonic() > self._deadline:
            raise BudgetError("it does not come to an end, or puts together more than any prompt holds")

    def turn(self) -> str:
        """One turn of a loop, or one call of a macro."""
        self.spend(TURN)
        return ""

    def weigh(self, value: Any) -> Any:
        """The value itself, paid for with all that it contains."""
        self._weigh(value)
        return value

    def _weigh(self, value: Any) -> None:
        self.spend(ITEM + (len(value) if isinstance(value, str) else 0))
        if isinstance(value, dict):
            for key, item in value.items():
                self._weigh(key)
                self._weigh(item)
        elif isinstance(value, list | tuple):
            for item in value:
                self._weigh(item)

    def text(self, value: Any) -> str:
        """What `str` makes of it; only of values whose text cannot surprise."""
        if isinstance(value, str):
            return value
        if value is None or isinstance(value, bool | int | float | list | tuple | dict):
            return str(self.weigh(value))
        raise BudgetError(f"a {type(value).__name__} has no text")

    def concat(self, parts: Iterable[str]) -> str:
        """Texts joined."""
        pieces = list(parts)
        self.spend(sum(map(len, pieces)))
        return "".join(pieces)

    def replace(self, text: str, old: str, new: str, count: int = -1) -> str:
        """`str.replace`."""
        found = text.count(old)
        self.spend(len(text) + len(new) * (found if count < 0 else min(found, count)))
        return text.replace(old, new, count)

    def indent(self, text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
        """Jinja's filter `indent`."""
        margin = width if isinstance(width, str) else " " * min(width, 80)
        lines = text.splitlines()
        self.spend(len(text) + len(margin) * len(lines))
        return "\n".join(
            margin + line if (first or index) and (blank or line) else line for index, line in enumerate(lines)
        )

    def to_json(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: Sequence[str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """transformers' filter `tojson`: nothing escaped for HTML."""
        indent = None if indent is None else min(indent, 16)
        marks = None if separators is None else (separators[0], separators[1])
        self.weigh(value)
        return self.concat(
            [json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=marks, sort_keys=sort_keys)]
        )

    def arithmetic(self, operator: str, left: Any, right: Any) -> None:
        """Pay for what +, *, ** or % would make."""
        if isinstance(left, int | float) and isinstance(right, int | float):
            self._check_numbers(operator, left, right)
        elif operator == "%":
            raise BudgetError("formatting with % is not supported")
        else:
            times = max((value for value in (left, right) if isinstance(value, int)), default=1)
            for value in (left, right):
                if not isinstance(value, int):
                    self._pay_for_copies(value, times if operator == "*" else 1)

    def _pay_for_copies(self, value: Any, times: int) -> None:
        size = 1 + len(value) if isinstance(value, str | list | tuple) else 1
        self.spend(size * max(0, times))  # before anything that takes as long as the value is deep
        if isinstance(value, list | tuple):
            before = self._left
            self._weigh(value)
            self.spend((before - self._left) * max(0, times))

    def _check_numbers(self, operator: str, left: float, right: float) -> None:
        bits = [value.bit_length() if isinstance(value, int) else 64 for value in (left, right)]
        if (bits[0] * max(1, int(abs(right))) if operator == "**" else sum(bits)) > MAX_INT_BITS:
            raise BudgetError("its numbers grow beyond any use")
