"""What to measure: contests, in each of which ways of decoding continue the same prompts in turn. Imports no NumPy.

A suite varies one thing: the lookahead, the sizes of the models, the prompt's length, its kind, or the temperature.
Plain decoding takes part in every contest twice, bit-exact and not, because the faster one is what counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from specdec.bench.prompts import PROMPTS
from specdec.config import Lookahead

Suite = Literal["k", "sizes", "prompt-length", "kinds", "temperature", "peers"]
EngineName = Literal["specdec", "transformers", "llama.cpp"]

SUITES: tuple[Suite, ...] = get_args(Suite)[:-1]
INSTRUCT = "smollm2-135m-instruct"  # follows instructions, which the bundled models do not
SAMPLED = 0.8  # the temperature of the lookahead's second curve
USUAL_K: dict[str, Lookahead] = {"ngram": 5}
MODEL_K: Lookahead = 3


@dataclass(frozen=True, slots=True)
class Way:
    """A way of decoding. `draft` is "none", "ngram" (elsewhere called prompt lookup) or a model's name."""

    engine: EngineName = "specdec"
    draft: str = "none"
    k: Lookahead = 0
    exact: bool = True

    @property
    def label(self) -> str:
        """What a reader sees."""
        own = "" if self.engine == "specdec" else f"{self.engine} "
        if self.draft == "none":
            return f"{own}plain" + ("" if self.exact else ", not bit-exact")
        return f"{own}{self.draft}, k = {self.k}"


PLAIN = (Way(), Way(exact=False))


@dataclass(frozen=True, slots=True)
class Work:
    """What is continued: `prompts` of a kind by a target, cut to `prompt_tokens` where that is not None."""

    target: str
    kind: str
    temperature: float
    tokens: int
    prompts: int
    prompt_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Contest:
    """Ways that take turns at the same work."""

    suite: Suite
    work: Work
    ways: tuple[Way, ...]
    repeat: int

    @property
    def runs(self) -> int:
        """Continuations in all, warm-up left out."""
        return len(self.ways) * self.work.prompts * self.repeat


@dataclass(frozen=True, slots=True)
class Scope:
    """What a user asked for. Without `targets` or `drafts` the bundled ones are meant; `k` None is the usual one."""

    suites: tuple[Suite, ...] = SUITES
    targets: tuple[str, ...] = ()
    drafts: tuple[str, ...] = ()
    ks: tuple[Lookahead, ...] = (*range(13), "auto")
    k: Lookahead | None = None
    lengths: tuple[int, ...] = (16, 32, 64, 128, 256, 384, 512, 1024)
    temperatures: tuple[float, ...] = (0.0, 0.4, 0.8, 1.2)
    both: bool = True  # the lookahead also where tokens are sampled
    tokens: int = 128
    prompts: int = 5
    repeat: int = 5
    threads: int | None = None


FULL = Scope()
QUICK = Scope(
    ks=(2, 3, 4, 8, "auto"),
    lengths=(16, 128, 384),
    temperatures=(0.0, 0.8),
    both=False,
    tokens=32,
    prompts=2,
    repeat=2,
)


class Facts(Protocol):
    """What a plan must know of models."""

    def here(self, name: str) -> bool:
        """Whether it can be loaded without a download."""
        ...

    def context_length(self, name: str) -> int:
        """Most tokens it can hold."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """Contests in order, and a sentence for each thing that was left out."""

    contests: tuple[Contest, ...]
    notes: tuple[str, ...] = ()


def plan(scope: Scope, facts: Facts) -> Plan:
    """The contests of all suites; what a target's context cannot hold is left out with a note."""
    notes: list[str] = []
    builders = {
        "k": _lookaheads,
        "sizes": _sizes,
        "prompt-length": _lengths,
        "kinds": _kinds,
        "temperature": _temperatures,
        "peers": _peers,
    }
    contests = [contest for suite in scope.suites for contest in builders[suite](scope, facts, notes)]
    return Plan(tuple(contests), tuple(dict.fromkeys(notes)))


def _lookaheads(scope: Scope, facts: Facts, notes: list[str]) -> Iterator[Contest]:
    """k: 0 needs no way of its own, it is plain decoding."""
    target, draft = _pair(scope)
    ways = tuple(Way(draft=draft, k=k) for k in scope.ks if k)
    for temperature in (0.0, SAMPLED) if scope.both else (0.0,):
        yield _contest("k", scope, target, ways, temperature=temperature)


