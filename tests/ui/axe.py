"""axe, the usual checker of accessibility rules, on a page as it stands."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe

SETTLED_MS = 500  # a tab fades in, and half-faded text has little contrast
OTHER_THEME = "document.body.classList.toggle('dark')"


def faults(page: Any) -> list[str]:
    """What axe calls serious or critical: rule, element, and what it says of it."""
    found = Axe().run(page).response["violations"]
    return [
        f"{fault['id']} {node['target']} {node['html'][:300]} {node['failureSummary'][:300]}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


def faults_in_both_themes(page: Any) -> list[str]:
    """The same in the page's theme and in the other one, after which it is as it was."""
    found = []
    for _ in range(2):
        page.wait_for_timeout(SETTLED_MS)
        found += faults(page)
        page.evaluate(OTHER_THEME)
    return found
