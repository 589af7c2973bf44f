"""Which models are kept in memory: the most recently used ones, as far as their weights fit the budget."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from specdec.decoding.protocols import Model
from specdec.errors import MemoryLimitError

Loader = Callable[[str], Model]


def weight_bytes(model: Model) -> int:
    """Bytes of a model's weights as float32; 0 where its network has no configuration to tell."""
    config: Any = getattr(model.network, "config", None)
    return int(getattr(config, "float32_bytes", 0))


class ModelStore:
    """Models by name, loaded once and dropped when others need the room. Loading is one at a time."""

    def __init__(self, loader: Loader, budget: int, size_of: Callable[[Model], int] = weight_bytes) -> None:
        self._loader = loader
        self._budget = budget
        self._size_of = size_of
        self._lock = threading.RLock()
        self._kept: OrderedDict[str, Model] = OrderedDict()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models in memory, the least recently used first."""
        with self._lock:
            return tuple(self._kept)

    def get(self, name: str) -> Model:
        """The model of that name, loaded where it is not in memory; the loader's LoadError where that fails."""
        with self._lock:
            if name not in self._kept:
                self._kept[name] = self._load(name)
            self._kept.move_to_end(name)
            self._shrink()
            return self._kept[name]

    def _load(self, name: str) -> Model:
        try:
            return self._loader(name)
        except MemoryLimitError:
            if not self._kept:
                raise
            self._kept.clear()
            return self._loader(name)

    def _shrink(self) -> None:
        """Drop the least recently used models until the rest fits; the last one asked for always stays."""
        while len(self._kept) > 1 and sum(map(self._size_of, self._kept.values())) > self._budget:
            self._kept.popitem(last=False)
