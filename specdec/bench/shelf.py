"""Models by name, each loaded once: facts for the plan, prompts as ids, and players for the ways of decoding.

A player is a function from prompt ids and settings to the rounds of one continuation. Other engines' players answer
with the same records, so that every figure comes out of one fold.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from specdec.bench.plan import EngineName, Way, Work
from specdec.bench.prompts import PROMPTS, endless
from specdec.config import SamplingParams, SpeculativeConfig
from specdec.decoding import Engine, ModelDrafter, NgramDrafter
from specdec.decoding.drafters.vocabulary import require_shared
from specdec.decoding.protocols import Drafter, Model
from specdec.errors import ContextError, UnsupportedError
from specdec.records import Round

Ids = Sequence[int]
Player = Callable[[Ids, SamplingParams], tuple[Round, ...]]
Loader = Callable[[str], Model]


class Peer(Protocol):
    """Another engine."""

    def player(self, target: str, way: Way) -> Player:
        """How it is run; MissingExtraError or UnsupportedError where it cannot be."""
        ...


class Shelf:
    """Models that are kept once loaded. `loader` turns a name into a model (default: `load_model`)."""

    def __init__(self, threads: int | None = None, loader: Loader | None = None) -> None:
        self.threads = threads
        self._loader = loader or self._load
        self._models: dict[str, Model] = {}
        self._peers: dict[EngineName, Peer] = {}

    def here(self, name: str) -> bool:
        """Whether a model the project knows by name is on this machine."""
        from specdec.checkpoints.locate import find

        return name in self._models or find(name) is not None

    def context_length(self, name: str) -> int:
        """Most tokens a model can hold."""
        return self.model(name).network.context_length

    def parameters(self, name: str) -> int:
        """Weights of a model, tied output counted once; 0 where it cannot tell."""
        config: Any = getattr(self.model(name).network, "config", None)
        return int(getattr(config, "parameters", 0))

    def model(self, name: str) -> Model:
        """The model of that name; LoadError where it cannot be had."""
        if name not in self._models:
            self._models[name] = self._loader(name)
        return self._models[name]

    def prompts(self, work: Work) -> list[list[int]]:
        """The ids to continue; in the target's chat template where it has one."""
        codec: Any = self.model(work.target).tokenizer
        if codec is None:
            raise UnsupportedError(f"{work.target} has no tokenizer: there is no text for it to continue")
        texts = PROMPTS[work.kind][: work.prompts]
        if work.prompt_tokens is not None:
            return [_cut(codec.encode(endless(seed)), work.prompt_tokens) for seed in range(work.prompts)]
        if getattr(codec, "has_chat_template", False):
            return [codec.apply_chat_template([{"role": "user", "content": text}]) for text in texts]
        return [codec.encode(text) for text in texts]

    def player(self, target: str, way: Way) -> Player:
        """How a way of decoding is run; MissingExtraError or UnsupportedError where another engine cannot."""
        if way.engine != "specdec":
            return self._peer(way.engine).player(target, way)
        model = self.model(target)
        drafter = self._drafter(way.draft)
        if isinstance(drafter, ModelDrafter):
            require_shared(model, drafter.model)
        return _own(Engine(model, drafter), SpeculativeConfig(way.k, exact=way.exact))

    def _drafter(self, name: str) -> Drafter | None:
        if name == "none":
            return None
        return NgramDrafter() if name == "ngram" else ModelDrafter(self.model(name))

    def _peer(self, engine: EngineName) -> Peer:
        from specdec.bench.peers import PEERS

        if engine not in self._peers:
            self._peers[engine] = PEERS[engine](self.threads)
        return self._peers[engine]

    def _load(self, name: str) -> Model:
        from specdec.checkpoints import load_model

        return load_model(name, threads=self.threads)


def _own(engine: Engine, speculation: SpeculativeConfig) -> Player:
    return lambda prompt, params: engine.generate(prompt, params, speculation).rounds


def _cut(ids: list[int], length: int) -> list[int]:
    if len(ids) < length:
        raise ContextError(f"a prompt of {length} tokens is wanted, the longest here has {len(ids)}")
    return ids[:length]