def _sizes(scope: Scope, facts: Facts, notes: list[str]) -> Iterator[Contest]:
    from specdec.checkpoints.bundled import DRAFTS, TARGETS

    for target in scope.targets or TARGETS:
        ways = tuple(_way(draft, scope) for draft in scope.drafts or DRAFTS)
        yield _contest("sizes", scope, target, ways)


def _lengths(scope: Scope, facts: Facts, notes: list[str]) -> Iterator[Contest]:
    """With peers, their plain decoding too: reading the prompt is theirs alone."""
    target, draft = _pair(scope)
    theirs = (Way("transformers"), Way("llama.cpp")) if "peers" in scope.suites else ()
    longest = facts.context_length(target) - scope.tokens
    left_out = [length for length in scope.lengths if length > longest]
    for length in scope.lengths:
        if length <= longest:
            yield _contest("prompt-length", scope, target, (_way(draft, scope), *theirs), prompt_tokens=length)
    if left_out:
        notes.append(
            f"Prompts of {', '.join(map(str, left_out))} tokens with {scope.tokens} behind them do not fit the "
            f"{facts.context_length(target)} tokens of {target}'s context and were left out."
        )


def _kinds(scope: Scope, facts: Facts, notes: list[str]) -> Iterator[Contest]:
    """Stories by the pair; the rest by a model that follows instructions, unless a target was named."""
    target, draft = _pair(scope)
    instruct = (target, draft) if scope.targets else (INSTRUCT, "ngram")
    for kind in PROMPTS:
        model, drafter = (target, draft) if kind == "story" else instruct
        if scope.targets or facts.here(model):
            yield _contest("kinds", scope, model, (_way(drafter, scope),), kind=kind)
        else:
            notes.append(
                f"{model} is not on this machine (python -m specdec fetch {model}): prompts of the kinds "
                f"{', '.join(list(PROMPTS)[1:])} were left out."
            )


def _temperatures(scope: Scope, facts: Facts, notes: list[str]) -> Iterator[Contest]:
    target, draft = _pair(scope)
    for temperature in scope.temperatures:
        yield _contest("temperature", scope, target, (_way(draft, scope),), temperature=temperature)


def _peers(scope: Scope, facts: Facts, notes: list[str]) -> Iterator[Contest]:
    """The same pair, greedy, in other engines; lookups too, with the same k."""
    target, draft = _pair(scope)
    drafts = dict.fromkeys((draft, "ngram"))
    ways = tuple(_way(name, scope) for name in drafts)
    theirs = tuple(Way("transformers", name, _k(name, scope)) for name in ("none", *drafts))
    more = tuple(Way("llama.cpp", name, _k(name, scope)) for name in ("none", "ngram"))
    yield _contest("peers", scope, target, (*ways, *theirs, *more))


def _contest(
    suite: Suite,
    scope: Scope,
    target: str,
    ways: tuple[Way, ...],
    kind: str = "story",
    temperature: float = 0.0,
    prompt_tokens: int | None = None,
) -> Contest:
    prompts = min(scope.prompts, len(PROMPTS[kind]))
    work = Work(target, kind, temperature, scope.tokens, prompts, prompt_tokens)
    return Contest(suite, work, tuple(dict.fromkeys((*PLAIN, *ways))), scope.repeat)


def _pair(scope: Scope) -> tuple[str, str]:
    """The first target, and its draft: the first one named, the bundled one, or n-grams for another kind of target."""
    from specdec.checkpoints.bundled import DEFAULT_DRAFT, DEFAULT_TARGET, TARGETS

    target = scope.targets[0] if scope.targets else DEFAULT_TARGET
    return target, scope.drafts[0] if scope.drafts else DEFAULT_DRAFT if target in TARGETS else "ngram"


def _way(draft: str, scope: Scope) -> Way:
    return Way(draft=draft, k=_k(draft, scope))


def _k(draft: str, scope: Scope) -> Lookahead:
    """The lookahead of a suite that does not vary it."""
    if draft == "none":
        return 0
    return scope.k or USUAL_K.get(draft, MODEL_K)
