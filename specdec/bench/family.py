"""Every draft with every target: how often its tokens are accepted, and what that is worth.

    python -m specdec.bench.family --threads 2
    python -m specdec.bench.family --draft specdec-draft-2x128 -k 1 2 3 4 5 6 8

Each prompt is continued by plain decoding and by every draft and k in turn, so that all of them meet the same machine;
the speed-up is the median over repetitions of tokens per second of decoding over those of plain decoding. Prefill and
a warm-up are left out. With `--corpus` it also counts how much of what a target wrote stands in a text word for word.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from specdec.bench.prompts import STORIES
from specdec.config import SamplingParams, SpeculativeConfig
from specdec.errors import SpecdecError
from specdec.records import Stats, ratio
from specdec.threads import calm_blas
from specdec.trace import Trace

if TYPE_CHECKING:
    from specdec.checkpoints import LanguageModel

TEMPERATURES = (0.0, 0.8)
GRAM = 20  # tokens
HEADINGS = ("target", "draft", "k", "T", "α", "acceptance rate", "τ", "tokens/s", "speed-up")

Generate = Callable[[str, SamplingParams], Trace]


@dataclass(frozen=True, slots=True)
class Measured:
    """Totals of one way of decoding over all prompts of one repetition."""

    tokens: int
    seconds: float
    rounds: int
    drafted: int
    accepted: int
    rejected: int

    @classmethod
    def of(cls, runs: Sequence[Stats]) -> "Measured":
        """Add up runs."""
        names = ("tokens", "decode_s", "rounds", "drafted", "accepted", "rejected")
        return cls(*(sum(getattr(run, name) for run in runs) for name in names))

    @property
    def speed(self) -> float:
        """Tokens per second."""
        return ratio(self.tokens, self.seconds)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; 1 after a sentence where a model cannot be had."""
    options = _options(argv)
    calm_blas()
    try:
        _print_tables(options)
    except (SpecdecError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m specdec.bench.family", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--target", nargs="+", metavar="MODEL", help="default: the bundled targets")
    parser.add_argument("--draft", nargs="+", metavar="MODEL", help="default: the bundled drafts")
    parser.add_argument("-k", nargs="+", type=int, default=[4], metavar="K", help="tokens drafted a round (default: 4)")
    parser.add_argument("--tokens", type=int, default=128, metavar="N", help="to generate (default: 128)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="of which the median counts (default: 3)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--corpus", type=Path, nargs="+", metavar="FILE", help="count what is repeated from it")
    return parser.parse_args(argv)


def _print_tables(options: argparse.Namespace) -> None:
    from specdec.checkpoints import known_models, load_model

    bundled = [model for model in known_models() if model.kind == "bundled" and model.path is not None]
    targets = options.target or [model.name for model in bundled if model.role == "target"]
    drafts = options.draft or [model.name for model in bundled if model.role == "draft"]
    load = cache(lambda name: load_model(name, threads=options.threads))
    print(
        f"{len(STORIES)} prompts × {options.tokens} tokens, {options.threads} threads, {options.repeat} repetitions\n"
    )
    print(_row(HEADINGS), _row("---" for _ in HEADINGS), sep="\n")
    written = {target: list(_compare(load(target), [load(draft) for draft in drafts], options)) for target in targets}
    if options.corpus:
        texts = "".join(file.read_text(encoding="utf-8") for file in options.corpus)
        for target, ids in written.items():
            share = repeated(load(target), ids, texts)
            print(
                f"\n{share:.1%} of the {GRAM}-token runs that {target} wrote stand in {len(texts):,} characters of text"
            )


def _compare(
    target: "LanguageModel", drafts: list["LanguageModel"], options: argparse.Namespace
) -> Iterator[list[int]]:
    """Print the rows of a target; yields the ids that plain decoding wrote."""
    ways = _ways(target, drafts, options.k)
    for temperature in TEMPERATURES:
        params = [
            SamplingParams(temperature=temperature, max_tokens=options.tokens, seed=i) for i in range(len(STORIES))
        ]
        for way in ways.values():
            way(STORIES[0], params[0])
        rounds = [_take_turns(ways, params) for _ in range(options.repeat)]
        for name in ways:
            print(_row(_cells(target.name, name, temperature, rounds)))
        yield from (list(way.ids) for way in (ways["none", 0](*pair) for pair in zip(STORIES, params, strict=True)))


def _ways(target: "LanguageModel", drafts: list["LanguageModel"], ks: list[int]) -> dict[tuple[str, int], Generate]:
    """The ways of decoding by draft and k; plain decoding is draft `none`."""
    from specdec.decoding import Engine, ModelDrafter

    def way(engine: Engine, k: int) -> Generate:
        return lambda prompt, params: engine.generate(prompt, params, SpeculativeConfig(num_speculative_tokens=k))

    plain = {("none", 0): way(Engine(target), 0)}
    return plain | {(draft.name, k): way(Engine(target, ModelDrafter(draft)), k) for draft in drafts for k in ks}


def _take_turns(ways: dict[tuple[str, int], Generate], params: list[SamplingParams]) -> dict[tuple[str, int], Measured]:
    """One repetition: all prompts, each continued in every way before the next."""
    runs: dict[tuple[str, int], list[Stats]] = {name: [] for name in ways}
    for prompt, how in zip(STORIES, params, strict=True):
        for name, way in ways.items():
            runs[name].append(way(prompt, how).stats)
    return {name: Measured.of(stats) for name, stats in runs.items()}


def _cells(
    target: str, way: tuple[str, int], temperature: float, rounds: list[dict[tuple[str, int], Measured]]
) -> Iterator[str]:
    draft, k = way
    one = rounds[0][way]
    speed = statistics.median(measured[way].speed for measured in rounds)
    gain = statistics.median(measured[way].speed / measured["none", 0].speed for measured in rounds)
    yield from (target, draft, str(k), f"{temperature:g}")
    yield f"{ratio(one.accepted, one.accepted + one.rejected):.3f}" if k else "–"
    yield f"{ratio(one.accepted, one.drafted):.3f}" if k else "–"
    yield from (f"{ratio(one.tokens, one.rounds):.2f}", f"{speed:.0f}", f"{gain:.2f}")


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def repeated(model: "LanguageModel", runs: list[list[int]], text: str) -> float:
    """Share of the runs of `GRAM` tokens that stand in `text`; by their text, so that token borders do not matter."""
    if model.tokenizer is None:
        return 0.0
    grams = [ids[i : i + GRAM] for ids in runs for i in range(len(ids) - GRAM + 1)]
    return ratio(sum(model.tokenizer.decode(gram) in text for gram in grams), len(grams))


if __name__ == "__main__":
    sys.exit(main())
