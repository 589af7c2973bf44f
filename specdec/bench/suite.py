"""The whole suite: plan, measure, keep what is done, show it. Ctrl-C keeps the contests that were finished."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from specdec.bench.figures import Row, rows
from specdec.bench.measure import take_turns
from specdec.bench.plan import Contest, Plan, Scope, Way, plan
from specdec.bench.report import write_report
from specdec.bench.results import Results, ratios
from specdec.bench.screen import Bar, progress_bar, show
from specdec.bench.shelf import Player, Shelf
from specdec.bench.surroundings import busy, commit, surroundings
from specdec.errors import MissingExtraError, UnsupportedError

RESULTS, REPORT = "results.json", "report.html"


def run_suite(
    scope: Scope, folder: Path, command: str, compare: Path | None = None, shelf: Shelf | None = None
) -> Results:
    """Measure all of `scope`; results.json grows in `folder` with every contest, report.html follows at the end.

    `compare` names the results.json of an earlier run. LoadError where a model cannot be had, RequestError where
    `compare` is something else. Whatever ends the run, KeyboardInterrupt included, finds all contests that were
    finished written and shown.
    """
    earlier = None if compare is None else Results.load(compare)
    shelf = shelf or Shelf(scope.threads)
    todo = plan(scope, shelf)
    results = _begin(scope, command, todo)
    try:
        for so_far in _measured(todo, shelf, results):
            results = so_far
            results.save(folder / RESULTS)
    finally:
        if results.rows:
            write_report(results, folder / REPORT)
            show(results, {} if earlier is None else ratios(results, earlier))
    return results


def _begin(scope: Scope, command: str, todo: Plan) -> Results:
    """Results without rows yet."""
    machine = surroundings(scope.threads)
    notes = tuple(filter(None, (busy(machine), *todo.notes)))
    return Results(command, datetime.now(UTC).isoformat(timespec="seconds"), commit(), machine, {}, notes, (), False)


def _measured(todo: Plan, shelf: Shelf, results: Results) -> Iterator[Results]:
    """The results so far, after every contest."""
    with progress_bar(sum(contest.runs for contest in todo.contests)) as bar:
        for index, contest in enumerate(todo.contests, 1):
            bar.begin(contest)
            players, notes = _players(contest, shelf)
            found = _contest(contest, players, shelf, bar)
            bar.step(contest.runs - len(players) * contest.work.prompts * contest.repeat)
            results = replace(
                results,
                rows=(*results.rows, *found),
                notes=tuple(dict.fromkeys((*results.notes, *notes))),
                parameters={**results.parameters, **_parameters(contest, shelf)},
                complete=index == len(todo.contests),
            )
            yield results


def _players(contest: Contest, shelf: Shelf) -> tuple[dict[Way, Player], list[str]]:
    """Who can take part, and a sentence for each other engine that cannot."""
    players: dict[Way, Player] = {}
    notes = []
    for way in contest.ways:
        try:
            players[way] = shelf.player(contest.work.target, way)
        except (MissingExtraError, UnsupportedError) as error:
            if way.engine == "specdec":
                raise
            notes.append(f"{way.engine} was left out: {error}.")
    return players, notes


def _contest(contest: Contest, players: dict[Way, Player], shelf: Shelf, bar: Bar) -> list[Row]:
    turns = []
    for turn in take_turns(contest, players, shelf.prompts(contest.work)):
        turns.append(turn)
        bar.step()
    return rows(contest.suite, contest.work, turns)


def _parameters(contest: Contest, shelf: Shelf) -> dict[str, int]:
    drafts = {way.draft for way in contest.ways} - {"none", "ngram"}
    return {name: shelf.parameters(name) for name in sorted({contest.work.target, *drafts})}
