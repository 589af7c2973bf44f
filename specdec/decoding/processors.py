"""Rows of logits to rows of probabilities, as the user's SamplingParams ask: bias, penalties, temperature, cuts.

Each row depends on its own prefix alone: row i of a window follows the text so far and the first i drafts. So drafts
that are refused later leave no trace, and a window's rows are those of plain decoding. What is off costs nothing.

n rows, V vocabulary, W unnormalised weights, the largest of a row is 1.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from specdec.config import SamplingParams
from specdec.decoding.protocols import Floats
from specdec.decoding.tally import Tally
from specdec.errors import NumericalError

_COLDEST = 1e-30  # a temperature below this would overflow, and is no different


class Processors:
    """The processors of one request. `follow` counts the text as it grows; the rest asks for nothing but its rows."""

    def __init__(self, params: SamplingParams, prompt: Sequence[int], vocab_size: int) -> None:
        self._params = params
        self._bias = _bias(params)
        self._repeats = params.repetition_penalty != 1
        self._counts = params.frequency_penalty != 0 or params.presence_penalty != 0
        self._cuts = params.top_k > 0 or params.top_p < 1 or params.min_p > 0
        self._seen, self._said = Tally(), Tally()  # ids of prompt and output, of output alone
        self._length = len(prompt)
        if self._repeats:
            self._seen.add(prompt)

    def follow(self, tokens: Sequence[int]) -> None:
        """Count what `tokens`, the prompt and output so far, has that it had not when last seen."""
        if self._repeats or self._counts:
            new = tokens[self._length :]
            self._seen.add(new)
            self._said.add(new)
            self._length += len(new)

    def probabilities(self, logits: Floats, drafts: Sequence[int] = ()) -> Floats:
        """Rows that sum to 1, (n, V), of the logits' own type; the last row follows all of `drafts`.

        Greedy is one-hot, at the lowest id where several are largest. NumericalError where a row has no finite
        largest logit.
        """
        params = self._params
        if params.greedy:
            rows = np.zeros_like(logits)
            rows[np.arange(len(rows)), self.choices(logits, drafts)] = 1
            return rows
        return self._softmax(logits, drafts, params.temperature, cut=self._cuts)

    def beliefs(self, logits: Floats, drafts: Sequence[int] = ()) -> Floats:
        """The softmax, at temperature 1 and without cuts, of what greedy takes the arg max of; rows as above."""
        return self._softmax(logits, drafts, 1.0, cut=False)

    def _softmax(self, logits: Floats, drafts: Sequence[int], temperature: float, *, cut: bool) -> Floats:
        rows = self._adjusted(logits, drafts)
        with np.errstate(under="ignore", over="ignore", invalid="ignore"):  # to 0, to −∞, and NaN is looked for
            weights, totals = to_weights(rows, temperature)
            if cut:
                self._cut(weights)
                totals = weights.sum(axis=-1, keepdims=True)
            weights /= totals
        return weights

    def choices(self, logits: Floats, drafts: Sequence[int] = ()) -> NDArray[np.intp]:
        """The likeliest token of each row, (n,), the lowest id of several; rows as in `probabilities`."""
        rows = self._adjusted(logits, drafts)
        best: NDArray[np.intp] = rows.argmax(axis=-1)
        if not np.isfinite(rows[np.arange(len(rows)), best]).all():
            raise NumericalError("the logits are NaN, infinite, or leave no token possible")
        return best

    def _cut(self, weights: Floats) -> None:
        """Zero what top-k, top-p and min-p leave out, in this order, in place."""
        params = self._params
        if 0 < params.top_k < weights.shape[1]:
            keep_top_k(weights, params.top_k)
        if params.top_p < 1:
            keep_top_p(weights, params.top_p)
        if params.min_p > 0:
            weights[weights < params.min_p] = 0

    def _adjusted(self, logits: Floats, drafts: Sequence[int]) -> Floats:
        """Logits after bias and penalties; the same array where these are off."""
        if self._bias is None and not self._repeats and not self._counts:
            return logits
        params, rows = self._params, logits.copy()
        before = len(drafts) + 1 - len(rows)  # drafts that precede even the first row
        if self._bias is not None:
            ids, values = self._bias
            rows[:, ids] += values.astype(rows.dtype)
        if self._repeats:
            penalise_repetition(rows, self._seen, drafts, before, params.repetition_penalty)
        if self._counts:
            penalise_counts(rows, self._said, drafts, before, params.frequency_penalty, params.presence_penalty)
        return rows


def _bias(params: SamplingParams) -> tuple[NDArray[np.intp], NDArray[np.float64]] | None:
    if not params.logit_bias:
        return None
    return np.array(list(params.logit_bias), np.intp), np.array(list(params.logit_bias.values()), np.float64)


def penalise_repetition(rows: Floats, seen: Tally, drafts: Sequence[int], before: int, penalty: float) -> None:
    """Divide positive logits of seen ids by `penalty`, multiply negative ones (Keskar et al. 2019), in place."""
    rows[:, seen.ids] = _repeated(rows[:, seen.ids], penalty)
    for i, draft in enumerate(drafts):
        if draft not in seen and draft not in drafts[:i]:
            later = rows[max(0, i + 1 - before) :, draft]
            later[:] = _repeated(later, penalty)


def _repeated(logits: Floats, penalty: float) -> Floats:
    scaled: Floats = np.where(logits > 0, logits / penalty, logits * penalty)
    return scaled


def penalise_counts(
    rows: Floats, said: Tally, drafts: Sequence[int], before: int, frequency: float, presence: float
) -> None:
    """Subtract `frequency` for each time an id was said and `presence` where it was at all (OpenAI), in place.

    Each logit is reduced once, by what its own row's counts ask for: as plain decoding would, to the last bit.
    """
    drafted = list(dict.fromkeys(drafts))
    columns = rows[:, drafted]
    rows[:, said.ids] -= (said.counts * frequency + presence).astype(rows.dtype)
    for token, column in zip(drafted, columns.T, strict=True):
        counts = np.array([said.count(token) + drafts[: before + i].count(token) for i in range(len(rows))])
        rows[:, token] = column - (counts * frequency + (counts > 0) * presence).astype(rows.dtype)


def to_weights(rows: Floats, temperature: float) -> tuple[Floats, Floats]:
    """W = exp((row − max) / temperature), (n, V), and its sums, (n, 1): the largest is 1, none overflows."""
    weights: Floats = rows - rows.max(axis=-1, keepdims=True)
    if temperature != 1:
        weights /= max(temperature, _COLDEST)
    np.exp(weights, out=weights)
    totals: Floats = weights.sum(axis=-1, keepdims=True)
    if not totals.min() >= 1:  # NaN among the logits, or no finite one, makes NaN of the whole row
        raise NumericalError("the logits are NaN, infinite, or leave no token possible")
    return weights, totals


def keep_top_k(weights: Floats, k: int) -> None:
    """Zero all but the k largest weights of each row, the lower id first where several are equal, in place."""
    place = weights.shape[1] - k
    least = np.partition(weights, place, axis=-1)[:, place].tolist()
    for row, limit in zip(weights, least, strict=True):
        _keep_largest(row, limit, k)


def keep_top_p(weights: Floats, top_p: float) -> None:
    """Zero all but the smallest set of largest weights whose share reaches `top_p` (Holtzman et al. 2020), in place.

    At least one stays; of equal ones the lower id comes first. All weights below (1 − top_p) / V of the total
    together cannot make up the rest, so that the few above are all there is to sort.
    """
    for row in weights:
        total = row.sum().item()
        likely = np.sort(row[row >= (1 - top_p) * total / len(row)])[::-1]
        cumulative = likely.cumsum(dtype=np.float64)
        count = 1 + int(cumulative[:-1].searchsorted(top_p * total))
        _keep_largest(row, likely.item(count - 1), count)


def _keep_largest(row: Floats, least: float, count: int) -> None:
    """Zero all but the `count` largest weights of a row, the last of which is `least`, in place."""
    kept = row >= least
    if least > 0 and np.count_nonzero(kept) > count:
        equal = np.flatnonzero(row == least)
        kept[equal[count - np.count_nonzero(row > least) :]] = False
    row *= kept
