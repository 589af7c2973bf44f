"""Is the token that comes first after a prompt distributed as the target says? A test that runs anywhere and can fail.

One draft is drawn and judged, by the very rule that runs use; whatever q is, the token that is emitted must have the
law p. Emitted tokens are counted over few outcomes, the likeliest tokens of p and "any other", and their shares are
compared with p by total variation, half the sum of all differences. Nothing is estimated here that tests do not sum
exactly (`tests/statistics`): this is for whoever wants to see it.

V vocabulary, n draws, m outcomes; p target's, q draft's probabilities.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specdec.config import SamplingParams
from specdec.decoding.drafting import Drafting, Drafts
from specdec.decoding.processors import Processors
from specdec.decoding.protocols import Drafter, Floats, Model
from specdec.decoding.sampling import draw
from specdec.decoding.verification import Judgement, Rule, Verdict
from specdec.errors import RequestError

FALSE_ALARM = 1e-4  # how often a sound engine exceeds the critical value, at most
NAMED = 15  # tokens that are an outcome each; all others together are one more
PLACES = 12  # ends of the prompt that are looked at
UNIFORMS = 4  # that one draw needs


@dataclass(frozen=True, slots=True)
class Place:
    """A beginning of the prompt, the law p of what follows it, and a draft for that with its q.

    `rows`, (2, V), are p twice: a rule wants a row behind the draft too, which the first token does not depend on.
    """

    prefix: tuple[int, ...]
    rows: Floats
    drafts: Drafts

    @property
    def p(self) -> Floats:
        """The target's law of what follows, (V,)."""
        law: Floats = self.rows[0]
        return law

    @property
    def disagreement(self) -> float:
        """Total variation between p and q over the outcomes: how wrong whoever keeps every draft would be."""
        named = named_outcomes(self.p)
        q = np.eye(1, len(self.p), self.drafts.tokens[0]) if self.drafts.q is None else self.drafts.q
        return variation(shares(q[0], named), shares(self.p, named))


def named_outcomes(p: Floats) -> NDArray[np.intp]:
    """The tokens that are an outcome each: the likeliest `NAMED` of p."""
    return np.argsort(-p, kind="stable")[:NAMED]


def shares(row: Floats, named: NDArray[np.intp]) -> NDArray[np.float64]:
    """Probability of each outcome under `row`, (m,), that of any other token last."""
    likely = row[named].astype(np.float64)
    return np.append(likely, max(0.0, 1 - float(likely.sum())))


def variation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Total variation between two laws: half the sum of all differences, 0 … 1."""
    return float(np.abs(one - other).sum()) / 2


def most_telling(target: Model, drafter: Drafter, prompt: Sequence[int], params: SamplingParams) -> Place:
    """Of the prompt's last beginnings the one where p and q differ most, since there a fault would show most.

    The choice knows p and q and no draw, so that what is drawn afterwards is as good as anywhere. RequestError where
    the drafter has nothing to propose.
    """
    ends = range(max(1, len(prompt) - PLACES + 1), len(prompt) + 1)
    size = target.network.vocab_size
    logits = target.network.forward(prompt, target.network.new_cache(len(prompt)), logits=len(ends))
    p = Processors(params, prompt[: ends[0]], size).probabilities(logits, prompt[ends[0] :])  # (places, V)
    drafting = Drafting(drafter.start(target, params, 0, len(prompt) + 1), size)
    drafting.prefill(prompt[: ends[0]])
    places = [
        Place(tuple(prompt[:end]), np.stack([row, row]), drafts)
        for end, row in zip(ends, p, strict=True)
        if (drafts := drafting.propose(prompt[:end], min(1, drafting.room(end)))).tokens
    ]
    if not places:
        raise RequestError(f"{drafter.name} proposes nothing in this prompt: take a longer one, or another drafter")
    return max(places, key=lambda place: place.disagreement)


def first_token(rule: Rule, place: Place, uniforms: Sequence[float]) -> int:
    """The first token that a round with one draft emits; `uniforms` are `UNIFORMS` fresh ones."""
    q = place.drafts.q
    draft = place.drafts.tokens[0] if q is None else draw(q[0], uniforms[0])
    verdict = rule(place.rows, (draft,), q, uniforms[1:2], uniforms[2:])
    return draft if verdict.accepted else verdict.token


def plain_token(rule: Rule, place: Place, uniforms: Sequence[float]) -> int:
    """The token of a round without a draft."""
    return rule(place.rows[:1], (), None, (), uniforms[:1]).token


def trusting(
    p: Floats, drafts: Sequence[int], q: Floats | None, judge: Sequence[float], choose: Sequence[float]
) -> Verdict:
    """A broken rule, for control: every draft is kept unseen."""
    judged = tuple(Judgement(p.item(i, draft), 1.0, judge[i]) for i, draft in enumerate(drafts))
    return Verdict(len(drafts), draw(p[-1], choose[-1]), "bonus" if judged else "plain", judged)


class Tally:
    """How often each outcome was drawn, beside how often it should be."""

    def __init__(self, p: Floats) -> None:
        named = named_outcomes(p)
        self._outcome = {token: i for i, token in enumerate(named.tolist())}
        self._law = shares(p, named)  # (m,)
        self._counts = np.zeros(len(self._law))

    def add(self, tokens: Iterable[int]) -> None:
        """Count what was drawn."""
        other = len(self._law) - 1
        for token in tokens:
            self._counts[self._outcome.get(token, other)] += 1

    @property
    def draws(self) -> int:
        """n."""
        return int(self._counts.sum())

    @property
    def variation(self) -> float:
        """Total variation between what was drawn and p, over the outcomes."""
        return variation(self._counts / self._counts.sum(), self._law)

    @property
    def critical(self) -> float:
        """What `variation` exceeds by chance at most once in 1 / FALSE_ALARM times."""
        return critical_variation(self.draws, len(self._law))


def critical_variation(draws: int, outcomes: int, false_alarm: float = FALSE_ALARM) -> float:
    """t with P(total variation ≥ t) ≤ `false_alarm`, for any law and any n: no approximation.

    Total variation is the largest excess of a share over its probability, among the 2^m − 2 sets of outcomes that are
    neither empty nor everything. For one set the excess reaches t with chance ≤ exp(−2 n t²) (Hoeffding 1963), for any
    of them with chance ≤ (2^m − 2) exp(−2 n t²) (Weissman et al. 2003, after Bretagnolle, Huber and Carol).
    """
    return math.sqrt(math.log((2**outcomes - 2) / false_alarm) / (2 * draws))
