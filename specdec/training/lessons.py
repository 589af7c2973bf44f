"""A target's distributions over many windows of text, worked out once: drafts then learn at the cost of a draft alone.

A lesson is a window of text and, for each of its tokens, the K likeliest next ones with their probabilities,
renormalised. The text is the corpus and what the target itself writes (on-policy distillation: Agarwal et al. 2023,
arXiv:2306.13649), since a draft meets the target's text rather than the corpus.

    tokens.npy   (n, T + 1) uint16     ids.npy   (n, T, K) uint16     p.npy   (n, T, K) float16
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib.format import open_memmap
from numpy.typing import NDArray
from torch import Tensor

from specdec.errors import NotFoundError
from specdec.training.network import Llama

TOP = 32  # likeliest tokens kept; beyond them lie one or two percent of p
BATCH = 16  # windows at a time


@dataclass(frozen=True, slots=True)
class Lessons:
    """Lessons in a folder, shuffled anew every epoch. Raises NotFoundError where there are none."""

    folder: Path
    seed: int

    def __post_init__(self) -> None:
        if not (self.folder / "lessons.json").exists():
            raise NotFoundError(f"{self.folder} holds no lessons: make them with `python -m specdec train teach`")

    @property
    def about(self) -> dict[str, Any]:
        """What `write_lessons` recorded."""
        about: dict[str, Any] = json.loads((self.folder / "lessons.json").read_text(encoding="utf-8"))
        return about

    @property
    def per_epoch(self) -> int:
        """Windows in an epoch."""
        return len(self._array("tokens"))

    def batch(self, step: int, size: int) -> tuple[Tensor, ...]:
        """Inputs, next tokens, (size, T); ids and p, (size, T, K), of a step (from 0)."""
        rows = [self._row(index) for index in range(step * size, (step + 1) * size)]
        tokens = torch.from_numpy(self._array("tokens")[rows].astype(np.int64))
        ids = torch.from_numpy(self._array("ids")[rows].astype(np.int64))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), ids, torch.from_numpy(self._array("p")[rows])

    def _row(self, index: int) -> int:
        epoch, place = divmod(index, self.per_epoch)
        return int(np.random.default_rng((self.seed, epoch)).permutation(self.per_epoch)[place])

    def _array(self, name: str) -> NDArray[Any]:
        array: NDArray[Any] = open_memmap(self.folder / f"{name}.npy", "r")
        return array


def write_lessons(folder: Path, teacher: Llama, windows: NDArray[np.uint16], about: dict[str, Any]) -> Iterator[float]:
    """Let `teacher` read windows, (n, T + 1); yields the share that is done."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lessons.json").unlink(missing_ok=True)
    count, length = len(windows), windows.shape[1] - 1
    np.save(folder / "tokens.npy", windows)
    all_ids = open_memmap(folder / "ids.npy", "w+", np.uint16, (count, length, TOP))
    all_p = open_memmap(folder / "p.npy", "w+", np.float16, (count, length, TOP))
    for start in range(0, count, BATCH):
        part = slice(start, start + BATCH)
        p, ids = _likeliest(teacher, torch.from_numpy(windows[part, :-1].astype(np.int64)))
        all_ids[part], all_p[part] = ids.numpy(), p.numpy()
        yield min(1.0, (start + BATCH) / count)
    (folder / "lessons.json").write_text(json.dumps({"windows": count, **about}, indent=2) + "\n", encoding="utf-8")


@torch.no_grad()
def _likeliest(teacher: Llama, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """[B, T] ids -> the K largest probabilities and their tokens, (B, T, K), the former adding up to 1."""
    device = next(teacher.parameters()).device
    with torch.autocast(device.type, torch.bfloat16):
        logits = teacher(tokens.to(device))
    top = torch.topk(logits.float(), TOP, dim=-1)
    return torch.softmax(top.values, dim=-1).cpu(), top.indices.cpu()
