"""What a drafter hands over."""

from dataclasses import dataclass

from specdec.decoding.protocols import Floats


@dataclass(frozen=True, slots=True)
class Drafted:
    """k draft tokens and the rows they were drawn from, q (k, V); q None where each was chosen without chance."""

    tokens: tuple[int, ...] = ()
    q: Floats | None = None
