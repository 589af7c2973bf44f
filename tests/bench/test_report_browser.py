"""The report in a real browser: charts drawn, no request, no error, light and dark."""

from dataclasses import replace

import pytest

from specdec.bench import surroundings
from specdec.bench.suite import run_suite
from tests.bench.toys import SCOPE, shelf

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_are_drawn_from_the_file_alone(chromium, tmp_path, monkeypatch, scheme):
    """Opened from disk at a phone's width: every chart has its lines, nothing is asked of anyone, nothing overflows."""
    monkeypatch.setattr(surroundings.surroundings, "__defaults__", (1_000,))
    scope = replace(SCOPE, suites=("k", "prompt-length", "kinds", "temperature"))
    run_suite(scope, tmp_path, "bench", shelf=shelf())
    context = chromium.new_context(color_scheme=scheme, viewport={"width": 390, "height": 844})
    page, asked, faults = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: message.type == "error" and faults.append(message.text))
    address = (tmp_path / "report.html").as_uri()
    page.goto(address)
    page.wait_for_function("document.querySelectorAll('figure .main-svg .gridlayer path').length > 0")
    drawn = page.eval_on_selector_all(
        "figure", "all => all.map(f => f.querySelectorAll('.scatterlayer .trace, .barlayer .trace').length)"
    )
    assert len(drawn) >= 5
    assert min(drawn) >= 1
    assert [url for url in asked if url != address and not url.startswith(("data:", "blob:"))] == []
    assert faults == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ink = page.eval_on_selector("figure .js-plotly-plot", "chart => chart.layout.font.color")
    assert ink == {"light": "#5a626c", "dark": "#a5abb3"}[scheme]
    context.close()
