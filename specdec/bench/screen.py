"""What a terminal shows: how far the suite is, and a table for each suite when it is over."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from specdec.bench.figures import Row, Spread
from specdec.bench.plan import Contest, Way, Work
from specdec.bench.results import Results

HEADINGS = (
    "way",
    "tokens/s",
    "speed-up",
    "theory",
    "TTFT",
    "ITL p50 / p95",
    "α",
    "rate",
    "τ",
    "draft / verify",
    "same",
    "MB",
)
PIPE_WIDTH = 160
MEANINGS = (
    "speed-up: against the faster plain way (*), median of repetitions and its range · theory: from the measured α, c, "
    "v · ITL: tokens of one round arrive together · rate: accepted ÷ drafted · α: accepted ÷ judged · "
    "draft / verify: shares of decoding time · same: the text is that of bit-exact plain decoding "
    "· MB: most memory held, models of all ways included"
)

Ratios = Mapping[tuple[str, Work, Way], float]


class Bar:
    """Counts continuations. Silent where standard error is no terminal."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=total)

    def begin(self, contest: Contest) -> None:
        """Name what is measured now."""
        self._progress.update(self._task, description=escape(title(contest.suite, contest.work)))

    def step(self, runs: int = 1) -> None:
        """So many continuations more are done, or left out."""
        self._progress.advance(self._task, runs)


@contextmanager
def progress_bar(total: int) -> Iterator[Bar]:
    """A bar while the suite runs."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        yield Bar(bars, total)


def show(results: Results, ratios: Ratios) -> None:
    """Print a table for each contest, and the notes."""
    console = Console() if sys.stdout.isatty() else Console(width=PIPE_WIDTH)
    machine = results.machine
    console.print(
        escape(
            f"{machine['processor']}, {machine['threads']} of {machine['cores']} cores, {machine['blas']}, "
            f"memory {machine['bandwidth_gb_s']:.0f} GB/s"
        ),
        style="bold",
        highlight=False,
    )
    for suite, work in dict.fromkeys((row.suite, row.work) for row in results.rows):
        rows = [row for row in results.rows if (row.suite, row.work) == (suite, work)]
        console.print(_table(title(suite, work), rows, ratios))
    for line in (*results.notes, *((MEANINGS,) if results.rows else ())):
        console.print(escape(line), style="dim", highlight=False)


def title(suite: str, work: Work) -> str:
    """What a contest is about."""
    length = "" if work.prompt_tokens is None else f" of {work.prompt_tokens} tokens"
    how = f"temperature {work.temperature:g}" if work.temperature else "greedy"
    return f"{suite}: {work.target}, {work.kind}{length}, {how}"


def _table(name: str, rows: list[Row], ratios: Ratios) -> Table:
    table = Table(title=escape(name), title_justify="left", title_style="bold")
    headings = (*HEADINGS, "× earlier") if ratios else HEADINGS
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "way" else "right", no_wrap=heading != "way")
    for row in rows:
        earlier = ratios.get((row.suite, row.work, row.way))
        more = () if not ratios else ("–" if earlier is None else f"{earlier:.2f}",)
        table.add_row(*map(escape, (*cells(row), *more)))
    return table


def cells(row: Row) -> tuple[str, ...]:
    """A row as text, in the order of HEADINGS."""
    figures, drafts = row.figures, row.way.engine == "specdec" and row.way.draft != "none"
    return (
        row.way.label + (" *" if row.baseline else ""),
        f"{figures.tokens_per_second.median:.1f}",
        _spread(figures.speed_up),
        "–" if figures.theory is None else f"{figures.theory.speed_up:.2f}",
        f"{1e3 * figures.ttft_s.median:.0f} ms",
        f"{1e3 * figures.itl_p50_s:.1f} / {1e3 * figures.itl_p95_s:.1f} ms",
        f"{figures.alpha:.3f}" if drafts else "–",
        f"{figures.acceptance_rate:.3f}" if drafts else "–",
        f"{figures.mean_acceptance_length:.2f}",
        f"{figures.shares[0]:.0%} / {figures.shares[1]:.0%}" if row.way.engine == "specdec" else "–",
        {None: "–", True: "yes", False: "NO"}[figures.same_text],
        f"{figures.peak_mb:.0f}" if figures.peak_mb else "–",
    )


def _spread(spread: Spread) -> str:
    return f"{spread.median:.2f} ({spread.low:.2f} … {spread.high:.2f})"
