"""A sweep: which ways of decoding are measured, in which order, and what their runs say of theory. Pure.

Speed-up is tokens per second over the median of the plain runs of the same target, which take turns with the others.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import median

import numpy as np

from specdec.config import Lookahead
from specdec.decoding import speed_up
from specdec.records import Round
from specdec.serving import GenerationRequest, Offer, drafts_for, targets
from specdec.stats import Stats, ratio

LOOKAHEADS = (1, 2, 3, 4, 5, 6, 8, 10, 12)
TURN = 2  # ways between two plain runs


@dataclass(frozen=True, slots=True)
class Way:
    """A way of decoding; draft "none" is plain."""

    target: str
    draft: str = "none"
    lookahead: Lookahead = 0

    @property
    def plain(self) -> bool:
        """Whether nothing is drafted."""
        return self.draft == "none"

    def request(self, asked: GenerationRequest) -> GenerationRequest:
        """`asked`, decoded this way."""
        speculation = replace(asked.speculation, num_speculative_tokens=self.lookahead)
        return replace(asked, target=self.target, draft=self.draft, speculation=speculation)


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a way: its rounds, and their fold."""

    way: Way
    rounds: tuple[Round, ...]
    stats: Stats

    @classmethod
    def of(cls, way: Way, rounds: Iterable[Round]) -> "Run":
        """Fold the rounds of a run."""
        kept = tuple(rounds)
        return cls(way, kept, Stats.of(kept))


def lookaheads(most: int) -> list[int]:
    """The k that a sweep up to `most` measures, `most` itself among them; none where it is below 1."""
    return [k for k in LOOKAHEADS if k < most] + [most] * (most > 0)


def pairings(offers: Sequence[Offer], lookahead: Lookahead) -> list[Way]:
    """Every target with every draft model that fits it, target by target."""
    pairs = [(target, draft) for target in targets(offers) for draft in drafts_for(target, offers)]
    return [Way(target.name, draft.name, lookahead) for target, draft in pairs]


def take_turns(ways: Sequence[Way]) -> list[Way]:
    """For each target plain decoding first, after every second way, and last, so that all meet the same machine."""
    return [way for target, group in groupby(ways, lambda way: way.target) for way in _turns(Way(target), list(group))]


def _turns(plain: Way, ways: Sequence[Way]) -> list[Way]:
    turns = [ways[at : at + TURN] for at in range(0, len(ways), TURN)]
    return [way for turn in turns for way in (plain, *turn)] + [plain]


def plain_speed(runs: Iterable[Run], target: str) -> float:
    """Median tokens per second of a target's plain runs; 0 where there are none."""
    speeds = [run.stats.tokens_per_second for run in runs if run.way == Way(target)]
    return median(speeds) if speeds else 0.0


def gain(run: Run, runs: Iterable[Run]) -> float:
    """Speed-up of a run over the plain ones of its target."""
    return ratio(run.stats.tokens_per_second, plain_speed(runs, run.way.target))


def drafted(runs: Iterable[Run]) -> list[Run]:
    """The runs that are not plain."""
    return [run for run in runs if not run.way.plain]


@dataclass(frozen=True, slots=True)
class Theory:
    """The theory's letters as the runs of one pair have them.

    alpha: accepted ÷ judged, of all runs together. c: median seconds of a draft, in plain steps. v: median seconds of
    a target pass by its rows, choosing among them included, in plain steps.
    """

    alpha: float
    c: float
    v: Mapping[int, float]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> "Theory":
        """Measure them; at least one round without drafts is needed."""
        rounds = [step for run in runs for step in run.rounds]
        passes: defaultdict[int, list[float]] = defaultdict(list)
        for step in rounds:
            passes[len(step.proposals) + 1].append(step.verify_s + step.sample_s)
        step_s = median(passes[1])
        drafts = [step.draft_s / len(step.proposals) for step in rounds if step.proposals] or [0.0]
        accepted, rejected = (sum(getattr(run.stats, name) for run in runs) for name in ("accepted", "rejected"))
        v = {rows: ratio(median(seconds), step_s) for rows, seconds in sorted(passes.items())}
        return cls(ratio(accepted, accepted + rejected), ratio(median(drafts), step_s), v)

    def cost(self, rows: int) -> float:
        """v of so many rows, on a straight line between those that were measured."""
        return float(np.interp(rows, list(self.v), list(self.v.values())))

    @property
    def row(self) -> float:
        """What each further row costs on average: the r of the line v = 1 + r · (rows − 1) that fits best."""
        further = [(rows - 1, v - 1) for rows, v in self.v.items()]
        return ratio(sum(x * y for x, y in further), sum(x * x for x, _ in further))

    def speed_up(self, k: int) -> float:
        """What theory expects of k."""
        return speed_up(self.alpha, k, self.c, self.cost(k + 1))
