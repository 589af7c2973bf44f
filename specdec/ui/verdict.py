"""What is said of two lanes: which was faster, why, and whether both wrote the same. Sentences over two `Stats`.

Speed-up is tokens/s of one lane ÷ tokens/s of the other, prefill excluded. It is also τ ÷ (cost of a round in plain
steps), which is what the reason is made of.
"""

from specdec.serving import GenerationRequest
from specdec.stats import Stats, ratio
from specdec.trace import Trace

EVEN = 0.05  # closer to 1 than this, nobody has won
SPLITS = {"bitwise": "which must not happen: please report it", "near-ties": "near-ties may fall either way here"}
FEW = "Too few drafts were accepted"
SMALL = "The target is too small for drafting to pay"
WIDE = "Checking several tokens in a pass costs this target too much"
NOTHING = "Looking for drafts took time and found none"
NO_PROMISE = (
    "The texts may differ: under rejection sampling both are drawn from the same distribution, the target's own."
)


def verdict(plain: Trace, speculative: Trace, request: GenerationRequest) -> dict[str, str]:
    """{outcome, headline, reason, texts}; `request` is what was asked of both lanes."""
    one, two = plain.stats, speculative.stats
    texts = sameness(plain, speculative, request)
    if not (one.tokens and two.tokens):
        return {"outcome": "even", "headline": "No token was generated: nobody wins.", "reason": "", "texts": texts}
    times = speed_up(one, two)
    outcome = outcome_of(times)
    why = f"{cause(one, two)}. {account(one, two)}" if outcome == "slower" else account(one, two)
    return {"outcome": outcome, "headline": headline(times, outcome), "reason": why, "texts": texts}


def speed_up(plain: Stats, speculative: Stats) -> float:
    """How many times as fast as plain decoding; 0 where either lane has no time."""
    return ratio(speculative.tokens_per_second, plain.tokens_per_second)


def outcome_of(times: float) -> str:
    """Who won: "faster" and "slower" are said of speculative decoding, "even" is nobody."""
    return "even" if abs(times - 1) < EVEN else "faster" if times > 1 else "slower"


def headline(times: float, outcome: str) -> str:
    """The result in a few words."""
    if outcome == "even":
        return f"Speculative: {times:.2f} ×, as fast as plain here"
    return (
        f"Speculative: {times:.2g} × faster"
        if outcome == "faster"
        else f"Speculative: {times:.2g} ×, slower than plain here"
    )


def account(plain: Stats, speculative: Stats) -> str:
    """Where the result comes from: what a round brought, and what it cost in plain steps."""
    if not speculative.drafted:
        return "Nothing was drafted, so that both lanes did the same work."
    cost = ratio(_step(speculative), _step(plain))
    return (
        f"A round brought τ = {speculative.mean_acceptance_length:.2f} tokens and cost as much as {cost:.2f} plain "
        f"steps. Of the drafts judged, α = {_percent(speculative.alpha)} were accepted; drafting took "
        f"{_percent(speculative.draft_share)} of the time, checking {_percent(speculative.verify_share)}."
    )


def cause(plain: Stats, speculative: Stats) -> str:
    """Why it lost: the one of three things that would have helped most, had it been ideal."""
    if not speculative.drafted:
        return NOTHING
    beyond = speculative.verify_s - ratio(plain.verify_s, plain.rounds) * speculative.rounds
    gains = {
        FEW: ratio(speculative.drafted + speculative.rounds, speculative.tokens),
        SMALL: _without(speculative, speculative.draft_s),
        WIDE: _without(speculative, beyond),
    }
    return max(gains, key=gains.__getitem__)


def reason(plain: Stats, speculative: Stats) -> str:
    """The cause as a sentence, with the measured number that shows it."""
    why = cause(plain, speculative)
    tokens = ratio(speculative.drafted, speculative.rounds) + 1
    v = ratio(ratio(speculative.verify_s, speculative.rounds), ratio(plain.verify_s, plain.rounds))
    shown = {
        FEW: f", α = {_percent(speculative.alpha)}",
        SMALL: f": drafts took {_percent(speculative.draft_share)} of the time",
        WIDE: f": {tokens:.1f} tokens, {v:.1f} × the cost of one",
    }
    return f"{why}{shown.get(why, '')}."


def sameness(plain: Trace, speculative: Trace, request: GenerationRequest) -> str:
    """Whether both lanes wrote the same tokens, where that was promised."""
    if not (request.params.greedy or request.speculation.acceptance == "match"):
        return NO_PROMISE
    common = min(len(plain.ids), len(speculative.ids))
    pairs = zip(plain.ids, speculative.ids, strict=False)
    split = next((place for place, (one, two) in enumerate(pairs) if one != two), None)
    if split is not None:
        why = SPLITS.get(speculative.started.exactness, "exactness is off")
        return f"The lanes differ from token {split + 1} on ({why})."
    if len(plain.ids) == len(speculative.ids):
        return f"Both lanes: the same {common:,} tokens, token for token."
    return f"Both lanes: the same {common:,} tokens, token for token, as far as the shorter one went."


def _step(stats: Stats) -> float:
    """Seconds of a round."""
    return ratio(stats.decode_s, stats.rounds)


def _without(stats: Stats, seconds: float) -> float:
    """How many times faster a run would have been without these seconds."""
    return ratio(stats.decode_s, stats.decode_s - seconds)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
