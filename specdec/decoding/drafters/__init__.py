"""Whatever proposes tokens: a smaller model, or the text's own repetitions."""

from specdec.decoding.drafters.draft import Drafted
from specdec.decoding.drafters.model import ModelDrafter
from specdec.decoding.drafters.ngram import NgramDrafter

__all__ = ["Drafted", "ModelDrafter", "NgramDrafter"]
