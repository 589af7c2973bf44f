"""A toy world for the training code: a corpus that a tiny model learns in seconds."""

import random
from functools import cache
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from specdec.training.corpus import Windows, encode_stream, fixed_windows, held_out_batches, split_documents
from specdec.training.lessons import Lessons, write_lessons
from specdec.training.loop import Task
from specdec.training.network import Llama, initialise
from specdec.training.runs import RunFolder
from specdec.training.settings import ModelShape, Recipe
from specdec.training.tokenization import train_tokenizer

VOCABULARY = 300
SHAPE = ModelShape(
    vocab_size=VOCABULARY,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    context=32,
)


def documents(count: int = 200) -> list[str]:
    """Small stories of a fixed grammar, the same at every call."""
    rng = random.Random(0)
    heroes, things = ("Lily", "Tim", "Spot", "the cat"), ("a ball", "the moon", "a red kite", "12 cakes")
    return [
        " ".join(f"{rng.choice(heroes)} saw {rng.choice(things)} and was happy." for _ in range(4))
        for _ in range(count)
    ]


def write_corpus(folder: Path) -> Path:
    """The stories as a corpus file."""
    file = folder / "toy.txt"
    file.write_text("\n<|endoftext|>\n".join(documents()) + "\n<|endoftext|>\n", encoding="utf-8")
    return file


@cache
def tokenizer() -> Tokenizer:
    """A tokenizer of the stories."""
    return train_tokenizer(documents(), VOCABULARY)


def network(seed: int = 0, shape: ModelShape = SHAPE, dropout: float = 0.0) -> Llama:
    """An untrained model."""
    model = Llama(shape, dropout=dropout)
    initialise(model, seed)
    return model


def recipe(**changes: object) -> Recipe:
    """A recipe of a few steps in float32."""
    defaults = {"steps": 12, "batch": 4, "precision": "float32", "held_out_every": 10, "evaluate_every": 4}
    return Recipe(**{**defaults, "learning_rate": 1e-2, **changes})


def task(folder: Path, how: Recipe, *, teacher: Llama | None = None, taught: Lessons | None = None) -> Task:
    """A run over the stories."""
    parts = split_documents(documents(), how.held_out_every)
    training, held_out = (encode_stream(tokenizer(), part) for part in parts)
    run = RunFolder(folder)
    run.begin({"command": "", "shape": {}, "recipe": how.to_json(), "lessons": None, "stages": [], "data": {}})
    return Task(
        network=network(how.seed, dropout=how.dropout),
        windows=taught or Windows(training, SHAPE.context, how.seed),
        held_out=held_out_batches(held_out, SHAPE.context, how.batch),
        recipe=how,
        folder=run,
        teacher=teacher,
    )


def lessons(folder: Path, teacher: Llama) -> Lessons:
    """What a target says about the stories."""
    stream = encode_stream(tokenizer(), split_documents(documents(), 10)[0])
    windows = fixed_windows(stream, SHAPE.context).astype(np.uint16)
    assert list(write_lessons(folder, teacher, windows, {"target": "t"}))[-1] == 1
    return Lessons(folder, 0)
