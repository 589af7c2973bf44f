"""From text files to batches: documents, a held-out part, one stream of tokens, shuffled windows.

Documents stand apart by a line `<|endoftext|>`. Each begins with that token in the stream, so the model learns both
how a story starts and that it has ended. Batches are a pure function of (seed, step): an interrupted run goes on
with the very windows it would have seen, without any state to save.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from specdec.errors import ConfigError
from specdec.training.settings import END_OF_TEXT, END_OF_TEXT_ID

Ids = NDArray[np.int32]


def read_documents(files: Iterable[Path]) -> list[str]:
    """All documents of some UTF-8 files, in order, outer white space taken off, empty ones left out."""
    parts = (part.strip() for file in files for part in file.read_text(encoding="utf-8").split(END_OF_TEXT))
    return [part for part in parts if part]


def split_documents(documents: Sequence[str], every: int) -> tuple[list[str], list[str]]:
    """(training, held out): every `every`-th document is held out, so both parts come from the same mixture."""
    held_out = list(documents[every - 1 :: every])
    return [text for i, text in enumerate(documents) if (i + 1) % every], held_out


def encode_stream(tokenizer: Tokenizer, documents: Sequence[str]) -> Ids:
    """One stream of ids, `<|endoftext|>` before each document and after the last."""
    encodings = tokenizer.encode_batch_fast(list(documents), add_special_tokens=False)
    pieces = [[END_OF_TEXT_ID, *encoding.ids] for encoding in encodings]
    return np.array([token for piece in pieces for token in piece] + [END_OF_TEXT_ID], dtype=np.int32)


@dataclass(frozen=True, slots=True)
class Windows:
    """A stream cut into windows of `context` + 1 tokens that overlap by one: input and target of each position.

    Every epoch cuts at another offset and shuffles anew, and sees each token once, but for a rest of less than two
    windows. Raises ConfigError where the stream is shorter than two windows.
    """

    stream: Ids
    context: int
    seed: int

    def __post_init__(self) -> None:
        if len(self.stream) < 2 * self.context + 1:
            raise ConfigError(f"{len(self.stream)} tokens are too few for windows of {self.context}")

    @property
    def per_epoch(self) -> int:
        """Windows in an epoch, whatever its offset."""
        return (len(self.stream) - 1) // self.context - 1

    def batch(self, step: int, size: int) -> tuple[Tensor, ...]:
        """Inputs and targets of a step (from 0), both (size, context) int64."""
        rows = [self._row(index) for index in range(step * size, (step + 1) * size)]
        return as_pair(np.stack(rows))

    def _row(self, index: int) -> Ids:
        epoch, place = divmod(index, self.per_epoch)
        rng = np.random.default_rng((self.seed, epoch))
        offset = int(rng.integers(self.context))
        start = offset + int(rng.permutation(self.per_epoch)[place]) * self.context
        return self.stream[start : start + self.context + 1]


def as_pair(rows: Ids) -> tuple[Tensor, ...]:
    """(n, context + 1) ids -> inputs and targets, (n, context) int64 each."""
    tokens = torch.from_numpy(rows.astype(np.int64))
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def fixed_windows(stream: Ids, context: int) -> Ids:
    """The stream as windows that overlap by one token, (n, context + 1); a rest shorter than a window is left out.

    Raises ConfigError where there is not a single window.
    """
    count = (len(stream) - 1) // context
    if count == 0:
        raise ConfigError(f"{len(stream)} tokens are too few for a window of {context}")
    return np.stack([stream[i * context : (i + 1) * context + 1] for i in range(count)])


def held_out_batches(stream: Ids, context: int, size: int) -> list[tuple[Tensor, ...]]:
    """The held-out stream as fixed windows. Raises ConfigError where there is not a single one."""
    rows = fixed_windows(stream, context)
    return [as_pair(rows[i : i + size]) for i in range(0, len(rows), size)]
