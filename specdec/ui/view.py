"""What the page is told: a fold of a run's records into lines of JSON, one event a line.

The page keeps what it has drawn and reads only lines that are new, so that the text of events grows at its end and
never changes before it. Model and user text travels in JSON strings and nowhere else; lines are ASCII without `<`,
so that none can be taken for markup on its way. Figures come from `meter.py`.
"""

import json
from collections.abc import Generator, Iterable, Mapping
from typing import Any

from specdec.config import LIMITS
from specdec.records import Candidate, Finished, Proposal, Record, Round, Started, Token
from specdec.serving import GenerationRequest
from specdec.stats import Stats
from specdec.ui.meter import Meter, short

Chip = list[Any]
Laws = tuple[str, str]

KINDS = {"accepted": "a", "rejected": "r", "recovered": "c", "bonus": "b", "plain": "p", "discarded": "d"}
SAMPLED: Laws = ("p", "r")
LEAST = 0.0005  # probabilities below this would read 0.000
REASONS = {
    "eos": "The model ended its text.",
    "stop": "A stop string was reached.",
    "context": "The model's context is full.",
    "cancelled": "Stopped.",
}
EXACTNESS = {"bitwise": "exact bit for bit", "near-ties": "exact up to near-ties", "off": "exactness off"}


def fold(records: Iterable[Record], request: GenerationRequest, meter: Meter) -> Generator[str, None, list[Record]]:
    """One line for each record but the last: what there is to say of an end is in `traces.ending`. All records are
    returned; `meter` has then taken in every round."""
    kept: list[Record] = []
    told: dict[str, str] = {}
    names = SAMPLED
    for record in records:
        kept.append(record)
        if isinstance(record, Started):
            names = laws(record)
            if not drafts(record):
                meter.plain = None
            yield line("start", **_start(record, request, meter))
        elif isinstance(record, Round):
            meter.add(record)
            yield line("round", **_round(record, meter, names, told))
    return kept


def _start(started: Started, request: GenerationRequest, meter: Meter) -> dict[str, Any]:
    """With `plain`, the speed of the plain lane so far known, and `k`, the drafts a round where that is fixed."""
    k = started.settings.get("lookahead")
    return {
        "prompt": request.prompt,
        "way": way(request),
        "about": about(started),
        "seed": started.seed,
        "note": started.note,
        "drafts": drafts(started),
        "k": k if isinstance(k, int) and 0 <= k <= LIMITS.max_speculative_tokens else None,
        "plain": short(meter.plain.tokens_per_second) if meter.plain else None,
    }


def _round(step: Round, meter: Meter, names: Laws, told: dict[str, str]) -> dict[str, Any]:
    """A round; of the figures only those that `told`, which this keeps, has otherwise."""
    figures = meter.figures()
    fresh = {name: text for name, text in figures.items() if told.get(name) != text}
    told.update(fresh)
    said = {"n": step.index, "chips": chips(step, names), "figures": fresh, "points": meter.points(step)}
    said["seconds"] = [short(seconds) for seconds in (step.draft_s, step.verify_s, step.sample_s)]
    return said | {name: text for name in ("fault", "paused") if (text := getattr(step, name))}


def line(event: str, **values: Any) -> str:
    """An event as one line of ASCII JSON that holds no `<`."""
    text = json.dumps({"event": event, **values}, separators=(",", ":"))
    return text.replace("<", "\\u003c") + "\n"


def is_round(event: str) -> bool:
    """Whether a line tells of a round, here or in the plain lane: these may wait to be sent with others."""
    return event.startswith(('{"event":"round"', '{"event":"plain"'))


def laws(started: Started) -> Laws:
    """What the lists of a run hold, (a draft's or a bonus', a recovered token's): "p" the target's probabilities, "r"
    the residual max(0, p − q), "s" the softmax that greedy takes the arg max of."""
    params = started.settings.get("params")
    if isinstance(params, Mapping) and (params.get("temperature") == 0 or params.get("top_k") == 1):
        return "s", "s"
    return ("p", "p") if started.settings.get("acceptance") == "match" else SAMPLED


def chips(step: Round, names: Laws = SAMPLED) -> list[Chip]:
    """The tokens of a round in reading order: kept drafts, the refused one, its correction, those never judged."""
    judged = [_draft(draft, names) for draft in step.proposals if draft.outcome != "discarded"]
    own = [_own(token, names) for token in step.tokens[step.accepted :]]
    unread = [_draft(draft, names) for draft in step.proposals if draft.outcome == "discarded"]
    return judged + own + unread


def _draft(draft: Proposal, names: Laws) -> Chip:
    lists = {names[0]: _list(draft.target_top, draft.id), "q": _list(draft.draft_top, draft.id)}
    numbers = (draft.p, draft.q, draft.u, draft.acceptance)
    return _chip(draft.outcome, draft.text, numbers, lists if draft.target_top else None)


def _own(token: Token, names: Laws) -> Chip:
    lists = {names[token.source == "recovered"]: _list(token.top, token.id)}
    return _chip(token.source, token.text, (None, None, None, None), lists if token.top else None)


def _chip(kind: str, text: str, numbers: Iterable[float | None], lists: dict[str, Any] | None) -> Chip:
    """[kind, text, p, q, u, acceptance, lists by what they hold], without what is None at its end."""
    chip = [KINDS[kind], text, *(None if number is None else short(number) for number in numbers), lists]
    while chip[-1] is None:
        chip.pop()
    return chip


def _list(top: tuple[Candidate, ...], token: int) -> list[str | float]:
    """[place of the token itself or −1, text, probability, text, probability, …], flat and without what rounds to
    nothing, since a run has a thousand of them."""
    shown = [entry for entry in top if entry.probability >= LEAST]
    place = next((i for i, entry in enumerate(shown) if entry.id == token), -1)
    return [place, *(value for entry in shown for value in (entry.text, short(entry.probability, 3)))]


def way(request: GenerationRequest) -> str:
    """How drafts are judged: "greedy", or by which acceptance rule."""
    return "greedy" if request.params.greedy else request.speculation.acceptance


def drafts(started: Started) -> bool:
    """Whether anything drafts in this run."""
    return started.drafter not in ("", "none")


def about(started: Started) -> str:
    """One line on what is in force."""
    drafter = f"drafts by {started.drafter}" if drafts(started) else "no drafts"
    return f"{started.target} · {drafter} · seed {started.seed} · {EXACTNESS[started.exactness]}"


def reason_of(finished: Finished, request: GenerationRequest, stats: Stats) -> str:
    """One sentence on why the run ended."""
    if finished.reason != "length":
        return REASONS[finished.reason]
    if stats.tokens < request.params.max_tokens:
        return f"The time limit was reached after {stats.tokens:,} tokens."
    if stats.tokens == 1:
        return "The one token asked for is there."
    return f"All {stats.tokens:,} tokens asked for are there."


def model_label(name: str, parameters: int | None) -> str:
    """A model in a list: its name and how many parameters it has."""
    return f"{name} · {count(parameters)} params" if parameters else name


def count(parameters: int) -> str:
    """How many parameters, in three digits."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if parameters >= size:
            return f"{parameters / size:.3g} {unit}"
    return str(parameters)
