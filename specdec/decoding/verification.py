"""The two lossless acceptance rules, as pure functions of probabilities and uniforms.

p target's, q draft's probabilities (the letters of Leviathan et al. 2023; Chen et al. 2023 swap them), u uniform in
[0, 1), k drafts, V vocabulary. Row i of p follows i drafts, so that p has k + 1 rows. Both rules leave the law of the
emitted tokens exactly p, whatever q is, as long as each draft was drawn from its row of q. q None stands for drafts
chosen without chance: each row is one at its draft and zero elsewhere.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from specdec.config import AcceptanceRule
from specdec.decoding.protocols import Floats
from specdec.decoding.sampling import draw
from specdec.records import Source


@dataclass(frozen=True, slots=True)
class Judgement:
    """How one draft was judged: its p, the probability with which the rule accepts it, and the uniform used."""

    p: float
    acceptance: float
    u: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first `accepted` drafts stand, then `token` follows. `judged` ends with the rejected draft, if any."""

    accepted: int
    token: int
    kind: Source
    judged: tuple[Judgement, ...] = ()


Rule = Callable[[Floats, Sequence[int], Floats | None, Sequence[float], Sequence[float]], Verdict]


def rejection(
    p: Floats, drafts: Sequence[int], q: Floats | None, judge: Sequence[float], choose: Sequence[float]
) -> Verdict:
    """Speculative sampling (Leviathan et al. 2023, algorithm 1; Chen et al. 2023, algorithm 2).

    A draft is accepted iff u·q < p, strictly and without a division. The first one refused is replaced by a draw from
    the residual; where all stand, the bonus is drawn from row k. `judge` holds k uniforms, `choose` k + 1.
    """
    judged = []
    for i, draft in enumerate(drafts):
        likely, drafted = p.item(i, draft), 1.0 if q is None else q.item(i, draft)
        judged.append(Judgement(likely, acceptance(likely, drafted), judge[i]))
        if not judge[i] * drafted < likely:
            left = leftover(p[i], draft, None if q is None else q[i])
            return Verdict(i, draw(left, choose[i]), "recovered", tuple(judged))
    return _all_stand(p, len(drafts), choose, judged)


def match(
    p: Floats, drafts: Sequence[int], q: Floats | None, judge: Sequence[float], choose: Sequence[float]
) -> Verdict:
    """Draw y ~ p for each row by that position's own uniform; accept while y is the draft. y is emitted either way.

    Uniforms keyed by position make the output the very tokens of plain decoding, at any temperature. `q` and `judge`
    are not used.
    """
    judged = []
    for i, draft in enumerate(drafts):
        likely = p.item(i, draft)
        judged.append(Judgement(likely, likely, choose[i]))
        token = draw(p[i], choose[i])
        if token != draft:
            return Verdict(i, token, "recovered", tuple(judged))
    return _all_stand(p, len(drafts), choose, judged)


def greedy(best: Sequence[int], drafts: Sequence[int], judge: Sequence[float]) -> Verdict:
    """Either rule where row i of p is one at `best[i]`, and zero elsewhere: accept while the draft is the best."""
    k = len(drafts)
    accepted = next((i for i in range(k) if drafts[i] != best[i]), k)
    judged = [Judgement(1.0, 1.0, judge[i]) for i in range(accepted)]
    if accepted == k:
        return Verdict(k, best[k], "bonus" if k else "plain", tuple(judged))
    judged.append(Judgement(0.0, 0.0, judge[accepted]))
    return Verdict(accepted, best[accepted], "recovered", tuple(judged))


RULES: Mapping[AcceptanceRule, Rule] = {"rejection": rejection, "match": match}


def _all_stand(p: Floats, k: int, choose: Sequence[float], judged: list[Judgement]) -> Verdict:
    return Verdict(k, draw(p[k], choose[k]), "bonus" if k else "plain", tuple(judged))


def acceptance(p: float, q: float) -> float:
    """min(1, p / q): the probability with which `rejection` accepts a draft."""
    return 1.0 if p >= q else p / q


def leftover(p: Floats, draft: int, q: Floats | None) -> Floats:
    """What `rejection` draws from in place of a refused draft, (V,): the residual, where q None is one at `draft`."""
    return _without(p, draft) if q is None else residual(p, q)


def residual(p: Floats, q: Floats) -> Floats:
    """norm(max(0, p − q)), (V,): what is left of p where a draft from q was refused; p itself where nothing is."""
    return _norm(np.maximum(p - q, 0), p)


def _without(p: Floats, draft: int) -> Floats:
    """The residual where q is one at `draft`."""
    left = p.copy()
    left[draft] = 0
    return _norm(left, p)


def _norm(left: Floats, p: Floats) -> Floats:
    total = left.sum()
    with np.errstate(under="ignore"):
        normed: Floats = left / total if total > 0 else p
    return normed
