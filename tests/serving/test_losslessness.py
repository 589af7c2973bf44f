"""An examination from the door: all of its tests, an engine that is wrong, and an end when it is asked for."""

from dataclasses import replace
from typing import Any

import pytest

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.decoding.losslessness import trusting
from specdec.errors import RequestError
from specdec.serving import Examination, Finding, GenerationRequest, Service
from specdec.serving import losslessness as module
from tests.serving.toys import load_toy

REQUEST = GenerationRequest("#0", "target", "draft", params=SamplingParams(1.5), speculation=SpeculativeConfig(3))


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer draws: the toys differ so much that they do."""
    monkeypatch.setattr(module, "DRAWS", (2_000, 2_000))
    monkeypatch.setattr(module, "RUNS", (300, 300))


def verdicts(request: GenerationRequest = REQUEST, cancelled: Any = lambda: False) -> dict[str, Finding]:
    """Each test's last finding."""
    findings = Examination(Service(loader=load_toy), request, cancelled, seed=1).findings()
    return {finding.test: finding for finding in findings if finding.verdict}


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_a_sound_engine_passes_and_the_broken_control_is_caught(temperature: float) -> None:
    """Six tests, fixed seed; a sound engine fails for less than 3 seeds in 10,000. Greedy settings are drawn at 1."""
    found = verdicts(replace(REQUEST, params=SamplingParams(temperature)))
    assert list(found) == ["greedy", "match", "plain", "verifier", "control", "engine"]
    assert {finding.verdict for finding in found.values()} == {"passed"}
    assert (found["greedy"].figure, found["match"].figure) == (64, 64)
    assert found["control"].figure > found["control"].limit
    assert found["engine"].draws == 300


def test_a_broken_engine_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine whose rules keep every draft fails by its ids and by its law."""
    monkeypatch.setattr("specdec.decoding.engine.RULES", {"rejection": trusting, "match": trusting})
    found = verdicts()
    assert (found["match"].verdict, found["engine"].verdict) == ("failed", "failed")


def test_a_draft_that_agrees_leaves_the_control_untold() -> None:
    """Where p = q no broken verifier can show: that is said, and nothing is called a failure."""
    found = verdicts(replace(REQUEST, draft="target"))
    assert found["control"].verdict == "untold"
    assert {finding.verdict for test, finding in found.items() if test != "control"} == {"passed"}


def test_it_ends_when_it_is_cancelled_and_needs_drafts() -> None:
    """Cancelled from the start: no verdict. Without a drafter, or k = 0: a sentence."""
    assert verdicts(cancelled=lambda: True) == {}
    for request in (replace(REQUEST, draft="none"), replace(REQUEST, speculation=SpeculativeConfig(0))):
        with pytest.raises(RequestError, match="choose a drafter"):
            verdicts(request)
