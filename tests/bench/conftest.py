"""The browser of the page's tests, for the report."""

from tests.ui.conftest import chromium

__all__ = ["chromium"]
