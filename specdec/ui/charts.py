"""The page's live charts, authored here with plotly and drawn once by the page, which then only adds points.

Colours come in two sets, for light and dark pages; both survive colour blindness and keep 3 : 1 against the page (text
4.5 : 1). What is told by colour is told by a dash or a hatching, too.
"""

import json
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]

Figure = dict[str, Any]

PHASES = {"drafting": "/", "checking": "", "the rest": "."}  # and the hatching of each
FEWEST_BARS = 3  # drafts accepted a round that the axis has room for, whatever is drawn


@dataclass(frozen=True, slots=True)
class Colours:
    """Ink of one theme; `card` is what a label stands on."""

    text: str
    grid: str
    card: str
    accepted: str
    speed: str
    draft: str
    rest: str


LIGHT = Colours("#5a626c", "#e7e4dc", "#ffffff", accepted="#007a59", speed="#0072b2", draft="#b36b00", rest="#7d838c")
DARK = Colours("#a5abb3", "#2d3238", "#191c1f", accepted="#2fc296", speed="#5cb3ec", draft="#e6a82a", rest="#8b929b")


def figures() -> dict[str, dict[str, Figure]]:
    """{theme: {chart: plotly figure}}, plain JSON values."""
    charts = {"acceptance": acceptance, "speed": speed, "lengths": lengths, "phases": phases}
    return {
        theme: {name: chart(colours) for name, chart in charts.items()}
        for theme, colours in (("light", LIGHT), ("dark", DARK))
    }


def acceptance(colours: Colours) -> Figure:
    """Draft acceptance rate (accepted ÷ drafted) by round: each round a dot, all so far a line."""
    dots = go.Scatter(
        name="this round",
        mode="markers",
        marker={"color": colours.accepted, "size": 6, "opacity": 0.35},
        hovertemplate="round %{x}: %{y:.0%}<extra></extra>",
    )
    running = go.Scatter(
        name="all so far",
        mode="lines",
        line={"color": colours.accepted, "width": 2.5},
        hovertemplate="up to round %{x}: %{y:.0%}<extra></extra>",
    )
    figure = go.Figure([dots, running], chart_layout(colours, "round"))
    figure.update_yaxes(range=[-0.04, 1.04], tickformat=".0%", tickvals=[0, 0.25, 0.5, 0.75, 1])
    return plain_json(figure)


def speed(colours: Colours) -> Figure:
    """Tokens a second of engine time, all so far, by tokens generated: this run, and plain decoding beside it."""
    lanes = [("with drafts", colours.speed, "solid"), ("plain", colours.text, "dash")]
    lines = [
        go.Scatter(
            name=name,
            mode="lines",
            line={"color": colour, "width": 2.5, "dash": dash},
            hovertemplate=f"{name}, after %{{x}} tokens: %{{y:.0f}} tokens/s<extra></extra>",
        )
        for name, colour, dash in lanes
    ]
    figure = go.Figure(lines, chart_layout(colours, "tokens"))
    figure.update_yaxes(rangemode="tozero", nticks=5, autorangeoptions={"include": [0, 20]})
    return plain_json(figure)


def lengths(colours: Colours) -> Figure:
    """How many rounds accepted 0, 1, … k of their drafts."""
    bars = go.Histogram(
        xbins={"start": -0.5, "size": 1, "end": 99.5},
        marker={"color": colours.accepted},
        hovertemplate="%{x} accepted: %{y} rounds<extra></extra>",
    )
    figure = go.Figure([bars], chart_layout(colours, "drafts accepted in a round"))
    figure.update_layout(bargap=0.3)
    figure.update_xaxes(tick0=0, dtick=1, fixedrange=True, autorangeoptions={"include": [-0.5, FEWEST_BARS + 0.5]})
    figure.update_yaxes(rangemode="tozero", nticks=5, fixedrange=True, autorangeoptions={"include": [0, 8]})
    return plain_json(figure)


def phases(colours: Colours) -> Figure:
    """Milliseconds of engine time by round, one phase on the other, as steps: three shapes, however many rounds."""
    inks = (colours.draft, colours.speed, colours.rest)
    steps = [
        go.Scatter(
            name=name,
            mode="lines",
            stackgroup="time",
            line={"color": ink, "width": 0.5, "shape": "hvh"},
            fillcolor=ink,
            fillpattern={"shape": hatching, "fgcolor": colours.card, "fillmode": "overlay", "size": 6, "solidity": 0.2},
            hovertemplate="%{y:.1f} ms",
        )
        for (name, hatching), ink in zip(PHASES.items(), inks, strict=True)
    ]
    figure = go.Figure(steps, chart_layout(colours, "round"))
    figure.update_layout(hovermode="x unified", hoverlabel={"bgcolor": colours.card, "bordercolor": colours.grid})
    figure.update_xaxes(unifiedhovertitle={"text": "round %{x}"})
    figure.update_yaxes(rangemode="tozero", nticks=5, ticksuffix=" ms", autorangeoptions={"include": [0, 1]})
    return plain_json(figure)


def race_figures() -> dict[str, dict[str, Figure]]:
    """The same for the race's only chart."""
    return {"light": {"race": race(LIGHT)}, "dark": {"race": race(DARK)}}


def race(colours: Colours) -> Figure:
    """Tokens against seconds of engine time for the two lanes, told apart by dashes as well as by colour."""
    lanes = [("plain", colours.text, "dot"), ("speculative", colours.accepted, "solid")]
    lines = [
        go.Scatter(
            name=name,
            mode="lines",
            line={"color": colour, "width": 2.5, "dash": dash, "shape": "hv"},
            hovertemplate=f"{name}: %{{y}} tokens after %{{x:.2f}} s<extra></extra>",
        )
        for name, colour, dash in lanes
    ]
    return plain_json(go.Figure(lines, chart_layout(colours, "seconds")))


def chart_layout(colours: Colours, x_title: str) -> go.Layout:
    """What all charts have in common."""
    axis = {"gridcolor": colours.grid, "zeroline": False, "tickfont": {"size": 11}, "ticks": ""}
    return go.Layout(
        template="none",
        uirevision="constant",
        showlegend=False,
        height=200,
        margin={"l": 52, "r": 10, "t": 8, "b": 34},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": colours.text, "family": "system-ui, sans-serif"},
        hovermode="closest",
        xaxis={
            **axis,
            "title": {"text": x_title, "font": {"size": 11}, "standoff": 4},
            "showgrid": False,
            "nticks": 7,
            "autorangeoptions": {"include": [0, 20]},
        },
        yaxis=axis,
    )


def plain_json(figure: go.Figure) -> Figure:
    """A figure as plain JSON values."""
    plain: Figure = json.loads(figure.to_json())
    return {"data": plain["data"], "layout": plain["layout"]}
