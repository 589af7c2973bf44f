"""Five ways to get speculative sampling wrong, each seen in the wild. Every check of losslessness must notice them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from specdec.config import SamplingParams
from specdec.decoding import Drafted, ModelDrafter
from specdec.decoding.drafters.model import ModelDraftSession
from specdec.decoding.protocols import Floats, Model
from specdec.decoding.sampling import draw
from specdec.decoding.verification import Judgement, Verdict, rejection

Uniforms = Sequence[float]


def raw_q(temperature: float):
    """q recorded before temperature, while the draft was drawn after it."""

    def rule(p: Floats, drafts: Sequence[int], q: Floats | None, judge: Uniforms, choose: Uniforms) -> Verdict:
        if q is None:
            return rejection(p, drafts, q, judge, choose)
        flat = q**temperature
        return rejection(p, drafts, flat / flat.sum(axis=-1, keepdims=True), judge, choose)

    return rule


def resample_from_p(p: Floats, drafts: Sequence[int], q: Floats, judge: Uniforms, choose: Uniforms) -> Verdict:
    """A refused draft replaced by a draw from p in place of the residual."""
    verdict = rejection(p, drafts, q, judge, choose)
    if verdict.kind != "recovered":
        return verdict
    return replace(verdict, token=draw(p[verdict.accepted], choose[verdict.accepted]))


def bonus_from_wrong_row(p: Floats, drafts: Sequence[int], q: Floats, judge: Uniforms, choose: Uniforms) -> Verdict:
    """The bonus drawn from the row of the last draft."""
    verdict = rejection(p, drafts, q, judge, choose)
    k = len(drafts)
    return replace(verdict, token=draw(p[k - 1], choose[k])) if verdict.kind == "bonus" else verdict


def first_draft_unverified(p: Floats, drafts: Sequence[int], q: Floats, judge: Uniforms, choose: Uniforms) -> Verdict:
    """The first draft taken on trust."""
    if not len(drafts):
        return rejection(p, drafts, q, judge, choose)
    rest = rejection(p[1:], drafts[1:], q[1:], judge[1:], choose[1:])
    trusted = Judgement(p.item(0, drafts[0]), 1.0, judge[0])
    return replace(rest, accepted=1 + rest.accepted, judged=(trusted, *rest.judged))


class ArgmaxDrafter(ModelDrafter):
    """Proposes the likeliest token of each row and yet hands over the row."""

    def start(self, target: Model, params: SamplingParams, seed: int, capacity: int) -> "ArgmaxSession":
        return ArgmaxSession(self.model, params, seed, capacity, target.network.vocab_size)


class ArgmaxSession(ModelDraftSession):
    def propose(self, tokens: Sequence[int], k: int) -> Drafted:
        network, cache = self._network, self._cache
        drafts: list[int] = []
        rows = []
        for _ in range(k):
            logits = network.forward([*tokens, *drafts][cache.length :], cache, logits=1)
            rows.append(self._processors.probabilities(logits, drafts)[0])
            drafts.append(int(rows[-1].argmax()))
        return Drafted(tuple(drafts), np.stack(rows))
