"""One HTML file that needs nothing else: charts, tables, what was measured on what. Every text in it is escaped."""

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

from specdec.bench.charts import charts
from specdec.bench.results import Results
from specdec.bench.screen import HEADINGS, MEANINGS, cells, title

CONFIG = {"displaylogo": False, "responsive": True}


def write_report(results: Results, file: Path) -> None:
    """Write the report, plotly's script inlined once."""
    environment = Environment(autoescape=True, loader=PackageLoader("specdec.bench", ""), undefined=StrictUndefined)
    drawn = [
        (name, text, figure.to_html(full_html=False, include_plotlyjs=False, config=CONFIG))
        for name, text, figure in charts(results)
    ]
    tables = {
        title(suite, work): [cells(row) for row in results.rows if (row.suite, row.work) == (suite, work)]
        for suite, work in dict.fromkeys((row.suite, row.work) for row in results.rows)
    }
    page = environment.get_template("report.html").render(
        results=results,
        charts=drawn,
        tables=tables,
        headings=HEADINGS,
        meanings=MEANINGS,
        plotly=get_plotlyjs(),
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page, encoding="utf-8")
