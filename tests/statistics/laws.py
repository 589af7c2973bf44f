"""The law of what an acceptance rule emits, summed and not sampled.

A rule is a pure function of its uniforms, constant between a few borders. `outcomes` walks all cells between borders,
asks the rule at each cell's middle, and adds up the cells' sizes. Where the rule's own borders lay elsewhere the sums
would not meet the law; `borders_hold` asks again just inside each cell's ends.

V vocabulary, k drafts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from specdec.decoding.protocols import Floats
from specdec.decoding.verification import Rule, residual

Law = dict[tuple[int, ...], float]
Rows = NDArray[np.float64]
EDGE = 1e-13


def cells(borders: Rows) -> list[tuple[float, float]]:
    """Intervals of [0, 1] between borders, empty ones left out."""
    points = sorted({0.0, 1.0, *(float(border) for border in borders if 0 < border < 1)})
    return [(low, high) for low, high in pairwise(points) if high - low > 4 * EDGE]


def judge_cells(p: Rows, q: Rows | None, draft: int) -> list[tuple[float, float]]:
    """u is accepted below p / q."""
    return cells(np.array([p[draft] / (1.0 if q is None else q[draft])]))


def choose_cells(p: Rows, q: Rows | None, draft: int | None) -> list[tuple[float, float]]:
    """Draws from p, and from the residual, change at their cumulative sums."""
    borders = [p.cumsum()]
    if draft is not None:
        row = np.eye(len(p))[draft] if q is None else q
        left = residual(p, row)
        borders.append(left.cumsum() / left.sum())
    return cells(np.concatenate(borders))


def outcomes(rule: Rule, p: Rows, drafts: tuple[int, ...], q: Rows | None, *, edges: bool = False) -> Law:
    """Probability of each sequence of tokens that a round with these drafts can emit."""
    law: Law = defaultdict(float)
    for size, judge, choose in _walk(rule, p, drafts, q, (), ()):
        verdict = rule(p, drafts, q, *_filled(judge, choose, len(drafts)))
        law[(*drafts[: verdict.accepted], verdict.token)] += size
    if edges:
        borders_hold(rule, p, drafts, q)
    return law


def _filled(judge: tuple[float, ...], choose: tuple[float, ...], k: int) -> tuple[list[float], list[float]]:
    rest = k - len(judge)
    return [*judge, *[0.5] * rest], [*choose, *[0.5] * (k + 1 - len(choose))]


def _walk(
    rule: Rule, p: Rows, drafts: tuple[int, ...], q: Rows | None, judge: tuple[float, ...], choose: tuple[float, ...]
) -> Iterator[tuple[float, tuple[float, ...], tuple[float, ...]]]:
    """Cells of all uniforms that matter: those of position i only where the rule went on beyond i."""
    i, k = len(choose), len(drafts)
    if i == k:
        for low, high in choose_cells(p[k], None, None) if k else choose_cells(p[0], None, None):
            yield high - low, judge, (*choose, (low + high) / 2)
        return
    q_row = None if q is None else q[i]
    for (a, b), (c, d) in product(judge_cells(p[i], q_row, drafts[i]), choose_cells(p[i], q_row, drafts[i])):
        now = (*judge, (a + b) / 2), (*choose, (c + d) / 2)
        size = (b - a) * (d - c)
        if rule(p, drafts, q, *_filled(*now, k)).accepted > i:
            for rest, *uniforms in _walk(rule, p, drafts, q, *now):
                yield size * rest, uniforms[0], uniforms[1]
        else:
            yield size, *now


def borders_hold(rule: Rule, p: Rows, drafts: tuple[int, ...], q: Rows | None) -> None:
    """The first draft's verdict is the same throughout each cell: the rule's borders are where they should be."""
    row = None if q is None else q[0]
    for (a, b), (c, d) in product(judge_cells(p[0], row, drafts[0]), choose_cells(p[0], row, drafts[0])):
        points = product((a + EDGE, (a + b) / 2, b - EDGE), (c + EDGE, (c + d) / 2, d - EDGE))
        verdicts = [rule(p, drafts, q, *_filled((u,), (v,), len(drafts))) for u, v in points]
        firsts = {(verdict.accepted > 0, verdict.accepted or verdict.token) for verdict in verdicts}
        assert len(firsts) == 1, f"u in ({a}, {b}), v in ({c}, {d}): {firsts}"


def first_token_law(rule: Rule, p: Rows, q: Rows, *, edges: bool = False) -> Rows:
    """Law of the first token emitted where one draft is drawn from `q`, (V,); p (V,) follows whatever was drafted."""
    law = np.zeros(len(p))
    rows = np.stack([p, p])
    for draft in np.flatnonzero(q).tolist():
        for emitted, size in outcomes(rule, rows, (draft,), q[None], edges=edges).items():
            law[emitted[0]] += q[draft] * size
    return law


def one_hot_law(rule: Rule, p: Rows, draft: int) -> Rows:
    """The same where the draft is chosen without chance."""
    law = np.zeros(len(p))
    for emitted, size in outcomes(rule, np.stack([p, p]), (draft,), None).items():
        law[emitted[0]] += size
    return law


def round_law(rule: Rule, target: Rows, drafter: Rows, last: int, k: int) -> Law:
    """Law of the tokens one round emits after `last`; target and drafter are Markov, rows of (V, V)."""
    law: Law = defaultdict(float)
    for drafts in product(range(len(target)), repeat=k):
        path = [last, *drafts]
        q = drafter[path[:-1]]
        chance = float(np.prod([q[i, draft] for i, draft in enumerate(drafts)]))
        if chance > 0:
            for emitted, size in outcomes(rule, target[path], drafts, q).items():
                law[emitted] += chance * size
    return law


def joint_law(rounds: Callable[[int], Law], last: int, length: int) -> Law:
    """Law of the first `length` tokens of rounds that follow each other."""
    if length == 0:
        return {(): 1.0}
    law: Law = defaultdict(float)
    for emitted, size in rounds(last).items():
        kept = emitted[:length]
        for rest, more in joint_law(rounds, kept[-1], length - len(kept)).items():
            law[kept + rest] += size * more
    return law


def markov_law(target: Rows, last: int, length: int) -> Law:
    """Law of `length` tokens drawn one after the other from the target alone."""
    law: Law = {}
    for path in product(range(len(target)), repeat=length):
        law[path] = float(np.prod([target[a, b] for a, b in pairwise((last, *path))]))
    return law


def distance(a: Law, b: Law) -> float:
    """Largest difference of two laws at any sequence."""
    return max(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in {*a, *b})


def expected_rejection(p: Floats, q: Floats) -> float:
    """Σ min(p, q): how often `rejection` accepts a draft from q."""
    return float(np.minimum(p, q).sum())


def expected_match(p: Floats, q: Floats) -> float:
    """Σ p·q: how often `match` accepts a draft from q."""
    return float(np.dot(p, q))
