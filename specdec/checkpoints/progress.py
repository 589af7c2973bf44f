"""How downloads and loads report: called with what is under way, how much is done, and how much there is in all."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
