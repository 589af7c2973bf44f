"""Byte-level BPE, trained and saved with Hugging Face's `tokenizers` (Sennrich et al. 2016; GPT-2's byte alphabet).

All 256 bytes are in the vocabulary, so that any text survives encode and decode; digits stand alone, so that numbers
are spelt, not memorised. `<|endoftext|>` (id 0) begins every document and ends every answer.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from specdec.errors import ConfigError, NotFoundError
from specdec.training.settings import END_OF_TEXT, END_OF_TEXT_ID


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """A tokenizer of exactly `vocab_size` entries, the special token and the 256 bytes included.

    Raises ConfigError where the texts hold too few different words for so many entries.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() != vocab_size:
        raise ConfigError(f"the corpus yields {tokenizer.get_vocab_size()} tokens, not the {vocab_size} asked for")
    tokenizer.post_processor = begin_with_end_of_text()
    return tokenizer


def begin_with_end_of_text() -> processors.TemplateProcessing:
    """What puts `<|endoftext|>` before a text wherever special tokens are asked for."""
    return processors.TemplateProcessing(
        single=f"{END_OF_TEXT} $A",
        pair=f"{END_OF_TEXT} $A {END_OF_TEXT} $B",
        special_tokens=[(END_OF_TEXT, END_OF_TEXT_ID)],
    )


def save_tokenizer(tokenizer: Tokenizer, folder: Path, context: int | None = None) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json` as Hugging Face's loaders expect them.

    `context` is the longest input, in tokens, of the model that the folder holds, if it holds one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config: dict[str, str | bool | int] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END_OF_TEXT,
        "eos_token": END_OF_TEXT,
        "add_bos_token": True,
        "add_eos_token": False,
        "clean_up_tokenization_spaces": False,
    }
    if context is not None:
        config["model_max_length"] = context
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer in `folder`. Raises NotFoundError where there is none."""
    if not (folder / "tokenizer.json").exists():
        raise NotFoundError(f"{folder} holds no tokenizer.json")
    return Tokenizer.from_file(str(folder / "tokenizer.json"))
