"""What the page is told: a fold of a run's records into lines of JSON, one event a line.

The page keeps what it has drawn and reads only lines that are new, so that the text of events grows at its end and
never changes before it. Model and user text travels in JSON strings and nowhere else; lines are ASCII without `<`,
so that none can be taken for markup on its way. Figures come from `specdec.records.Stats`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from specdec.records import Candidate, Finished, Proposal, Record, Round, Started, Stats, Token
from specdec.serving import GenerationRequest

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


def fold(records: Iterable[Record], request: GenerationRequest) -> Iterator[str]:
    """One line for each record."""
    stats, names = Stats(), SAMPLED
    for record in records:
        if isinstance(record, Started):
            stats, names = Stats(prompt_tokens=len(record.prompt_ids)), laws(record)
            yield line("start", prompt=request.prompt, way=way(request), about=about(record), note=record.note)
        elif isinstance(record, Round):
            stats = stats.add(record)
            yield line("round", **_round(record, stats, names))
        else:
            yield line("end", reason=record.reason, text=ending(record, request, stats))


def _round(step: Round, stats: Stats, names: Laws) -> dict[str, Any]:
    told = {"n": step.index, "chips": chips(step, names), "figures": figures(stats), "points": points(step, stats)}
    told["seconds"] = [_short(seconds) for seconds in (step.draft_s, step.verify_s, step.sample_s)]
    return told | ({"fault": step.fault} if step.fault else {})


def line(event: str, **values: Any) -> str:
    """An event as one line of ASCII JSON that holds no `<`."""
    text = json.dumps({"event": event, **values}, separators=(",", ":"))
    return text.replace("<", "\\u003c") + "\n"


def is_round(event: str) -> bool:
    """Whether a line tells of a round, the only kind that may wait to be sent with others."""
    return event.startswith('{"event":"round"')


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
    chip = [KINDS[kind], text, *(None if number is None else _short(number) for number in numbers), lists]
    while chip[-1] is None:
        chip.pop()
    return chip


def _list(top: tuple[Candidate, ...], token: int) -> list[str | float]:
    """[place of the token itself or −1, text, probability, text, probability, …], flat and without what rounds to
    nothing, since a run has a thousand of them."""
    shown = [entry for entry in top if entry.probability >= LEAST]
    place = next((i for i, entry in enumerate(shown) if entry.id == token), -1)
    return [place, *(value for entry in shown for value in (entry.text, _short(entry.probability, 3)))]


def _short(number: float, digits: int = 4) -> float:
    return float(f"{number:.{digits}g}")


def figures(stats: Stats) -> dict[str, str]:
    """The large figures, as they are read."""
    return {
        "speed": f"{stats.tokens_per_second:.0f}" if stats.decode_s else "–",
        "acceptance": f"{100 * stats.acceptance_rate:.0f}" if stats.drafted else "–",
        "length": f"{stats.mean_acceptance_length:.2f}" if stats.rounds else "–",
        "rounds": f"{stats.rounds:,}",
        "ttft": f"{1000 * stats.ttft_s:.0f}" if stats.rounds else "–",
    }


def points(step: Round, stats: Stats) -> list[float | None]:
    """What the charts gain with a round: [its acceptance rate, the running one, tokens so far, tokens/s so far]."""
    alone = Stats().add(step)
    return [
        _short(alone.acceptance_rate) if alone.drafted else None,
        _short(stats.acceptance_rate) if stats.drafted else None,
        stats.tokens,
        _short(stats.tokens_per_second),
    ]


def way(request: GenerationRequest) -> str:
    """How drafts are judged: "greedy", or by which acceptance rule."""
    return "greedy" if request.params.greedy else request.speculation.acceptance


def about(started: Started) -> str:
    """One line on what is in force."""
    drafter = f"drafts by {started.drafter}" if started.drafter not in ("", "none") else "no drafts"
    return f"{started.target} · {drafter} · seed {started.seed} · {EXACTNESS[started.exactness]}"


def ending(finished: Finished, request: GenerationRequest, stats: Stats) -> str:
    """One sentence on why the run ended."""
    if finished.reason != "length":
        return REASONS[finished.reason]
    if stats.tokens < request.params.max_tokens:
        return f"The time limit was reached after {stats.tokens:,} tokens."
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
