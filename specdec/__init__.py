"""specdec: speculative decoding from scratch in NumPy.

    from specdec import Engine, ModelDrafter, SamplingParams, load_model

    target, draft = load_model("specdec-target-8x384"), load_model("specdec-draft-2x128")
    engine = Engine(target, ModelDrafter(draft, num_speculative_tokens=4))
    trace = engine.generate("Once upon a time", SamplingParams(temperature=0.8, seed=0))
    print(trace.text, trace.stats.acceptance_rate)

Importing this package needs NumPy alone; what reads checkpoints and text is imported when first used. NumPy itself is
imported with the first name that needs it, so that a program can choose BLAS's number of threads before.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from specdec.config import ModelConfig, SamplingParams, SpeculativeConfig
from specdec.errors import SpecdecError
from specdec.records import Finished, Round, Started
from specdec.stats import Stats
from specdec.trace import Trace

if TYPE_CHECKING:
    from specdec.checkpoints import LanguageModel, load_model
    from specdec.decoding import Engine, ModelDrafter, NgramDrafter

__all__ = [
    "Engine",
    "Finished",
    "LanguageModel",
    "ModelConfig",
    "ModelDrafter",
    "NgramDrafter",
    "Round",
    "SamplingParams",
    "SpecdecError",
    "SpeculativeConfig",
    "Started",
    "Stats",
    "Trace",
    "load_model",
]

_WHERE = {
    "Engine": "specdec.decoding",
    "LanguageModel": "specdec.checkpoints",
    "ModelDrafter": "specdec.decoding",
    "NgramDrafter": "specdec.decoding",
    "load_model": "specdec.checkpoints",
}


def __getattr__(name: str) -> Any:
    """A public name that needs NumPy, imported when it is first asked for."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
