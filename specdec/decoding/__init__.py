"""Speculative decoding: draft, verify, commit. NumPy and the standard library only; no thread, lock, queue or async.

Reading order: protocols (what the parts must be), verification (the two acceptance rules), sampling, randomness,
processors and tally (logits to probabilities), drafters, stopping, lookahead, drafting (a drafter at arm's length),
request (what is checked first), engine (the round), rounds (writing it down), theory.
"""

from specdec.decoding.drafters import Drafted, ModelDrafter, NgramDrafter
from specdec.decoding.engine import Engine
from specdec.decoding.theory import expected_tokens, speed_up

__all__ = ["Drafted", "Engine", "ModelDrafter", "NgramDrafter", "expected_tokens", "speed_up"]
