"""The page's own files, and plotly.js out of the installed plotly wheel."""

from functools import cache
from pathlib import Path

from specdec.checkpoints.bundled import assets_dir

PAGE = assets_dir() / "page"
STYLES = (
    *("colours.css", "frame.css", "status.css", "figures.css", "panel.css", "tokens.css", "tip.css"),
    *("race.css", "replay.css", "step.css", "step-round.css", "step-left.css", "share.css"),
    *("explore.css", "explore-numbers.css", "ask.css", "bring.css", "honest.css", "guide.css", "present.css"),
)
SCRIPTS = (
    *("live.js", "lost.js", "live-charts.js", "status.js", "tokens.js", "tip.js", "terms.js", "charts.js"),
    *("race.js", "replay.js", "step.js", "step-round.js"),
    *("explore.js", "whatif.js", "theory.js"),
    *("step-left.js", "download.js", "picture.js", "picture-text.js", "last-figures.js", "share.js"),
    *("sizes.js", "note.js", "bring.js"),
    *("honest.js", "guide.js", "present.js", "tabs.js"),
)


def page_file(name: str) -> str:
    """The text of a file of `assets/page`."""
    return (PAGE / name).read_text(encoding="utf-8")


@cache
def served() -> dict[str, Path]:
    """The only files that the web server gives out, by the name they are asked for."""
    import plotly  # type: ignore[import-untyped]

    own = {name: PAGE / name for name in (*STYLES, *SCRIPTS, "favicon.png")}
    return {**own, "plotly.min.js": Path(plotly.__file__).parent / "package_data" / "plotly.min.js"}
