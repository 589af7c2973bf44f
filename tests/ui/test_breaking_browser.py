"""The page of a service whose draft model fails: it says so, as text, and the answer is there all the same."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.ui.conftest import running
from tests.ui.test_browser import generate

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def broken() -> Iterator[str]:
    """The page over toy models, of which the draft is broken."""
    with running("-m", "tests.ui.toy_server", "PORT", "broken") as address:
        yield address


def test_a_paused_drafter_is_told_in_words(broken: str, visit: Callable[..., Any]):
    """Two runs open the breaker, the second of them says after which round; the third says it from its start on. The
    drafter's own words are text, and all tokens arrive."""
    page = visit(broken)
    told = []
    for _ in range(3):
        generate(page, "Once", tokens=12)
        page.wait_for_selector(".sd[data-state=done]")
        assert page.locator(".sd-tokens .sd-token").count() >= 12
        told.append((page.locator(".sd-about").inner_text(), page.locator(".sd-status").inner_text()))
    assert [status.endswith("the line below the answer says why.") for _, status in told] == [False, True, True]
    assert "after round" in told[1][0]
    assert "plain decoding: drafting is paused for a while, because the drafter failed" in told[2][0]
    assert all("<img src=x" in about for about, _ in told)
