"""The check that speculative output is plain output, for any target, drafters and prompts.

Used here with tables and tiny random transformers, elsewhere with trained and downloaded models.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.decoding import Engine
from specdec.decoding.protocols import Drafter, Model
from specdec.trace import Trace

LOOKAHEADS = (1, 2, 3, 4, 8)
TOKENS = 64


@dataclass(frozen=True)
class Difference:
    """A run that left the plain one: where, under what, and by how much the best logit led the second there."""

    drafter: str
    k: int | str
    prompt: int
    position: int
    margin: float

    def __str__(self) -> str:
        where = f"{self.drafter}, k = {self.k}, prompt {self.prompt}"
        return f"{where}: differs at token {self.position}, margin {self.margin:g}"


def differences(
    target: Model,
    drafters: Iterable[Drafter],
    prompts: Sequence[str | Sequence[int]],
    *,
    tokens: int = TOKENS,
    lookaheads: Sequence[int] = LOOKAHEADS,
    params: SamplingParams = SamplingParams(),  # noqa: B008
    speculation: SpeculativeConfig = SpeculativeConfig(),  # noqa: B008
) -> list[Difference]:
    """All runs whose ids are not those of plain decoding with the same parameters; empty where all is well.

    Greedy by default. With sampling `params` (a seed given) and `acceptance="match"` the promise is the same.
    """
    params = replace(params, max_tokens=tokens)
    plain = [Engine(target).generate(prompt, params, speculation) for prompt in prompts]
    found = []
    for drafter in drafters:
        engine = Engine(target, drafter)
        for k in lookaheads:
            asked = replace(speculation, num_speculative_tokens=k)
            for i, prompt in enumerate(prompts):
                ids = engine.generate(prompt, params, asked).ids
                if ids != plain[i].ids:
                    position = _first_difference(ids, plain[i].ids)
                    found.append(Difference(drafter.name, k, i, position, _margin(target, plain[i], position)))
    return found


def _margin(target: Model, plain: Trace, position: int) -> float:
    """How far the best raw logit leads the second one where the token at `position` is chosen."""
    text = [*plain.started.prompt_ids, *plain.ids[:position]]
    logits = target.network.forward(text, target.network.new_cache(len(text)), logits=1)[0]
    second, best = sorted(logits.tolist())[-2:]
    return best - second


def _first_difference(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
