"""A checkpoint, whatever its format: configuration, weights not read yet, tokenizer, and the ids that end a text."""

from dataclasses import dataclass
from pathlib import Path

from specdec.checkpoints.files import ModelFolder, naming
from specdec.checkpoints.gguf_file import read_gguf
from specdec.checkpoints.gguf_model import config_from_gguf, weights_from_gguf
from specdec.checkpoints.gguf_tokenizer import tokenizer_from_gguf
from specdec.checkpoints.hf_config import config_from_hf, end_ids
from specdec.checkpoints.hf_tokenizer import tokenizer_from_hf
from specdec.checkpoints.safetensors_file import open_weights
from specdec.checkpoints.weights import Weights
from specdec.config import Family, ModelConfig
from specdec.tokenizer import Tokenizer

_END_OF_TURN = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|end|>")
_GGUF_END_KEYS = ("eos", "eot", "eom")
_BODY: dict[Family, tuple[str, str]] = {
    "llama": ("model.", "embed_tokens.weight"),
    "gpt2": ("transformer.", "wte.weight"),
}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a model is made of; the weights are still in their files."""

    path: Path
    config: ModelConfig
    weights: Weights
    tokenizer: Tokenizer | None
    eos_ids: frozenset[int]
    licence: str = ""


def open_checkpoint(path: Path) -> Checkpoint:
    """Read all but the weights of a Hugging Face folder or a GGUF file; LoadError or ConfigError name the file."""
    if path.suffix == ".gguf":
        return _open_gguf(path)
    return _open_folder(ModelFolder(path))


def read_config(folder: ModelFolder) -> ModelConfig:
    """The configuration of a Hugging Face folder, by itself."""
    raw = folder.json(folder.require("config.json").name) or {}
    with naming(folder.path / "config.json"):
        return config_from_hf(raw)


def _open_folder(folder: ModelFolder) -> Checkpoint:
    config = read_config(folder)
    ends: frozenset[int] = frozenset()
    for name in ("config.json", "generation_config.json"):
        with naming(folder.path / name):
            ends |= end_ids(folder.json(name) or {}, config.vocab_size)
    tokenizer = tokenizer_from_hf(folder)
    weights = _with_full_names(open_weights(folder), config.family)
    return Checkpoint(folder.path, config, weights, tokenizer, ends | _turn_ends(tokenizer))


def _open_gguf(path: Path) -> Checkpoint:
    file = read_gguf(path)
    with naming(path):
        config, tokenizer = config_from_gguf(file), tokenizer_from_gguf(file)
    named = [file.value(f"tokenizer.ggml.{key}_token_id") for key in _GGUF_END_KEYS]
    ends = frozenset(item for item in named if type(item) is int and 0 <= item < config.vocab_size)
    licence = file.value("general.license")
    return Checkpoint(
        path,
        config,
        weights_from_gguf(file, config),
        tokenizer,
        ends | _turn_ends(tokenizer),
        licence if isinstance(licence, str) else "",
    )


def _turn_ends(tokenizer: Tokenizer | None) -> frozenset[int]:
    """Tokens that close a turn in a chat, whether or not the settings list them."""
    if tokenizer is None:
        return frozenset()
    ids = map(tokenizer.token_id, _END_OF_TURN)
    return frozenset(index for index in ids if index is not None)


def _with_full_names(weights: Weights, family: Family) -> Weights:
    """Checkpoints saved without their output layer (as GPT-2's on the Hub) leave out the body's prefix."""
    prefix, table = _BODY[family]
    if table not in weights:
        return weights
    return weights.renamed(lambda name: name if name.startswith(("lm_head.", prefix)) else prefix + name)
