"""What each command of `specdec.training.cli` does; this module and all below need PyTorch."""

import argparse
import math
from collections.abc import Callable

import numpy as np
import torch
from rich.progress import Progress

from specdec.training.corpus import fixed_windows, held_out_batches, read_documents, split_documents
from specdec.training.export import export, load_network
from specdec.training.lessons import write_lessons
from specdec.training.loop import Trainer
from specdec.training.losses import evaluate
from specdec.training.owntext import own_windows
from specdec.training.runs import RunFolder
from specdec.training.tasks import Corpus, lessons_folder, make_task
from specdec.training.tokenization import load_tokenizer, save_tokenizer, train_tokenizer

BATCH = 8  # windows at a time when only measuring


def tokenizer_command(options: argparse.Namespace, argv: list[str]) -> None:
    """Train a tokenizer on the training part, so that held-out text stays unseen by it too."""
    training, _ = split_documents(read_documents(options.corpus), options.held_out_every)
    save_tokenizer(train_tokenizer(training, options.vocab_size), options.tokenizer)


def model_command(options: argparse.Namespace, argv: list[str]) -> None:
    """Begin a run, or go on with it."""
    if options.threads:
        torch.set_num_threads(options.threads)
    Trainer(make_task(options, argv)).run()


def teach_command(options: argparse.Namespace, argv: list[str]) -> None:
    """Let a target write text of its own, and record its distributions over that and the corpus."""
    network, tokenizer = load_network(options.target), load_tokenizer(options.target)
    stream = Corpus.read(options.corpus, options.held_out_every, tokenizer).training
    text = fixed_windows(stream, network.shape.context)[: options.text_windows].astype(np.uint16)
    with Progress() as bar:
        own = [text[:0]]
        row = bar.add_task("writing", total=options.own_windows)
        for windows in own_windows(network, stream, options.own_windows, options.seed):
            own.append(windows)
            bar.advance(row, len(windows))
        about = {"target": options.target.name, "text_windows": len(text), "own_windows": sum(map(len, own))}
        row = bar.add_task("reading", total=1.0)
        folder = lessons_folder(options.runs, options.target)
        for done in write_lessons(folder, network, np.concatenate([text, *own]), about):
            bar.update(row, completed=done)


def export_command(options: argparse.Namespace, argv: list[str]) -> None:
    """Write the best weights of a run as a model folder."""
    export(RunFolder(options.runs / options.name), options.tokenizer, options.out)


def evaluate_command(options: argparse.Namespace, argv: list[str]) -> None:
    """Print the held-out measures of an exported model, in float32."""
    network = load_network(options.model)
    target = load_network(options.target) if options.target else None
    held_out = Corpus.read(options.corpus, options.held_out_every, load_tokenizer(options.model)).held_out
    result = evaluate(network, target, held_out_batches(held_out, network.shape.context, BATCH))
    print(f"held-out loss {result.loss:.4f} nats a token, perplexity {math.exp(result.loss):.3f}")
    if result.acceptance is not None and result.agreement is not None:
        print(f"expected acceptance {result.acceptance:.4f}, equal first choices {result.agreement:.4f}")


COMMANDS: dict[str, Callable[[argparse.Namespace, list[str]], None]] = {
    "tokenizer": tokenizer_command,
    "model": model_command,
    "teach": teach_command,
    "export": export_command,
    "evaluate": evaluate_command,
}
