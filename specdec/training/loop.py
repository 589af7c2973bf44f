"""The training loop: AdamW, warm-up and cosine, held-out loss at intervals, checkpoints, resumption.

Interrupt it at any time: the same command goes on from the newest checkpoint and, with a length in steps or epochs
on the same machine, ends with the same parameters to the bit as a run that was never interrupted.
"""

import contextlib
import math
import time
from dataclasses import asdict, dataclass
from typing import Any

import torch
from rich import progress as bars

from specdec.training.corpus import Windows
from specdec.training.lessons import Lessons
from specdec.training.losses import Batch, evaluate, training_loss
from specdec.training.network import Llama
from specdec.training.runs import Progress, RunFolder
from specdec.training.settings import Recipe

COLUMNS = (
    bars.TextColumn("{task.description}"),
    bars.BarColumn(),
    bars.TaskProgressColumn(),
    bars.TextColumn("loss {task.fields[loss]:.3f}"),
    bars.TimeRemainingColumn(),
)


@dataclass(frozen=True, slots=True)
class Task:
    """All that one run needs: what is trained, on what, how, and where its files go."""

    network: Llama
    windows: Windows | Lessons
    held_out: list[Batch]
    recipe: Recipe
    folder: RunFolder
    teacher: Llama | None = None
    compiled: bool = False

    def total_steps(self) -> int | None:
        """Steps asked for, in steps or epochs; None where the clock decides."""
        if self.recipe.epochs is not None:
            return math.ceil(self.recipe.epochs * self.windows.per_epoch / self.recipe.batch)
        return self.recipe.steps


def make_optimiser(network: Llama, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019) that decays matrices and leaves the norms' gains alone."""
    parameters = list(network.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.95), fused=True)


def learning_rate(done: float, recipe: Recipe) -> float:
    """The rate when a share `done` of the run is over: a linear warm-up, then a cosine to `final_fraction`."""
    if done < recipe.warmup_fraction:
        return recipe.learning_rate * done / recipe.warmup_fraction
    after = min((done - recipe.warmup_fraction) / max(1 - recipe.warmup_fraction, 1e-9), 1.0)
    cosine = (1 + math.cos(math.pi * after)) / 2
    return recipe.learning_rate * (recipe.final_fraction + (1 - recipe.final_fraction) * cosine)


class Trainer:
    """Runs one task to its end."""

    def __init__(self, task: Task) -> None:
        self.task = task
        torch.manual_seed(task.recipe.seed)  # dropout draws from PyTorch's own generator; nothing else here does
        # the element-wise operations cost more than the products; fused, a step takes about half the processor time
        self.loss = torch.compile(training_loss, dynamic=False) if task.compiled else training_loss
        self.optimiser = make_optimiser(task.network, task.recipe)
        self.progress = task.folder.restore(task.network, self.optimiser)
        self.total = task.total_steps()
        self.device = next(task.network.parameters()).device
        self.saved_at = time.monotonic()

    def run(self) -> Progress:
        """Train until the length asked for is reached; where the run stands then."""
        with bars.Progress(*COLUMNS) as bar:
            row = bar.add_task("training", total=1.0, loss=math.nan)
            while not self._over():
                loss = self._timed_step()
                bar.update(row, completed=self._done(), loss=loss)
                if self.progress.step % self.task.recipe.evaluate_every == 0 or self._over():
                    bar.console.print(self._evaluate(loss), highlight=False, soft_wrap=True)
                if time.monotonic() - self.saved_at >= self.task.recipe.checkpoint_seconds:
                    self._save()
        self._save(finished=True)
        return self.progress

    def _done(self) -> float:
        """Share of the run that is over."""
        if self.total is not None:
            return self.progress.step / self.total
        return self.progress.seconds / (60 * (self.task.recipe.minutes or 1))

    def _over(self) -> bool:
        return self.progress.finished or self._done() >= 1

    def _timed_step(self) -> float:
        start = time.perf_counter()
        loss = self._step()
        self.progress.seconds += time.perf_counter() - start
        return loss

    def _step(self) -> float:
        """One optimiser step; the mean training loss of its windows."""
        recipe, progress, network = self.task.recipe, self.progress, self.task.network
        rate = learning_rate(self._done(), recipe)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        batch = [part.to(self.device) for part in self.task.windows.batch(progress.step, recipe.batch)]
        total, parts = 0.0, recipe.accumulate
        network.train()
        for part in zip(*(tensor.chunk(parts) for tensor in batch), strict=True):
            with self._precision():
                loss = self.loss(network, recipe, part) / parts
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(network.parameters(), recipe.grad_clip)
        self.optimiser.step()
        self.optimiser.zero_grad()
        progress.step += 1
        progress.tokens += batch[0].numel()
        return total

    def _precision(self) -> contextlib.AbstractContextManager[Any]:
        if self.task.recipe.precision == "bfloat16":
            return torch.autocast(self.device.type, torch.bfloat16)
        return contextlib.nullcontext()

    def _evaluate(self, loss: float) -> str:
        """Measure, log, keep the best weights; the line for the terminal."""
        task, progress = self.task, self.progress
        with self._precision():
            held_out = evaluate(task.network, task.teacher, task.held_out)
        if progress.better(held_out):
            progress.best_step, progress.best = progress.step, asdict(held_out)
            task.folder.save_best(task.network.state_dict())
        task.folder.record(progress, self.total)
        entry = {**self._where(), "training_loss": loss, **asdict(held_out)}
        task.folder.log(entry)
        return " ".join(f"{name}={value:.5g}" for name, value in entry.items() if value is not None)

    def _where(self) -> dict[str, float]:
        """Step, tokens, seconds and learning rate, for the log."""
        progress = self.progress
        return {
            "step": progress.step,
            "tokens": progress.tokens,
            "seconds": round(progress.seconds, 1),
            "learning_rate": self.optimiser.param_groups[0]["lr"],
        }

    def _save(self, *, finished: bool = False) -> None:
        self.progress.finished = finished
        self.task.folder.save_checkpoint(self.task.network, self.optimiser, self.progress)
        self.task.folder.record(self.progress, self.total)
        self.saved_at = time.monotonic()
