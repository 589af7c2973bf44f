"""What the page is told of a sweep: the points and the curve of its chart, rows of its tables, a sentence on the best.

Every figure is `Stats`'; only ratios to plain decoding and the theory's letters come from `sweep.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from specdec.ui.sweep import Run, Theory, Way, drafted, gain, plain_speed
from specdec.ui.verdict import EVEN, cause

Told = dict[str, Any]
DASH = "–"


def by_lookahead(runs: Sequence[Run], refused: Mapping[Way, str]) -> Told:
    """{rows, points, curve, letters, about} of one pair at several k; `refused` is empty, because nothing may fail."""
    theory = Theory.of(runs)
    tries = sorted(drafted(runs), key=_lookahead)
    most = max(map(_lookahead, tries), default=0)
    curve = [(k, round(theory.speed_up(k), 4)) for k in range(most + 1)] if tries else []
    return {
        "rows": [_plain_row(runs), *(_row(run, runs, theory) for run in tries)],
        "points": [(_lookahead(run), round(gain(run, runs), 4)) for run in tries],
        "curve": curve,
        "letters": {"alpha": theory.alpha, "c": theory.c, "row": max(0.0, theory.row)} if tries else None,
        "about": _about(runs, theory) if tries else "",
    }


def best_lookahead(runs: Sequence[Run], refused: Mapping[Way, str]) -> Told:
    """{outcome, text}: the k that was fastest, or why none was."""
    tries = drafted(runs)
    if not any(run.stats.tokens for run in tries):
        return {"outcome": "even", "text": "No token was generated: there is nothing to compare."}
    best = max(tries, key=lambda run: gain(run, runs))
    k = _lookahead(best)
    found = f"k = {k}, {_times(gain(best, runs))} plain (theory {_times(Theory.of(runs).speed_up(k))})"
    return _finding("k", found, best, runs)


def by_models(runs: Sequence[Run], refused: Mapping[Way, str]) -> Told:
    """{columns, rows} of a table, targets by drafts; a cell is {times, text, note}, or says why it is empty."""
    targets = list(dict.fromkeys(run.way.target for run in runs))
    ways = [way for way in (*(run.way for run in drafted(runs)), *refused) if way.target in targets]
    drafts = list(dict.fromkeys(way.draft for way in ways))
    cells = {(way.target, way.draft): {"text": DASH, "note": why} for way, why in refused.items()}
    cells |= {(run.way.target, run.way.draft): _cell(run, runs) for run in drafted(runs)}
    rows = [
        {
            "target": target,
            "plain": _speed(plain_speed(runs, target)),
            "cells": [cells.get((target, draft)) for draft in drafts],
        }
        for target in targets
    ]
    return {"columns": drafts, "rows": rows}


def best_models(runs: Sequence[Run], refused: Mapping[Way, str]) -> Told:
    """{outcome, text}: the pair with the largest speed-up, or why there is none."""
    tries = [run for run in drafted(runs) if run.stats.tokens]
    if not tries:
        why = next(iter(refused.values()), "No token was generated.")
        return {"outcome": "even", "text": f"No pair could be measured. {why}"}
    best = max(tries, key=lambda run: gain(run, runs))
    names = f"{best.way.draft} for {best.way.target}"
    found = f"{names}, {_times(gain(best, runs))} plain at {_speed(best.stats.tokens_per_second)}"
    return _finding("pair", found, best, runs)


def _finding(kind: str, found: str, best: Run, runs: Sequence[Run]) -> Told:
    """The result in a sentence, as honest as the measurement: near 1 nobody has won, below it plain has."""
    times = gain(best, runs)
    if times > 1 + EVEN:
        return {"outcome": "faster", "text": f"Best here: {found}."}
    if times > 1 - EVEN:
        return {"outcome": "even", "text": f"No {kind} is clearly faster than plain: at best {found}."}
    plain = next(run for run in runs if run.way == Way(best.way.target))
    why = cause(plain.stats, best.stats)
    reason = why[0].lower() + why[1:]
    return {
        "outcome": "slower",
        "text": f"No {kind} pays here: plain is fastest, because {reason}. Nearest: {found}.",
    }


def label(way: Way, *, models: bool) -> str:
    """A way in a few words."""
    name = "plain" if way.plain else way.draft if models else f"k = {way.lookahead}"
    return f"{way.target}, {name}" if models else name


def _lookahead(run: Run) -> int:
    return int(run.way.lookahead)


def _plain_row(runs: Sequence[Run]) -> list[str]:
    target = runs[0].way.target
    return ["plain", f"{plain_speed(runs, target):.0f}", _times(1), DASH, DASH, "1.00", "1.00", _times(1)]


def _row(run: Run, runs: Sequence[Run], theory: Theory) -> list[str]:
    """k, tokens/s, speed-up, α, draft acceptance rate, τ, v, theory."""
    stats, k = run.stats, _lookahead(run)
    return [
        str(k),
        f"{stats.tokens_per_second:.0f}",
        _times(gain(run, runs)),
        f"{stats.alpha:.2f}" if stats.drafted else DASH,
        f"{100 * stats.acceptance_rate:.0f} %" if stats.drafted else DASH,
        f"{stats.mean_acceptance_length:.2f}",
        f"{theory.cost(k + 1):.2f}",
        _times(theory.speed_up(k)),
    ]


def _about(runs: Sequence[Run], theory: Theory) -> str:
    """One line on what the curve is made of, and how steady the machine was."""
    speeds = [run.stats.tokens_per_second for run in runs if run.way.plain]
    steady = f"{min(speeds):.0f}–{max(speeds):.0f} tokens/s in {len(speeds)} runs" if len(speeds) > 1 else "one run"
    return (
        f"α = {theory.alpha:.2f} · c = {theory.c:.2f} · each further token in a pass costs {max(0.0, theory.row):.2f} "
        f"of a pass · plain: {steady}"
    )


def _cell(run: Run, runs: Sequence[Run]) -> Told:
    times = gain(run, runs)
    alpha = f"α {run.stats.alpha:.2f}" if run.stats.drafted else "nothing drafted"
    return {
        "times": round(times, 4),
        "text": _times(times),
        "note": f"{alpha}, {_speed(run.stats.tokens_per_second)}",
    }


def _speed(tokens_per_second: float) -> str:
    return f"{tokens_per_second:.0f} tokens/s" if tokens_per_second else DASH


def _times(ratio: float) -> str:
    return f"{ratio:.2f}\N{NO-BREAK SPACE}×"
