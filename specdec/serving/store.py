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
    """Models by name, loaded once and dropped when others need the room. Loading is one at a time.

    `on_evict` is called with a model before it is dropped: whoever holds on to it must let go.
    """

    def __init__(
        self,
        loader: Loader,
        budget: int,
        size_of: Callable[[Model], int] = weight_bytes,
        on_evict: Callable[[Model], None] = lambda model: None,
    ) -> None:
        self._loader = loader
        self._budget = budget
        self._size_of = size_of
        self._on_evict = on_evict
        self._lock = threading.RLock()
        self._kept: OrderedDict[str, Model] = OrderedDict()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models in memory, the least recently used first."""
        with self._lock:
            return tuple(self._kept)

    @property
    def held_bytes(self) -> int:
        """Bytes of all weights in memory."""
        with self._lock:
            return sum(map(self._size_of, self._kept.values()))

    def get(self, name: str) -> Model:
        """One model, as `get_all` finds it."""
        return self.get_all(name)[0]

    def get_all(self, *names: str) -> tuple[Model, ...]:
        """The models of these names, loaded where they are not in memory; the loader's LoadError where that fails.

        Models asked for together stay together, even where they alone exceed the budget.
        """
        with self._lock:
            models = tuple(self._get(name, names) for name in names)
            self._shrink(keep=names)
            return models

    def _get(self, name: str, keep: tuple[str, ...]) -> Model:
        if name not in self._kept:
            self._kept[name] = self._load(name, keep)
        self._kept.move_to_end(name)
        return self._kept[name]

    def _load(self, name: str, keep: tuple[str, ...]) -> Model:
        """Load a model; where memory is short, once more without those that nobody asks for now."""
        self._shrink(keep)
        try:
            return self._loader(name)
        except MemoryLimitError:
            if not self._evict(keep, lambda: True):
                raise
        return self._loader(name)

    def _shrink(self, keep: tuple[str, ...]) -> None:
        """Drop the least recently used models until the rest fits the budget."""
        self._evict(keep, lambda: self.held_bytes > self._budget)

    def _evict(self, keep: tuple[str, ...], needed: Callable[[], bool]) -> bool:
        """Drop models, the least recently used first, but none of `keep`, while `needed`; whether any went."""
        idle = [name for name in self._kept if name not in keep]
        gone = 0
        while gone < len(idle) and needed():
            self._on_evict(self._kept[idle[gone]])
            del self._kept[idle[gone]]
            gone += 1
        return gone > 0
