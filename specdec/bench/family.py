"""Every draft with every target, greedy and sampled, as a Markdown table; and what a target repeats word for word.

    python -m specdec.bench.family --threads 2
    python -m specdec.bench.family --draft specdec-draft-2x128 -k 1 2 3 4 5 6 8

It measures as the suite does (`python -m specdec bench`). With `--corpus` it also counts how much of what a target
wrote stands in a text word for word.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from specdec.bench.plan import PLAIN, SAMPLED, Contest, Way, Work
from specdec.bench.prompts import STORIES
from specdec.errors import SpecdecError
from specdec.stats import ratio
from specdec.threads import calm_blas

if TYPE_CHECKING:
    from specdec.bench.figures import Row
    from specdec.bench.shelf import Shelf
    from specdec.checkpoints import LanguageModel

GRAM = 20  # tokens
HEADINGS = ("target", "draft", "k", "T", "α", "acceptance rate", "τ", "tokens/s", "speed-up")


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
    parser.add_argument("--threads", type=int, metavar="N", help="default: all cores")
    parser.add_argument("--corpus", type=Path, nargs="+", metavar="FILE", help="count what is repeated from it")
    return parser.parse_args(argv)


def _print_tables(options: argparse.Namespace) -> None:
    from specdec.bench.shelf import Shelf
    from specdec.checkpoints.bundled import DRAFTS, TARGETS

    shelf = Shelf(options.threads)
    ways = tuple(Way(draft=draft, k=k) for draft in options.draft or DRAFTS for k in options.k)
    texts = "".join(file.read_text(encoding="utf-8") for file in options.corpus or ())
    print(f"{len(STORIES)} prompts × {options.tokens} tokens, {options.repeat} repetitions\n")
    print(_line(HEADINGS), _line("---" for _ in HEADINGS), sep="\n")
    repetitions = []
    for target in options.target or TARGETS:
        written: list[list[int]] = []
        for temperature in (0.0, SAMPLED):
            work = Work(target, "story", temperature, options.tokens, len(STORIES))
            written += _compare(Contest("sizes", work, (*PLAIN, *ways), options.repeat), shelf)
        if texts:
            share = repeated(cast("LanguageModel", shelf.model(target)), written, texts)
            repetitions.append(
                f"\n{share:.1%} of the {GRAM}-token runs that {target} wrote stand in {len(texts):,} characters of text"
            )
    print(*repetitions, sep="\n")


def _compare(contest: Contest, shelf: "Shelf") -> list[list[int]]:
    """Print the rows of a contest, plain decoding's faster path first; the ids that plain decoding wrote."""
    from specdec.bench.figures import rows
    from specdec.bench.measure import take_turns

    players = {way: shelf.player(contest.work.target, way) for way in contest.ways}
    turns = list(take_turns(contest, players, shelf.prompts(contest.work)))
    for row in rows(contest.suite, contest.work, turns):
        if row.baseline or row.way.k:
            print(_line(_cells(row)))
    plain = [turn for turn in turns if turn.way == PLAIN[0] and turn.repetition == 0]
    return [[token.id for step in turn.rounds for token in step.tokens] for turn in plain]


def _cells(row: "Row") -> Iterator[str]:
    figures, k = row.figures, row.way.k
    yield from (row.work.target, row.way.draft, str(k), f"{row.work.temperature:g}")
    yield f"{figures.alpha:.3f}" if k else "–"
    yield f"{figures.acceptance_rate:.3f}" if k else "–"
    yield f"{figures.mean_acceptance_length:.2f}"
    yield from (f"{figures.tokens_per_second.median:.0f}", f"{figures.speed_up.median:.2f}")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def repeated(model: "LanguageModel", runs: list[list[int]], text: str) -> float:
    """Share of the runs of `GRAM` tokens that stand in `text`; by their text, so that token borders do not matter."""
    if model.tokenizer is None:
        return 0.0
    grams = [ids[i : i + GRAM] for ids in runs for i in range(len(ids) - GRAM + 1)]
    return ratio(sum(model.tokenizer.decode(gram) in text for gram in grams), len(grams))


if __name__ == "__main__":
    sys.exit(main())
