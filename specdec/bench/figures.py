"""From turns to figures: medians with their spread, and what the theory makes of the measured α, c and v.

Speed and speed-up are taken per repetition, over all its prompts together; their median counts, the least and the most
are the spread. Times to the first token and gaps between tokens are those of single runs, all put together.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Self

import numpy as np

from specdec.bench.measure import Turn
from specdec.bench.plan import PLAIN, Way, Work
from specdec.decoding import speed_up
from specdec.records import Round
from specdec.stats import Stats, ratio

Texts = dict[int, list[int]]


@dataclass(frozen=True, slots=True)
class Spread:
    """A median, and between what it lies."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        """Of at least one value."""
        kept = list(values)
        return cls(statistics.median(kept), min(kept), max(kept))


@dataclass(frozen=True, slots=True)
class Theory:
    """What a round cost in units of the baseline's, and what follows.

    c: a draft step; v: a target pass over k + 1 tokens; speed_up: E[τ] / (v + k·c) with the measured α.
    """

    c: float
    v: float
    speed_up: float


@dataclass(frozen=True, slots=True)
class Figures:
    """What a way of decoding achieved. Times in seconds, memory in units of 10⁶ bytes.

    itl: gaps between tokens, those of one round arriving together. accepted_by_position: rounds that accepted their
    draft i ÷ rounds. shares: of draft, verify, sample in decoding. peak_mb: most memory the process held meanwhile, the
    models of all that took turns included. same_text: whether greedy text was that of bit-exact plain decoding;
    None where sampled.
    """

    tokens: int
    prompt_tokens: int
    tokens_per_second: Spread
    speed_up: Spread
    ttft_s: Spread
    itl_p50_s: float
    itl_p95_s: float
    acceptance_rate: float
    alpha: float
    mean_acceptance_length: float
    accepted_by_position: tuple[float, ...]
    shares: tuple[float, float, float]
    peak_mb: float
    same_text: bool | None
    theory: Theory | None


@dataclass(frozen=True, slots=True)
class Row:
    """A way at a work, and its figures; `baseline` where all others of its contest are compared with it."""

    suite: str
    work: Work
    way: Way
    baseline: bool
    figures: Figures


def rows(suite: str, work: Work, turns: Sequence[Turn]) -> list[Row]:
    """The figures of every way that took a turn, in order of first appearance. The faster plain way is the baseline."""
    by_way = {way: [turn for turn in turns if turn.way == way] for way in dict.fromkeys(turn.way for turn in turns)}
    speeds = {way: _speeds(own) for way, own in by_way.items()}
    baseline = max((way for way in PLAIN if way in by_way), key=lambda way: statistics.median(speeds[way]))
    said = None if work.temperature else _texts(by_way[PLAIN[0]])
    return [
        Row(suite, work, way, way == baseline, _figures(own, by_way[baseline], said)) for way, own in by_way.items()
    ]


def _figures(turns: Sequence[Turn], plain: Sequence[Turn], said: Texts | None) -> Figures:
    """Of one way's turns, beside those of the baseline; `said` is what it should have said, where that is certain."""
    stats = fold(turns)
    waits = [gap for turn in turns for gap in gaps(turn.rounds)]
    itl = np.percentile(waits or [0.0], [50, 95])
    return Figures(
        tokens=stats.tokens,
        prompt_tokens=round(statistics.median(turn.prompt_tokens for turn in turns)),
        tokens_per_second=Spread.of(_speeds(turns)),
        speed_up=Spread.of(_gains(_speeds(turns), _speeds(plain))),
        ttft_s=Spread.of(Stats.of(turn.rounds).ttft_s for turn in turns),
        itl_p50_s=float(itl[0]),
        itl_p95_s=float(itl[1]),
        acceptance_rate=stats.acceptance_rate,
        alpha=stats.alpha,
        mean_acceptance_length=stats.mean_acceptance_length,
        accepted_by_position=tuple(ratio(count, stats.rounds) for count in stats.accepted_per_position),
        shares=(
            ratio(stats.draft_s, stats.decode_s),
            ratio(stats.verify_s, stats.decode_s),
            ratio(stats.sample_s, stats.decode_s),
        ),
        peak_mb=max(turn.peak for turn in turns) / 1e6,
        same_text=None if said is None else _texts(turns) == said,
        theory=_theory(turns[0].way, stats.alpha, turns, plain),
    )


def fold(turns: Iterable[Turn]) -> Stats:
    """The statistics of all rounds of several runs (its TTFT is the first run's)."""
    return reduce(Stats.add, (step for turn in turns for step in turn.rounds), Stats())


def gaps(rounds: Sequence[Round]) -> list[float]:
    """Seconds before each token but the first: a round's own for the first token it brings, 0 for those beside it."""
    found: list[float] = []
    waited = 0.0
    for step in rounds:
        waited += step.seconds
        for _ in step.tokens:
            found.append(waited)
            waited = 0.0
    return found[1:]


def _speeds(turns: Sequence[Turn]) -> list[float]:
    """Tokens per second of each repetition."""
    repetitions = sorted({turn.repetition for turn in turns})
    return [fold(turn for turn in turns if turn.repetition == number).tokens_per_second for number in repetitions]


def _gains(own: Sequence[float], plain: Sequence[float]) -> list[float]:
    """Ratios of the same repetitions."""
    return [ratio(mine, theirs) for mine, theirs in zip(own, plain, strict=True)]


def _texts(turns: Sequence[Turn]) -> Texts:
    """Ids by prompt."""
    return {turn.prompt: [token.id for step in turn.rounds for token in step.tokens] for turn in turns}


def _theory(way: Way, alpha: float, turns: Sequence[Turn], plain: Sequence[Turn]) -> Theory | None:
    """From rounds that drafted all k; None where k varies, or nothing is known of drafts.

    Lookups have none either: a round in which they find nothing is no case of the theory.
    """
    if way.engine != "specdec" or not isinstance(way.k, int) or way.draft in ("none", "ngram"):
        return None
    full = [step for turn in turns for step in turn.rounds if len(step.proposals) == way.k]
    if not full:
        return None
    step_s = _pass_seconds(step for turn in plain for step in turn.rounds)
    c = ratio(statistics.median(step.draft_s for step in full) / way.k, step_s)
    v = ratio(_pass_seconds(full), step_s)
    return Theory(c, v, speed_up(alpha, way.k, c, v))


def _pass_seconds(rounds: Iterable[Round]) -> float:
    """A target pass, choosing among its logits included."""
    return statistics.median(step.verify_s + step.sample_s for step in rounds)
