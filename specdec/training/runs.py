"""A run's folder: what was asked, how far it is, its loss log, its newest checkpoint and its best weights.

    settings.json      shape, recipe, command, corpus: must agree when a run is resumed, but for its length
    record.json        progress so far; with settings.json all that the model card is made from
    log.jsonl          one line an evaluation: step, tokens, seconds, training and held-out loss, learning rate
    checkpoint.pt      model, optimiser, step, seconds, generator state: enough to go on as if nothing had happened
    best.safetensors   the best weights on held-out text

All but the log, which only grows, are replaced atomically: whenever the process dies, each is whole, old or new.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from specdec.errors import ConfigError
from specdec.training.losses import HeldOut

LENGTHS = {"steps", "epochs", "minutes"}  # what may change of the recipe of a run


def replace_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` fill a file beside `path`, then move it there in one step."""
    part = path.with_name(path.name + ".part")
    write(part)
    part.replace(path)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as readable JSON, atomically."""
    text = json.dumps(value, indent=2) + "\n"
    replace_atomically(path, lambda part: part.write_text(text, encoding="utf-8"))


def read_json(path: Path) -> Any:
    """The JSON in a file."""
    return json.loads(path.read_text(encoding="utf-8"))


@dataclass(slots=True)
class Progress:
    """How far a run is; losses in nats a token, seconds of training over all interruptions."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    finished: bool = False
    best_step: int = 0
    best: dict[str, float | None] | None = None  # a HeldOut's fields at that step

    def better(self, held_out: HeldOut) -> bool:
        """Whether this beats the best so far: a draft by how often it would be accepted, else by its loss."""
        if self.best is None:
            return True
        old = HeldOut(**self.best)  # type: ignore[arg-type]
        if held_out.acceptance is not None and old.acceptance is not None:
            return held_out.acceptance > old.acceptance
        return held_out.loss < old.loss


class RunFolder:
    """Reads and writes the files above."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def settings(self) -> dict[str, Any]:
        """What `begin` recorded."""
        settings: dict[str, Any] = read_json(self.path / "settings.json")
        return settings

    def begin(self, settings: dict[str, Any]) -> None:
        """Record the settings of a new run, or a new length of one that is resumed: its schedule follows that.

        Raises ConfigError where the folder holds a run with other settings.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        file = self.path / "settings.json"
        if not file.exists():
            write_json(file, {**settings, "lengths": []})
        recorded = self.settings()
        for key in ("shape", "lessons", "stages", "data"):
            if recorded[key] != settings[key]:
                raise ConfigError(f"{self.path} holds a run with another {key}: {recorded[key]}, not {settings[key]}")
        before, now = recorded["recipe"], settings["recipe"]
        changed = {name for name in now if before[name] != now[name]}
        if changed - LENGTHS:
            raise ConfigError(f"{self.path} holds a run with another recipe: {before}, not {now}")
        if changed:
            past = {name: before[name] for name in LENGTHS if before[name] is not None}
            lengths = [*recorded["lengths"], {**past, "until_step": self.read_record()["step"]}]
            write_json(file, {**recorded, "recipe": now, "command": settings["command"], "lengths": lengths})

    def log(self, entry: dict[str, Any]) -> None:
        """Append one line to the loss log."""
        with (self.path / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def read_log(self) -> list[dict[str, Any]]:
        """The loss log, oldest line first; a last line that was cut off in the middle is left out."""
        file = self.path / "log.jsonl"
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def cut_log(self, step: int) -> None:
        """Drop lines behind `step`: what happened after the newest checkpoint will happen again."""
        lines = [json.dumps(entry) + "\n" for entry in self.read_log() if entry["step"] <= step]
        replace_atomically(self.path / "log.jsonl", lambda part: part.write_text("".join(lines), encoding="utf-8"))

    def record(self, progress: Progress, total_steps: int | None) -> None:
        """Write `record.json`."""
        write_json(self.path / "record.json", {**asdict(progress), "total_steps": total_steps})

    def read_record(self) -> dict[str, Any]:
        """What `record` wrote last."""
        record: dict[str, Any] = read_json(self.path / "record.json")
        return record

    def save_best(self, weights: dict[str, torch.Tensor]) -> None:
        """Keep these weights as the best so far."""
        replace_atomically(self.path / "best.safetensors", lambda part: save_file(weights, part))

    def save_checkpoint(self, model: torch.nn.Module, optimiser: torch.optim.Optimizer, progress: Progress) -> None:
        """Keep all that is needed to go on from here."""
        state = {
            "model": model.state_dict(),
            "optimiser": optimiser.state_dict(),
            "progress": asdict(progress),
            "generator": torch.get_rng_state(),
        }
        replace_atomically(self.path / "checkpoint.pt", lambda part: torch.save(state, part))

    def restore(self, model: torch.nn.Module, optimiser: torch.optim.Optimizer) -> Progress:
        """Load the newest checkpoint into `model` and `optimiser`, if there is one; where the run stands."""
        file = self.path / "checkpoint.pt"
        if not file.exists():
            self.cut_log(0)
            return Progress()
        state = torch.load(file, weights_only=True)
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["generator"])
        progress = Progress(**state["progress"])
        self.cut_log(progress.step)
        return progress
