"""The two live charts, authored here with plotly and drawn once by the page, which then only adds points.

Colours come in two sets, for light and dark pages; both survive colour blindness and keep 4.5 : 1 against the page.
"""

import json
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]

Figure = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Colours:
    """Ink of one theme."""

    text: str
    grid: str
    accepted: str
    speed: str


LIGHT = Colours(text="#5a626c", grid="#e7e4dc", accepted="#007a59", speed="#0072b2")
DARK = Colours(text="#a5abb3", grid="#2d3238", accepted="#2fc296", speed="#5cb3ec")


def figures() -> dict[str, dict[str, Figure]]:
    """{theme: {chart: plotly figure}}, plain JSON values."""
    return {
        theme: {"acceptance": acceptance(colours), "speed": speed(colours)}
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
    figure = go.Figure([dots, running], _layout(colours, "round"))
    figure.update_yaxes(range=[-0.04, 1.04], tickformat=".0%", tickvals=[0, 0.25, 0.5, 0.75, 1])
    return _plain(figure)


def speed(colours: Colours) -> Figure:
    """Tokens a second of engine time, all so far, by tokens generated."""
    running = go.Scatter(
        name="tokens/s",
        mode="lines",
        line={"color": colours.speed, "width": 2.5},
        hovertemplate="after %{x} tokens: %{y:.0f} tokens/s<extra></extra>",
    )
    figure = go.Figure([running], _layout(colours, "tokens"))
    figure.update_yaxes(rangemode="tozero", nticks=5, autorangeoptions={"include": [0, 20]})
    return _plain(figure)


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
    return _plain(go.Figure(lines, _layout(colours, "seconds")))


def _layout(colours: Colours, x_title: str) -> go.Layout:
    axis = {
        "gridcolor": colours.grid,
        "zeroline": False,
        "fixedrange": True,
        "tickfont": {"size": 11},
        "ticks": "",
    }
    return go.Layout(
        template="none",
        uirevision="constant",
        showlegend=False,
        height=200,
        margin={"l": 42, "r": 10, "t": 8, "b": 34},
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


def _plain(figure: go.Figure) -> Figure:
    plain: Figure = json.loads(figure.to_json())
    return {"data": plain["data"], "layout": plain["layout"]}
