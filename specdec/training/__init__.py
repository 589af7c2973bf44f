"""How the bundled models were trained: tokenizer, corpus, Llama in PyTorch, loop, Hugging Face export.

An optional extra: `pip install '.[training]'` brings PyTorch, tokenizers, safetensors, rich, matplotlib. Reading order:

    settings      the model's shape and the recipe
    tokenization  byte-level BPE
    corpus        documents -> stream -> shuffled windows
    network       the Llama architecture
    losses        cross-entropy, distillation, held-out measures
    runs          a run's folder: record, log, checkpoint
    loop          AdamW, schedule, evaluation, resumption
    owntext       what a model writes by itself
    lessons       a target's distributions over windows of text, for drafts to learn from
    export        the Hugging Face folder
    card, curve   its README and its picture
    tasks         from options to a run
    cli, commands the command line

Everything but `settings` and `cli` needs the extra, so nothing else is imported here.
"""

from specdec.training.cli import main
from specdec.training.settings import ModelShape, Recipe

__all__ = ["ModelShape", "Recipe", "main"]
