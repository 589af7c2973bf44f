"""How many tokens to draft next: a fixed number, or `auto`, the number that pays most on this machine.

k drafts cost k·d seconds to make and t(k + 1) to verify, and yield E(k) tokens. `auto` measures d and t as it goes,
keeps how often drafts are accepted at each position, and picks the k (0 included) with the largest
E(k) / (k·d + t(k + 1)). There is no clock in here: times come in with each round.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from specdec.config import LIMITS, Lookahead
from specdec.records import Round

K_MAX = LIMITS.max_speculative_tokens
_FIRST_KS = (4, 0, 2, 8)  # measured first, so that t is known where it bends
_FASTER, _SLOWER = 0.5, 0.1  # weight of a new measurement: interruptions only ever make a pass slower
_SPIKE = 4.0  # a measurement beyond this times the estimate counts as this much
_ROW_COST = 0.05  # what each further row of a pass is taken to cost until measured, in passes over one
_KS = np.arange(K_MAX + 1)
_SHAPE = 1 + _ROW_COST * _KS  # cost of a pass over k + 1 rows
_ONE = np.ones(1)
_MEMORY = 0.97  # what a judgement weighs after one more
_PRIOR, _PRIOR_WEIGHT = 0.7, 4.0  # acceptance before anything is judged
_PROBE, _PROBE_MAX = 24, 192  # rounds between looks at another k


class Policy(Protocol):
    """Chooses k before each round and learns from it after."""

    def choose(self, room: int) -> int:
        """Drafts to ask for, at most `room`."""
        ...

    def observe(self, step: Round, *, caught_up: bool) -> None:
        """Take in a round; not `caught_up`: its drafting had to read more of the text first than usual."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always k, as far as there is room."""

    k: int

    def choose(self, room: int) -> int:
        """`k`, or less where there is less room."""
        return min(self.k, room)

    def observe(self, step: Round, *, caught_up: bool) -> None:
        """Nothing to learn."""


@dataclass(slots=True)
class Timings:
    """Seconds of a draft token and of target passes by their rows; outlives requests, since it is the machine's."""

    draft: float | None = None
    passes: dict[int, float] = field(default_factory=dict)

    def observe_draft(self, seconds: float) -> None:
        """One draft token took this long."""
        self.draft = _blend(self.draft, seconds)

    def observe_pass(self, rows: int, seconds: float) -> None:
        """A pass over `rows` tokens, choosing among them included, took this long."""
        self.passes[rows] = _blend(self.passes.get(rows), seconds)

    def costs(self) -> NDArray[np.float64]:
        """Seconds of a round for k = 0 … K_MAX; between and beyond measured passes by the shape they usually have.

        A pass over fewer rows never costs more: what says so was measured at a bad moment.
        """
        known = sorted(self.passes)
        scales = [self.passes[rows] / _SHAPE[rows - 1] for rows in known]
        passes = np.interp(_KS + 1, known, scales) * _SHAPE
        costs: NDArray[np.float64] = np.minimum.accumulate(passes[::-1])[::-1] + _KS * (self.draft or 0.0)
        return costs


def _blend(old: float | None, new: float) -> float:
    if old is None:
        return new
    return old + (_FASTER if new < old else _SLOWER) * (min(new, _SPIKE * old) - old)


class Acceptance:
    """How often the draft at each position is accepted, once those before it were; old rounds count less and less."""

    def __init__(self) -> None:
        self._accepted: NDArray[np.float64] = np.zeros(K_MAX)
        self._judged: NDArray[np.float64] = np.zeros(K_MAX)

    def observe(self, accepted: int, rejected: int) -> None:
        """A round accepted so many and then refused one, or none."""
        judged = accepted + rejected
        self._accepted[:judged] *= _MEMORY
        self._judged[:judged] *= _MEMORY
        self._accepted[:accepted] += 1
        self._judged[:judged] += 1

    def expected_tokens(self) -> NDArray[np.float64]:
        """E(k) for k = 0 … K_MAX: the target's own token and the drafts that are expected to stand."""
        weight, accepted, judged = _PRIOR_WEIGHT, self._accepted, self._judged
        pooled = (accepted.sum() + weight * _PRIOR) / (judged.sum() + weight)
        stands = ((accepted + weight * pooled) / (judged + weight)).cumprod()
        return np.concatenate([_ONE, 1 + stands.cumsum()])


class Worth:
    """What drafting is worth on this machine: what rounds cost, and how many tokens they bring."""

    def __init__(self, timings: Timings) -> None:
        self._timings = timings
        self._acceptance = Acceptance()

    def observe(self, step: Round, asked: int) -> None:
        """Learn from a round that asked for so many drafts; 0 where what its drafting cost is nothing to go by."""
        self._timings.observe_pass(len(step.proposals) + 1, step.verify_s + step.sample_s)
        if asked:
            self._timings.observe_draft(step.draft_s / asked)
        self._acceptance.observe(step.accepted, step.rejected)

    def rates(self) -> NDArray[np.float64]:
        """Expected tokens per second for k = 0 … K_MAX; any number of passes must have been measured."""
        return self._acceptance.expected_tokens() / np.maximum(self._timings.costs(), 1e-9)


class Auto:
    """The k with the best expected tokens per second; now and then another one, to see whether things changed."""

    def __init__(self, timings: Timings) -> None:
        self._timings = timings
        self._worth = Worth(timings)
        self._asked = 0
        self._rounds = 0
        self._last_used = [0] * (K_MAX + 1)
        self._next_probe = self._patience = _PROBE

    def choose(self, room: int) -> int:
        """Drafts to ask for, at most `room`."""
        room = min(room, K_MAX)
        self._asked = k = self._choose(room)
        self._rounds += 1
        self._last_used[k] = self._rounds
        return k

    def observe(self, step: Round, *, caught_up: bool) -> None:
        """Learn times and acceptance from a round."""
        if not step.fault:
            self._worth.observe(step, self._asked if caught_up else 0)

    def rates(self) -> NDArray[np.float64]:
        """Expected tokens per second for k = 0 … K_MAX."""
        return self._worth.rates()

    def _choose(self, room: int) -> int:
        unmeasured = [k for k in _FIRST_KS if k <= room and k + 1 not in self._timings.passes]
        if unmeasured:
            return unmeasured[0]
        rates = self.rates()[: room + 1].tolist()
        best = _argmax(rates)
        if self._rounds < self._next_probe:
            return best
        return self._probe(best, rates)

    def _probe(self, best: int, rates: Sequence[float]) -> int:
        """Another k than the best: a neighbour long unused, or the best that drafts where drafting does not pay.

        As long as drafting goes on not to pay, such looks get rarer.
        """
        self._patience = min(2 * self._patience, _PROBE_MAX) if best == 0 else _PROBE
        self._next_probe = self._rounds + self._patience
        if len(rates) == 1:
            return 0
        if best == 0:
            return 1 + _argmax(rates[1:])
        others = [k for k in (best + 1, best - 1, 2 * best, 0) if k < len(rates)]
        return min(others, key=self._last_used.__getitem__)


def _argmax(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)


def policy_for(lookahead: Lookahead, timings: Timings) -> Policy:
    """The policy a request asks for."""
    return Auto(timings) if lookahead == "auto" else Fixed(lookahead)
