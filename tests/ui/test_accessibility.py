"""axe, the usual checker of accessibility rules, finds no serious fault in the page, however it is looked at."""

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.ui.test_browser import generate

pytestmark = pytest.mark.browser

VIEWS = ("Decode", "Race", "Step through", "Share")
SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}


def faults(page: Any) -> list[str]:
    """What axe calls serious or critical: rule, element, and what it says of it."""
    found = Axe().run(page).response["violations"]
    return [
        f"{fault['id']} {node['target']} {node['html'][:300]} {node['failureSummary'][:300]}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


def faults_by_view(page: Any) -> dict[str, list[str]]:
    """Every tab opened in turn; those in which axe finds fault."""
    found = {}
    for view in VIEWS:
        page.get_by_role("tab", name=view).click()
        page.wait_for_timeout(300)
        found[view] = faults(page)
    page.get_by_role("tab", name=VIEWS[0]).click()
    return {view: told for view, told in found.items() if told}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(slow: str, visit: Callable[..., Any], scheme: str, size: str):
    """Each view, before and after a run, with the advanced settings open."""
    page = visit(slow, color_scheme=scheme, viewport=SIZES[size])
    page.get_by_role("button", name="Advanced").click()
    assert faults_by_view(page) == {}
    generate(page, tokens=40)
    page.wait_for_selector(".sd[data-state=done]")
    assert faults_by_view(page) == {}
