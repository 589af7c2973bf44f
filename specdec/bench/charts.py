"""The report's charts, as plotly figures. Each line has a mark and a dash of its own beside its colour."""

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]

from specdec.bench.figures import Row, Spread
from specdec.bench.plan import Work
from specdec.bench.results import Results
from specdec.decoding import speed_up

STYLES = (
    ("#0072b2", "solid", "circle"),
    ("#d55e00", "dash", "square"),
    ("#009e73", "dot", "diamond"),
    ("#cc79a7", "dashdot", "cross"),
    ("#56b4e9", "longdash", "triangle-up"),
)
BARS: dict[str, tuple[str, Callable[[Work], str]]] = {  # title, what bars stand side by side for
    "kinds": ("Kinds of prompt", lambda work: f"{work.kind}<br>{escape(work.target)}"),
    "temperature": ("Temperature", lambda work: f"temperature {work.temperature:g}"),
    "peers": ("Beside other engines", lambda work: escape(work.target)),
}
Named = tuple[str, str, go.Figure]  # title, what it shows, chart


def charts(results: Results) -> list[Named]:
    """Those for which there are rows."""
    found = [_against_k(results), _against_sizes(results), _first_token(results), _positions(results)]
    found += [_bars(results, suite) for suite in BARS]
    return [chart for chart in found if chart[2].data]


def _against_k(results: Results) -> Named:
    """Speed-up by lookahead, measured and predicted."""
    figure = _figure("tokens drafted a round, k", "speed-up")
    for index, rows in enumerate(_contests(results, "k")):
        name = f"temperature {rows[0].work.temperature:g}" if rows[0].work.temperature else "greedy"
        fixed = [row for row in rows if isinstance(row.way.k, int)]
        ks = [row.way.k for row in fixed]
        figure.add_trace(_measured(f"{name}, measured", ks, [row.figures.speed_up for row in fixed], index))
        known = [(int(row.way.k), row.figures.alpha, theory) for row in fixed if (theory := row.figures.theory)]
        drafted = [k for k, _, _ in known]
        figure.add_trace(_line(f"{name}, theory", drafted, [theory.speed_up for _, _, theory in known], index, "dash"))
        ideal = [speed_up(alpha, k, theory.c) for k, alpha, theory in known]
        figure.add_trace(_line(f"{name}, theory with v = 1", drafted, ideal, index, "dot"))
        for row in rows:
            if row.way.k == "auto":
                ends = [ks[0], ks[-1]] if ks else [0, 1]
                gain = row.figures.speed_up.median
                figure.add_trace(_line(f"{name}, auto", ends, [gain, gain], index, "longdashdot"))
    figure.update_xaxes(dtick=1)
    text = (
        "Theory: E[τ] / (v + k·c), E[τ] = (1 − α^(k+1)) / (1 − α), with the α, c and v that were measured at each k. "
        "The paper assumes v = 1: a pass over any few tokens costs as much as a pass over one."
    )
    return "Speed-up against the lookahead k", text, figure


def _against_sizes(results: Results) -> Named:
    """Speed-up by the ratio of the models' sizes."""
    figure = _figure("weights of the draft ÷ weights of the target", "speed-up")
    for index, rows in enumerate(_contests(results, "sizes")):
        weights = results.parameters
        known = [row for row in rows if weights.get(row.way.draft) and weights.get(row.work.target)]
        known.sort(key=lambda row: weights[row.way.draft])
        if not known:
            continue
        ratios = [weights[row.way.draft] / weights[row.work.target] for row in known]
        trace = _measured(escape(rows[0].work.target), ratios, [row.figures.speed_up for row in known], index)
        figure.add_trace(
            trace.update(text=[escape(row.way.label) for row in known], hovertemplate="%{text}: %{y:.2f} ×")
        )
    figure.update_xaxes(tickformat=".0%")
    return "Speed-up against the sizes of draft and target", "A draft of few weights is quick and errs more.", figure


