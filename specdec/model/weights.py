"""Reading a checkpoint's tensors by name: checked for presence, shape and sanity before they reach the model."""

from typing import Protocol

import numpy as np

from specdec.errors import LoadError
from specdec.model.operations import F32


class Weights(Protocol):
    """Tensors by their Hugging Face names; may read lazily, and is asked for each tensor once."""

    def __getitem__(self, name: str) -> F32:
        """The tensor as float32."""
        ...

    def __contains__(self, name: str) -> bool:
        """Whether the checkpoint has it."""
        ...


def take(weights: Weights, name: str, *shape: int) -> F32:
    """The tensor `name`; LoadError where it is missing, of another shape, or not finite."""
    if name not in weights:
        raise LoadError(f"the checkpoint has no tensor {name}")
    tensor = weights[name]
    if tensor.shape != shape:
        raise LoadError(f"tensor {name} has shape {list(tensor.shape)}, the configuration asks for {list(shape)}")
    if not np.isfinite(tensor).all():
        raise LoadError(f"tensor {name} holds values that are not finite")
    return tensor.astype(np.float32, copy=False)
