"""What each command of `specdec.training.cli` does; this module and all below need PyTorch."""

import argparse
import math
import shlex
from collections.abc import Callable
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

import torch

from specdec.training.corpus import Ids, Windows, encode_stream, held_out_batches, read_documents, split_documents
from specdec.training.export import export, load_network
from specdec.training.hardware import describe_hardware
from specdec.training.loop import Task, Trainer
from specdec.training.losses import evaluate
from specdec.training.network import Llama, initialise
from specdec.training.runs import RunFolder
from specdec.training.settings import ModelShape, Recipe
from specdec.training.tokenization import load_tokenizer, save_tokenizer, train_tokenizer

BATCH = 8  # windows at a time when only measuring


def tokenizer_command(options: argparse.Namespace, argv: list[str]) -> None:
    """Train a tokenizer on the training part, so that held-out text stays unseen by it too."""
    training, _ = split_documents(read_documents(options.corpus), options.held_out_every)
    save_tokenizer(train_tokenizer(training, options.vocab_size), options.tokenizer)


def train_command(options: argparse.Namespace, argv: list[str]) -> None:
    """Begin a run, or go on with it."""
    if options.threads:
        torch.set_num_threads(options.threads)
    Trainer(make_task(options, argv)).run()


def make_task(options: argparse.Namespace, argv: list[str]) -> Task:
    """The task of a `train` command; its settings are recorded in the run's folder."""
    tokenizer = load_tokenizer(options.tokenizer)
    recipe = Recipe(**{field.name: getattr(options, field.name) for field in fields(Recipe)})
    shape = shape_of(options, tokenizer.get_vocab_size())
    parts = split_documents(read_documents(options.corpus), recipe.held_out_every)
    training, held_out = (encode_stream(tokenizer, part) for part in parts)
    folder = RunFolder(options.runs / options.name)
    data = count_data(parts, (training, held_out))
    folder.begin(describe(options, argv, shape=asdict(shape), recipe=recipe.to_json(), data=data))
    network = Llama(shape, dropout=recipe.dropout)
    initialise(network, recipe.seed)
    batches = held_out_batches(held_out, shape.context, recipe.batch)
    return Task(
        network=network.to(options.device),
        windows=Windows(training, shape.context, recipe.seed),
        held_out=[(tokens.to(options.device), targets.to(options.device)) for tokens, targets in batches],
        recipe=recipe,
        folder=folder,
        teacher=load_network(options.distill_from).to(options.device) if options.distill_from else None,
        compiled=options.compile,
    )


def shape_of(options: argparse.Namespace, vocab_size: int) -> ModelShape:
    """The shape a `train` command asks for."""
    names = [field.name for field in fields(ModelShape) if field.name in options]
    given = {name: getattr(options, name) for name in names if name != "head_dim"}
    head_dim = options.head_dim or options.hidden_size // options.num_attention_heads
    return ModelShape(**given, head_dim=head_dim, vocab_size=vocab_size)


def count_data(parts: tuple[list[str], list[str]], streams: tuple[Ids, Ids]) -> dict[str, int]:
    """Documents and tokens of both parts."""
    return {
        "train_documents": len(parts[0]),
        "train_tokens": len(streams[0]),
        "held_out_documents": len(parts[1]),
        "held_out_tokens": len(streams[1]),
    }


def describe(options: argparse.Namespace, argv: list[str], **settings: dict[str, Any]) -> dict[str, Any]:
    """What `settings.json` keeps of a new run. File names only: where they lay is nobody's business."""
    return {
        "name": options.name,
        "command": shlex.join(["python", "-m", "specdec.training", *argv]),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": describe_hardware(options.device),
        "corpus": [file.name for file in options.corpus],
        "teacher": options.distill_from.name if options.distill_from else None,
        **settings,
    }


def export_command(options: argparse.Namespace, argv: list[str]) -> None:
    """Write the best weights of a run as a model folder."""
    export(RunFolder(options.runs / options.name), options.tokenizer, options.out)


def evaluate_command(options: argparse.Namespace, argv: list[str]) -> None:
    """Print the held-out measures of an exported model, in float32."""
    network = load_network(options.model)
    target = load_network(options.target) if options.target else None
    _, held_out = split_documents(read_documents(options.corpus), options.held_out_every)
    stream = encode_stream(load_tokenizer(options.model), held_out)
    result = evaluate(network, target, held_out_batches(stream, network.shape.context, BATCH))
    print(f"held-out loss {result.loss:.4f} nats a token, perplexity {math.exp(result.loss):.3f}")
    if result.acceptance is not None and result.agreement is not None:
        print(f"expected acceptance {result.acceptance:.4f}, equal first choices {result.agreement:.4f}")


COMMANDS: dict[str, Callable[[argparse.Namespace, list[str]], None]] = {
    "tokenizer": tokenizer_command,
    "train": train_command,
    "export": export_command,
    "evaluate": evaluate_command,
}
