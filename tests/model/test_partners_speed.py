"""What partners are worth: `scripts/test tests/model/test_partners_speed.py -m load -s`, with nothing beside it."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import pytest

from specdec import Engine, ModelDrafter, SamplingParams, load_model
from specdec.checkpoints import DEFAULT_DRAFT, DEFAULT_TARGET
from specdec.model import partners

PROMPT = "Once upon a time there was a little dragon who was afraid of the dark."
COMPETITOR = "while True: pass"


class Away:
    """Stands in the team's place: everything goes to threads."""

    def multiply(self, *_: Any) -> bool:
        return False


@contextmanager
def competitor(busy: bool) -> Iterator[None]:
    """Another program that never waits, where it is wanted."""
    if not busy:
        yield
        return
    with subprocess.Popen([sys.executable, "-c", COMPETITOR]) as process:
        yield
        process.kill()


@pytest.mark.load
@pytest.mark.parametrize(("busy", "least"), [(False, 1.0), (True, 0.85)])
@pytest.mark.parametrize(("target", "tokens"), [(DEFAULT_TARGET, 128), ("smollm2-135m-instruct", 24)])
def test_partners_are_worth_having(
    target: str, tokens: int, busy: bool, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain and speculative decoding with partners and with threads alone, in turn: medians of nine pairs, greedy.

    Partners win where they have a core to themselves; beside a program that never waits they cost next to nothing.
    """
    model = load_model(target, threads=2)
    engines = {"plain": Engine(model)}
    if target == DEFAULT_TARGET:
        draft = load_model(DEFAULT_DRAFT, threads=2)
        engines["speculative"] = Engine(model, ModelDrafter(draft, num_speculative_tokens=3))
    team, params = partners.team, SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True)
    time.sleep(1.0)  # until the partner has started
    with competitor(busy):
        for way, engine in engines.items():
            pairs = []
            for _ in range(10):
                speeds = []
                for someone in (team, Away()):
                    monkeypatch.setattr(partners, "team", someone)
                    speeds.append(engine.generate(PROMPT, params).stats.tokens_per_second)
                pairs.append(speeds)
            helped, alone = (median(speeds) for speeds in zip(*pairs[1:], strict=True))
            ratio = median(one / other for one, other in pairs[1:])
            print(f"{target}, {way}{', busy' * busy}: {helped:.1f} tokens/s, {alone:.1f} by threads, ratio {ratio:.2f}")
            assert ratio >= least
