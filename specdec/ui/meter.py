"""A run's figures and the points of its charts, as it grows. All of them are those of `specdec.stats.Stats`.

Whatever is measured in time leaves the prompt and, as soon as there is a second one, the first round out: that is the
warm-up. What is counted is counted from the first round on.
"""

from collections import deque

from specdec.records import Round
from specdec.stats import Stats
from specdec.ui.verdict import outcome_of, speed_up

RECENT = 8  # rounds that "now" looks back on
NOTHING = Stats()
DASH = "–"
VERSUS = {"faster": "×", "even": "×, as fast as plain", "slower": "×, slower than plain"}


class Meter:
    """Folds rounds. `plain`, where it is known: the plain lane that the speed-up is told against."""

    def __init__(self, plain: Stats | None = None) -> None:
        self.plain = plain
        self.stats = Stats()
        self.timed = Stats()
        self._recent = deque([self.timed], maxlen=RECENT + 1)

    @property
    def warm(self) -> bool:
        """Whether there is a round behind the warm-up."""
        return self.stats.rounds > 1

    def add(self, step: Round) -> None:
        """Take one more round in."""
        if self.stats.rounds == 1:
            self.timed = Stats()
            self._recent.clear()
            self._recent.append(self.timed)
        self.stats = self.stats.add(step)
        self.timed = self.timed.add(step)
        self._recent.append(self.timed)

    def figures(self) -> dict[str, str]:
        """The large figures, as they are read: speeds in tokens/s, shares and rates in percent, times in ms."""
        stats, timed = self.stats, self.timed
        return {
            "speed": speed(timed),
            "now": speed(timed, self._recent[0]),
            **versus(self.plain, timed),
            "acceptance": _percent(stats.acceptance_rate) if stats.drafted else DASH,
            "length": f"{stats.mean_acceptance_length:.2f}" if stats.rounds else DASH,
            **_shares(timed),
            "rounds": f"{stats.rounds:,}",
            "ttft": f"{1000 * stats.ttft_s:.0f}" if stats.rounds else DASH,
            "prefill": f"{1000 * stats.prefill_s:.0f}" if stats.rounds else DASH,
        }

    def points(self, step: Round) -> list[float | None]:
        """What the charts gain with `step`, the last round taken in: [its acceptance rate, the running one, drafts
        accepted, tokens so far, tokens/s so far]; None where there is nothing to draw."""
        alone = Stats().add(step)
        return [
            short(alone.acceptance_rate) if alone.drafted else None,
            short(self.stats.acceptance_rate) if self.stats.drafted else None,
            alone.accepted if alone.drafted else None,
            self.stats.tokens,
            short(self.timed.tokens_per_second) if self.warm else None,
        ]


def speed(stats: Stats, earlier: Stats = NOTHING) -> str:
    """Tokens a second, as it is read, of the rounds that were added to `earlier`."""
    return f"{stats.tokens_per_second_since(earlier):.0f}" if stats.decode_s > earlier.decode_s else DASH


def versus(plain: Stats | None, speculative: Stats) -> dict[str, str]:
    """{speedup, versus}: how many times as fast as plain decoding, and its unit, which says so where that is not."""
    times = speed_up(plain, speculative) if plain else 0.0
    return {"speedup": f"{times:.2f}", "versus": VERSUS[outcome_of(times)]} if times else _UNKNOWN


def short(number: float, digits: int = 4) -> float:
    """Rounded to so many digits: what nobody could see is not sent."""
    return float(f"{number:.{digits}g}")


def _shares(stats: Stats) -> dict[str, str]:
    """Whole percents that come to 100."""
    if not stats.decode_s:
        return dict.fromkeys(("draft", "verify", "rest"), DASH)
    draft, verify = _percent(stats.draft_share), _percent(stats.verify_share)
    return {"draft": draft, "verify": verify, "rest": str(100 - int(draft) - int(verify))}


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


_UNKNOWN = {"speedup": DASH, "versus": VERSUS["faster"]}
