"""From a run's folder to a Hugging Face folder, and back: float16 safetensors in shards, configuration, tokenizer.

Every file stays below `SHARD_BYTES`, so that a repository can hold the weights without large-file storage.
Layout: https://huggingface.co/docs/safetensors and transformers' `model.safetensors.index.json`.
"""

from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from specdec.errors import ConfigError, NotFoundError
from specdec.training.card import CURVE, model_card
from specdec.training.curve import draw_curve
from specdec.training.network import Llama, sample
from specdec.training.runs import RunFolder, read_json, write_json
from specdec.training.settings import END_OF_TEXT_ID, ModelShape
from specdec.training.tokenization import load_tokenizer, save_tokenizer

SHARD_BYTES = 9_000_000
HEADER_BYTES = 64 * 1024  # set aside in each shard for safetensors' JSON header

Weights = dict[str, Tensor]


def plan_shards(weights: Weights, limit: int) -> list[list[str]]:
    """Names of the tensors of each shard, in order, filled one after the other.

    Raises ConfigError where a single tensor is larger than `limit` bytes.
    """
    shards: list[list[str]] = [[]]
    room = limit - HEADER_BYTES
    used = 0
    for name, tensor in weights.items():
        if tensor.nbytes > room:
            raise ConfigError(f"{name} has {tensor.nbytes} bytes, more than a shard of {limit} can hold")
        if used + tensor.nbytes > room:
            shards.append([])
            used = 0
        shards[-1].append(name)
        used += tensor.nbytes
    return shards


def save_weights(weights: Weights, folder: Path, limit: int = SHARD_BYTES) -> None:
    """Write `model.safetensors`, or shards with an index where one file would pass `limit` bytes."""
    for old in folder.glob("model*.safetensors*"):
        old.unlink()
    shards = plan_shards(weights, limit)
    if len(shards) == 1:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        return
    weight_map = {}
    for i, names in enumerate(shards, 1):
        file = f"model-{i:05d}-of-{len(shards):05d}.safetensors"
        save_file({name: weights[name] for name in names}, folder / file, metadata={"format": "pt"})
        weight_map.update(dict.fromkeys(names, file))
    total = sum(tensor.nbytes for tensor in weights.values())
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": weight_map})


def load_network(folder: Path) -> Llama:
    """The model in an exported folder, in float32 and evaluation mode."""
    if not (folder / "config.json").exists():
        raise NotFoundError(f"{folder} holds no exported model: it has no config.json")
    network = Llama(ModelShape.from_hf_config(read_json(folder / "config.json")))
    weights: Weights = {}
    for file in sorted(folder.glob("model*.safetensors")):
        weights.update(load_file(file))
    network.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    return network.eval()


def export(run: RunFolder, tokenizer_folder: Path, out: Path, *, prompt: str = "Once upon a time") -> None:
    """Write the best weights of a run, finished or not, as a model folder with a card.

    Raises NotFoundError where the run has not been evaluated yet.
    """
    best = run.path / "best.safetensors"
    if not best.exists():
        raise NotFoundError(f"{run.path} holds no evaluated weights yet")
    settings, record = run.settings(), run.read_record()
    shape = ModelShape(**settings["shape"])
    out.mkdir(parents=True, exist_ok=True)
    save_weights({name: tensor.half() for name, tensor in load_file(best).items()}, out)
    write_json(out / "config.json", {**shape.hf_config(), "dtype": "float16", "torch_dtype": "float16"})
    write_json(out / "generation_config.json", {"bos_token_id": END_OF_TEXT_ID, "eos_token_id": END_OF_TEXT_ID})
    write_json(out / "training.json", {"settings": settings, "record": record})
    draw_curve(run.read_log(), out / CURVE)
    save_tokenizer(load_tokenizer(tokenizer_folder), out, shape.context)
    network = load_network(out)
    card = model_card(
        settings, record, parameters=network.parameter_count(), prompt=prompt, story=tell(network, out, prompt)
    )
    (out / "README.md").write_text(card, encoding="utf-8")
    for file in out.iterdir():
        file.chmod(0o644)  # safetensors makes its files private


def stages_of(folder: Path) -> list[dict[str, Any]]:
    """How an exported model came about, oldest stage first: for the record of a run that begins with it."""
    made = read_json(folder / "training.json")
    settings, record = made["settings"], made["record"]
    stage = {name: settings[name] for name in ("command", "corpus", "hardware", "started")}
    return [*settings["stages"], {**stage, **{name: record[name] for name in ("step", "tokens", "seconds")}}]


def tell(network: Llama, folder: Path, prompt: str, *, temperature: float = 0.8, seed: int = 0) -> str:
    """What the model in `folder` writes after `prompt`, up to its context."""
    tokenizer = load_tokenizer(folder)
    ids = sample(network, tokenizer.encode(prompt).ids, temperature=temperature, seed=seed)
    return str(tokenizer.decode(ids))
