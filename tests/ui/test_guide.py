"""The guided start: three steps that show what they say they show."""

from dataclasses import fields
from typing import Any

import pytest

from specdec import Engine, ModelDrafter, load_model
from specdec.ui.guide import STEPS, values
from specdec.ui.watch import Form

MARGIN = 0.12  # between the acceptance rates of neighbouring steps


def request(step: int) -> Any:
    """What a step asks of the engine, by way of the page's form."""
    told = STEPS[step].values
    numbers = {name: float(told[name]) for name in ("lookahead", "temperature", "max_tokens", "top_k", "top_p", "seed")}
    form = Form(**{**told, **numbers, "auto": False, "chat": False})  # type: ignore[arg-type]
    return form.request()


def test_acceptance_falls_from_step_to_step() -> None:
    """The bundled pair, the steps' own seeds: above 0.9, about 0.6, about 0.3, never closer than 0.12."""
    asked = [request(step) for step in range(3)]
    engine = Engine(load_model(asked[0].target), ModelDrafter(load_model(asked[0].draft)))
    rates = [engine.generate(each.prompt, each.params, each.speculation).stats.acceptance_rate for each in asked]
    assert rates[0] > 0.9
    assert rates[0] - rates[1] > MARGIN and rates[1] - rates[2] > MARGIN


def test_each_step_sets_every_control_and_says_two_sentences() -> None:
    """Whatever a visitor had chosen before, a step shows the same; its text is short."""
    for step in STEPS:
        assert set(step.values) == {spec.name for spec in fields(Form)}
        assert step.text.count(". ") == 1 and len(step.text) < 240


@pytest.mark.parametrize("told", [None, {}, {"step": "0"}, {"step": 3}, {"step": -1}, {"step": True}, [0]])
def test_an_event_that_names_no_step_sets_nothing(told: Any) -> None:
    """Events come from a browser, and may say anything."""
    assert values(told) == {}
    assert values({"step": 1}) is STEPS[1].values
