"""From the options of `train model` to a task: corpus, lessons, network, and the settings that the run records."""

import argparse
import shlex
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from specdec.errors import ConfigError
from specdec.training.corpus import Ids, Windows, encode_stream, held_out_batches, read_documents, split_documents
from specdec.training.export import load_network, stages_of
from specdec.training.hardware import describe_hardware
from specdec.training.lessons import Lessons
from specdec.training.loop import Task
from specdec.training.network import Llama, initialise
from specdec.training.runs import RunFolder
from specdec.training.settings import ModelShape, Recipe
from specdec.training.tokenization import load_tokenizer


@dataclass(frozen=True, slots=True)
class Corpus:
    """Both parts of a corpus as streams of tokens, and how much they are."""

    training: Ids
    held_out: Ids
    counts: dict[str, int]

    @classmethod
    def read(cls, files: list[Path], held_out_every: int, tokenizer: Tokenizer) -> "Corpus":
        """Read and encode some text files."""
        parts = split_documents(read_documents(files), held_out_every)
        training, held_out = (encode_stream(tokenizer, part) for part in parts)
        counts = {
            "train_documents": len(parts[0]),
            "train_tokens": len(training),
            "held_out_documents": len(parts[1]),
            "held_out_tokens": len(held_out),
        }
        return cls(training, held_out, counts)


def make_task(options: argparse.Namespace, argv: list[str]) -> Task:
    """The task of a `model` command; its settings are recorded in the run's folder."""
    tokenizer = load_tokenizer(options.tokenizer)
    recipe = Recipe(**{field.name: getattr(options, field.name) for field in fields(Recipe)})
    shape = shape_of(options, tokenizer.get_vocab_size())
    network = first_network(options.initial, shape, recipe)
    corpus = Corpus.read(options.corpus, recipe.held_out_every, tokenizer)
    lessons = Lessons(lessons_folder(options.runs, options.lessons), recipe.seed) if options.lessons else None
    folder = RunFolder(options.runs / options.name)
    folder.begin(
        {
            **describe(options, argv),
            "shape": asdict(shape),
            "recipe": recipe.to_json(),
            "data": corpus.counts,
            "lessons": lessons.about if lessons else None,
            "stages": stages_of(options.initial) if options.initial else [],
        }
    )
    held_out = held_out_batches(corpus.held_out, shape.context, recipe.batch)
    return Task(
        network=network.to(options.device),
        windows=lessons or Windows(corpus.training, shape.context, recipe.seed),
        held_out=[tuple(part.to(options.device) for part in batch) for batch in held_out],
        recipe=recipe,
        folder=folder,
        teacher=load_network(options.lessons).to(options.device) if options.lessons else None,
        compiled=options.compile,
    )


def shape_of(options: argparse.Namespace, vocab_size: int) -> ModelShape:
    """The shape a `model` command asks for."""
    names = [field.name for field in fields(ModelShape) if field.name in options]
    given = {name: getattr(options, name) for name in names if name != "head_dim"}
    head_dim = options.head_dim or options.hidden_size // options.num_attention_heads
    return ModelShape(**given, head_dim=head_dim, vocab_size=vocab_size)


def first_network(initial: Path | None, shape: ModelShape, recipe: Recipe) -> Llama:
    """The network a run begins with. Raises ConfigError where the model it should begin from has another shape."""
    network = Llama(shape, dropout=recipe.dropout)
    if initial is None:
        initialise(network, recipe.seed)
        return network
    before = load_network(initial)
    if before.shape != shape:
        raise ConfigError(f"{initial} has another shape than the run: {before.shape}, not {shape}")
    network.load_state_dict(before.state_dict())
    return network


def lessons_folder(runs: Path, target: Path) -> Path:
    """Where the lessons of a target lie."""
    return runs / f"lessons-{target.name}"


def describe(options: argparse.Namespace, argv: list[str]) -> dict[str, Any]:
    """Who made the run, how and where. File names only: where they lay is nobody's business."""
    return {
        "name": options.name,
        "command": shlex.join(["python", "-m", "specdec", "train", *argv]),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": describe_hardware(options.device),
        "corpus": [file.name for file in options.corpus],
    }
