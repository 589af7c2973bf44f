"""The Explore tab's chart: speed-up by k as it was measured, as theory has it, and as it would be."""

import plotly.graph_objects as go  # type: ignore[import-untyped]

from specdec.ui.charts import DARK, LIGHT, Colours, Figure, chart_layout, plain_json

HEIGHT = 280


def explore_figures(most: int) -> dict[str, dict[str, Figure]]:
    """{theme: {"explore": figure}} with an axis from 0 to `most` drafts a round."""
    return {"light": {"explore": explore(LIGHT, most)}, "dark": {"explore": explore(DARK, most)}}


def explore(colours: Colours, most: int) -> Figure:
    """Speed-up by k: dots measured, a line theory, dashes what if; told apart without their colours."""
    traces = [
        _line("what if", colours.text, "dash"),
        _line("theory", colours.speed, "solid"),
        go.Scatter(
            name="measured",
            mode="markers",
            marker={"color": colours.accepted, "size": 11, "line": {"color": colours.text, "width": 1}},
            hovertemplate="k = %{x}, measured: %{y:.2f} × plain<extra></extra>",
        ),
    ]
    figure = go.Figure(traces, chart_layout(colours, "drafts a round, k"))
    figure.update_layout(height=HEIGHT)
    figure.update_xaxes(range=[-0.4, most + 0.4], dtick=1 if most < 20 else None, autorangeoptions=None)
    figure.update_yaxes(rangemode="tozero", ticksuffix=" ×", nticks=6, autorangeoptions={"include": [0, 1.2]})
    figure.add_hline(1, line={"color": colours.text, "width": 1, "dash": "dot"})
    return plain_json(figure)


def _line(name: str, colour: str, dash: str) -> go.Scatter:
    return go.Scatter(
        name=name,
        mode="lines",
        line={"color": colour, "width": 2.5 if dash == "solid" else 2, "dash": dash},
        hovertemplate=f"k = %{{x}}, {name}: %{{y:.2f}} × plain<extra></extra>",
    )
