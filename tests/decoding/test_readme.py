"""The table in README.md names tests that exist."""

import re
from pathlib import Path

FOLDER = Path(__file__).parent


def test_every_test_named_in_the_table_exists() -> None:
    """33 cases, each with a test of that name in that file, or the part of the project that holds it."""
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    assert [int(row.split("|")[1]) for row in rows] == list(range(1, 34))
    named = re.findall(r"`([\w./]+\.py)::(\w+)`", text)
    assert len(named) > 50
    missing = [name for file, name in named if f"def {name}(" not in (FOLDER / file).read_text(encoding="utf-8")]
    assert missing == []
    assert all("`" in row.split("|")[3] for row in rows), "a row without a test or a place"
