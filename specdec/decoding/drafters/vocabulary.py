"""Whether two models speak the same tokens, and how rows of one vocabulary become rows of the other.

n rows, V target's vocabulary. Models that share a tokenizer may still pad their tables to different sizes.
"""

import numpy as np

from specdec.decoding.protocols import Floats, Model
from specdec.errors import VocabularyError


def require_shared(target: Model, draft: Model) -> None:
    """Raise VocabularyError unless the same ids mean the same to both.

    Tokenizers are compared where both have one. Where one has none, the vocabularies must be of one size; where both
    have none, the caller vouches for them.
    """
    ours, theirs = target.tokenizer, draft.tokenizer
    if ours is not None and theirs is not None:
        if ours.fingerprint != theirs.fingerprint:
            raise VocabularyError(
                f"{draft.name} cannot draft for {target.name}: their tokenizers give the same ids different meanings"
            )
    elif ours is not theirs and target.network.vocab_size != draft.network.vocab_size:
        raise VocabularyError(
            f"{draft.name} cannot draft for {target.name}: one has no tokenizer, and their vocabularies differ "
            f"({draft.network.vocab_size} and {target.network.vocab_size} tokens)"
        )


def fit(logits: Floats, size: int) -> Floats:
    """Logits (n, V) for the target's V = `size`: ids it lacks are cut off, ids the draft lacks get −∞."""
    missing = size - logits.shape[1]
    if missing <= 0:
        return logits[:, :size]
    nothing = np.full((len(logits), missing), -np.inf, logits.dtype)
    return np.concatenate([logits, nothing], axis=1)
