"""What can be asked of `bench`. Imports no NumPy."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from specdec.bench.plan import FULL, QUICK, SUITES, Scope
from specdec.cli.values import lookahead, positive
from specdec.config import LIMITS, Lookahead, require_lookahead, require_number

OWN = ("suites", "targets", "drafts", "ks", "lengths", "temperatures", "tokens", "prompts", "repeat", "threads")


def add_options(parser: argparse.ArgumentParser) -> None:
    """All options of `bench`; what is not given is None, so that --quick and the usual values can fill it."""
    _add_what(parser.add_argument_group("what to measure"))
    _add_how_much(
        parser.add_argument_group("how much", f"Left alone: {_amounts(FULL)}; with --quick {_amounts(QUICK)}.")
    )
    group = parser.add_argument_group("output", "A table on standard output; results.json and report.html in a folder.")
    group.add_argument(
        "--out",
        type=Path,
        default=Path("bench-results"),
        metavar="FOLDER",
        help="where results.json and report.html go (default: %(default)s)",
    )
    group.add_argument(
        "--compare", type=Path, metavar="FILE", help="a results.json of an earlier run: show tokens/s over those in it"
    )


def scope(options: argparse.Namespace) -> Scope:
    """The suite's own settings; ConfigError where a value is out of range."""
    given: dict[str, Any] = {name: _frozen(value) for name in OWN if (value := getattr(options, name)) is not None}
    for value in given.get("ks", ()):
        require_lookahead(value)
    for value in given.get("temperatures", ()):
        require_number("temperature", value, 0.0, 100.0)
    asked = replace(QUICK if options.quick else FULL, **given)
    if "ks" in given:
        asked = replace(asked, k=_first_number(asked.ks))
    return replace(asked, suites=(*asked.suites, "peers")) if options.peers else asked


def _add_what(group: Any) -> None:
    group.add_argument(
        "--suite",
        dest="suites",
        nargs="+",
        choices=SUITES,
        help="k: lookaheads; sizes: every draft with every target; prompt-length; kinds: stories, chat, code, lists, "
        "summaries; temperature (default: all)",
    )
    group.add_argument(
        "--target", dest="targets", nargs="+", metavar="MODEL", help="targets; all but `sizes` take the first one"
    )
    group.add_argument(
        "--draft",
        dest="drafts",
        nargs="+",
        metavar="MODEL",
        help="drafts, or `ngram`; all but `sizes` take the first one (default: the bundled ones, ngram for a target "
        "that is not bundled)",
    )
    group.add_argument(
        "--peers",
        action="store_true",
        help="measure transformers and llama.cpp too, where they are installed, on the same weights and threads; plain "
        "in `prompt-length`, with drafts in a suite of their own",
    )
    group.add_argument(
        "-k",
        dest="ks",
        nargs="+",
        type=lookahead,
        metavar="K",
        help=f"lookaheads, 0 to {LIMITS.max_speculative_tokens} or `auto`; suites that do not vary k take the first "
        "number above 0",
    )
    group.add_argument(
        "--lengths", nargs="+", type=positive, metavar="N", help="tokens of the prompts of `prompt-length`"
    )
    group.add_argument(
        "--temperature", dest="temperatures", nargs="+", type=float, metavar="T", help="of `temperature`"
    )


def _add_how_much(group: Any) -> None:
    group.add_argument("--quick", action="store_true", help="the outlines of everything, in about a minute")
    for name, text in (
        ("tokens", "to generate behind each prompt"),
        ("prompts", "prompts of each kind, at most as many as there are"),
        ("repeat", "repetitions, of which the median counts"),
    ):
        group.add_argument(f"--{name}", type=positive, metavar="N", help=text)
    group.add_argument(
        "--threads", type=positive, metavar="N", help="cores for the arithmetic (default: all this process may use)"
    )


def _amounts(usual: Scope) -> str:
    return f"{usual.prompts} prompts, {usual.tokens} tokens, {usual.repeat} repetitions"


def _frozen(value: Any) -> Any:
    return tuple(dict.fromkeys(value)) if isinstance(value, list) else value


def _first_number(ks: tuple[Lookahead, ...]) -> Lookahead | None:
    return next((k for k in ks if isinstance(k, int) and k > 0), None)
