"""The page's colours can be read by everybody, in both themes."""

import re

import pytest

from specdec.ui.assets import page_file
from specdec.ui.charts import DARK, LIGHT, figures
from specdec.ui.explore_charts import explore_figures

TEXT_ON = [
    ("ink", "page"),
    ("ink", "card"),
    ("muted", "page"),
    ("muted", "card"),
    ("alert", "alert-back"),
    ("accent-ink", "accent"),
    ("accent", "card"),
    ("alert", "card"),
    ("accepted", "accepted-back"),
    ("rejected", "rejected-back"),
    ("recovered", "recovered-back"),
    ("bonus", "bonus-back"),
    ("discarded", "card"),
]


def theme(selector: str) -> dict[str, str]:
    """The colours a theme sets."""
    block = re.search(rf"^{re.escape(selector)} \{{(.*?)^\}}", page_file("colours.css"), re.S | re.M)
    assert block is not None
    return dict(re.findall(r"--sd-([a-z-]+): (#[0-9a-f]{6});", block[1]))


def linear(colour: str) -> list[float]:
    """Red, green and blue as amounts of light, 0 to 1 (sRGB)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours (WCAG 2.2)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("selector", [":root", ".dark"])
@pytest.mark.parametrize(("text", "back"), TEXT_ON)
def test_text_can_be_read(selector: str, text: str, back: str):
    """4.5 : 1 at least, for every kind of token and all other text."""
    colours = theme(selector)
    assert contrast(colours[text], colours[back]) >= 4.5


@pytest.mark.parametrize(("selector", "colours"), [(":root", LIGHT), (".dark", DARK)])
def test_chart_text_and_lines_can_be_seen(selector: str, colours: object):
    """Labels 4.5 : 1, lines 3 : 1 against the page."""
    page = theme(selector)["page"]
    assert contrast(colours.text, page) >= 4.5  # type: ignore[attr-defined]
    assert contrast(colours.accepted, page) >= 3  # type: ignore[attr-defined]
    assert contrast(colours.speed, page) >= 3  # type: ignore[attr-defined]


def test_no_kind_is_told_by_colour_alone():
    """Every kind but plain has a text decoration of its own."""
    css = page_file("tokens.css")
    lines = [
        re.search(rf"^\.sd-{kind} \{{.*?text-decoration: ([a-z-]+ [a-z]+)", css, re.S | re.M)
        for kind in ("accepted", "rejected", "recovered", "bonus", "discarded")
    ]
    assert len({line[1] for line in lines if line}) == 5


def test_charts_keep_their_view_and_ask_nothing_of_anybody():
    """A constant uirevision, transparent paper; no template that would weigh 7 KB a figure."""
    for charts in (*figures().values(), *explore_figures(12).values()):
        for figure in charts.values():
            assert figure["layout"]["uirevision"] == "constant"
            assert figure["layout"]["paper_bgcolor"] == "rgba(0,0,0,0)"
            assert len(str(figure)) < 3_000
