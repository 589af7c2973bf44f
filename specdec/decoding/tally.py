"""How often each id occurs in a text that grows: what penalties need, without reading the text again each round."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class Tally:
    """Each id that occurs, once, in order of first occurrence, with how often it does; grown in place."""

    def __init__(self) -> None:
        self._slots: dict[int, int] = {}
        self._rows: NDArray[np.intp] = np.zeros((2, 64), np.intp)  # ids, counts

    def add(self, tokens: Iterable[int]) -> None:
        """Count these too."""
        for token in tokens:
            slot = self._slots.setdefault(token, len(self._slots))
            if slot == self._rows.shape[1]:
                self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)], axis=1)
            self._rows[0, slot] = token
            self._rows[1, slot] += 1

    def __contains__(self, token: int) -> bool:
        return token in self._slots

    def count(self, token: int) -> int:
        """How often this id occurs."""
        slot = self._slots.get(token)
        return 0 if slot is None else self._rows.item(1, slot)

    @property
    def ids(self) -> NDArray[np.intp]:
        """Ids that occur, (n,)."""
        return self._rows[0, : len(self._slots)]

    @property
    def counts(self) -> NDArray[np.intp]:
        """How often each does, (n,)."""
        return self._rows[1, : len(self._slots)]
