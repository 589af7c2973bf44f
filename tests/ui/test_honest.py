"""The badge's test: what all its parts come to."""

from typing import Any

import pytest

from specdec.ui.honest import ending


@pytest.mark.parametrize(
    ("verdicts", "state", "said"),
    [
        ({"passed"}, "passed", "lossless."),
        ({"passed", "untold"}, "untold", "try another prompt."),
        ({"passed", "untold", "failed"}, "failed", "run it again."),
        ({None}, "stopped", "Stopped."),
        (set(), "stopped", "Stopped."),
    ],
)
def test_it_is_passed_only_where_the_broken_verifier_was_caught(verdicts: Any, state: str, said: str):
    """A control that could not fail shows nothing: the badge has words of its own for that, without a tick."""
    told = ending(verdicts)
    assert told["state"] == state
    assert told["text"].endswith(said)
    assert ending(verdicts, "stopped")["state"] == "stopped"


def test_who_was_not_stopped_but_late_is_told_so():
    """A test whose time was up is not said to have been stopped, and earns no verdict."""
    told = ending({"passed"}, "late")
    assert told["state"] == "late"
    assert told["text"].startswith("The time limit was reached")
