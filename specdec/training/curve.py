"""The loss curve of a run as a picture."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure


def draw_curve(log: list[dict[str, Any]], file: Path) -> None:
    """Training and held-out loss by millions of tokens seen; for a draft also its expected acceptance."""
    figure = Figure(figsize=(6.4, 3.2), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    seen = [entry["tokens"] / 1e6 for entry in log]
    axes.plot(seen, [entry["training_loss"] for entry in log], color="#9aa1a9", label="training")
    axes.plot(seen, [entry["loss"] for entry in log], color="#007a59", label="held out")
    axes.set(xlabel="million tokens", ylabel="loss (nats a token)")
    axes.grid(color="#e7e4dc")
    axes.spines[["top", "right"]].set_visible(False)
    if log and log[-1]["acceptance"] is not None:
        other = axes.twinx()
        other.plot(seen, [entry["acceptance"] for entry in log], color="#0072b2", label="expected acceptance")
        other.set(ylabel="expected acceptance")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(file, metadata={"Software": None})