def _first_token(results: Results) -> Named:
    """TTFT by the length of the prompt."""
    figure = _figure("tokens of the prompt", "seconds to the first token")
    rows = [row for row in results.rows if row.suite == "prompt-length"]
    for index, way in enumerate(dict.fromkeys(row.way for row in rows)):
        own = [row for row in rows if row.way == way]
        lengths = [row.work.prompt_tokens for row in own]
        figure.add_trace(_measured(escape(way.label), lengths, [row.figures.ttft_s for row in own], index))
    return "Time to the first token against the length of the prompt", "A draft has to read the prompt, too.", figure


def _positions(results: Results) -> Named:
    """How often the draft at each position was accepted, for the largest k of the first contest."""
    figure = _figure("position of the draft in its round", "rounds that accepted it")
    for index, rows in enumerate(_contests(results, "k")):
        row = max(rows, key=lambda row: len(row.figures.accepted_by_position))
        shares = row.figures.accepted_by_position
        name = f"{escape(row.way.label)}, temperature {row.work.temperature:g}"
        figure.add_trace(_line(name, list(range(1, len(shares) + 1)), shares, index, "solid"))
    figure.update_traces(mode="lines+markers")
    figure.update_xaxes(dtick=1)
    figure.update_yaxes(tickformat=".0%")
    return "Acceptance by position", "A draft counts only where all before it were accepted.", figure


def _bars(results: Results, suite: str) -> Named:
    """Tokens per second of each way, by what the suite varies."""
    heading, group = BARS[suite]
    figure = _figure("", "tokens/s")
    rows = [row for row in results.rows if row.suite == suite]
    for index, way in enumerate(dict.fromkeys(row.way for row in rows)):
        own = [row for row in rows if row.way == way]
        speeds = [row.figures.tokens_per_second for row in own]
        bar = go.Bar(
            name=escape(way.label),
            x=[group(row.work) for row in own],
            y=[speed.median for speed in speeds],
            error_y=_errors(speeds),
            marker={"color": STYLES[index % len(STYLES)][0], "pattern": {"shape": ("", "/", ".", "x", "-")[index % 5]}},
        )
        figure.add_trace(bar)
    return heading, "Median of the repetitions and their range.", figure


def _contests(results: Results, suite: str) -> Iterable[list[Row]]:
    """Rows of a suite, contest by contest, those of plain decoding left out."""
    rows = [row for row in results.rows if row.suite == suite and row.way.draft != "none"]
    for work in dict.fromkeys(row.work for row in rows):
        yield [row for row in rows if row.work == work]


def _measured(name: str, x: Sequence[Any], spreads: Sequence[Spread], index: int) -> go.Scatter:
    colour, dash, mark = STYLES[index % len(STYLES)]
    return go.Scatter(
        name=name,
        x=x,
        y=[spread.median for spread in spreads],
        error_y=_errors(spreads),
        mode="lines+markers",
        line={"color": colour, "width": 2.5, "dash": dash if "measured" not in name else "solid"},
        marker={"symbol": mark, "size": 9},
    )


def _line(name: str, x: Sequence[Any], y: Sequence[float], index: int, dash: str) -> go.Scatter:
    colour, _, _ = STYLES[index % len(STYLES)]
    return go.Scatter(name=name, x=x, y=y, mode="lines", line={"color": colour, "width": 1.5, "dash": dash})


def _errors(spreads: Sequence[Spread]) -> dict[str, Any]:
    """From the least to the most."""
    above = [spread.high - spread.median for spread in spreads]
    below = [spread.median - spread.low for spread in spreads]
    return {"array": above, "arrayminus": below, "symmetric": False, "thickness": 1.2}


def _figure(x: str, y: str) -> go.Figure:
    layout = {
        "template": "none",
        "height": 400,
        "margin": {"l": 60, "r": 20, "t": 10, "b": 50},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        "showlegend": True,
        "xaxis": {"title": {"text": x}, "zeroline": False},
        "yaxis": {"title": {"text": y}, "rangemode": "tozero"},
    }
    return go.Figure(layout=layout)
