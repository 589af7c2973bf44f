"""Ways of decoding take turns at the same prompts, so that all of them meet the same machine in the same state."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from specdec.bench.plan import Contest, Way
from specdec.bench.shelf import Ids, Player
from specdec.checkpoints.memory import peak_bytes, reset_peak
from specdec.config import SamplingParams
from specdec.records import Round

T = TypeVar("T")
WARM_UP_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Turn:
    """One continuation: which prompt, in which repetition, and what came of it. `peak` is in bytes, 0 where unknown."""

    way: Way
    repetition: int
    prompt: int
    prompt_tokens: int
    rounds: tuple[Round, ...]
    peak: int


def take_turns(contest: Contest, players: Mapping[Way, Player], prompts: Sequence[Ids]) -> Iterator[Turn]:
    """Warm every player up, then let all continue a prompt before any is given the next.

    Who goes first moves on by one with every prompt: nobody always follows the same other.
    """
    for way in players:
        players[way](prompts[0], _params(contest, 0, WARM_UP_TOKENS))
    for repetition in range(contest.repeat):
        for index, prompt in enumerate(prompts):
            for way in rotated(list(players), repetition * len(prompts) + index):
                reset_peak()
                rounds = players[way](prompt, _params(contest, index, contest.work.tokens))
                yield Turn(way, repetition, index, len(prompt), rounds, peak_bytes() or 0)


def rotated(items: Sequence[T], by: int) -> list[T]:
    """The items in order, beginning at another one."""
    first = by % len(items)
    return [*items[first:], *items[:first]]


def _params(contest: Contest, seed: int, tokens: int) -> SamplingParams:
    tokens = min(tokens, contest.work.tokens)
    return SamplingParams(temperature=contest.work.temperature, max_tokens=tokens, seed=seed)
