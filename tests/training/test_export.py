"""An exported folder is a Hugging Face model, small enough a file, with a card that cannot lie."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from specdec.checkpoints.bundled import DRAFTS, TARGETS, assets_dir, bundled_path
from specdec.errors import ConfigError, NotFoundError
from specdec.training.card import CURVE
from specdec.training.export import SHARD_BYTES, export, load_network, plan_shards, save_weights
from specdec.training.loop import Trainer
from specdec.training.runs import RunFolder
from specdec.training.settings import ModelShape
from specdec.training.tokenization import load_tokenizer, save_tokenizer
from tests.training.toys import network, recipe, task, tokenizer

FAMILY = (*TARGETS, *DRAFTS)


def test_small_weights_are_one_file(tmp_path: Path) -> None:
    """What fits the limit is one file without an index; what was there before is gone."""
    weights = network().state_dict()
    save_weights(weights, tmp_path, limit=110_000)
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    save_weights(weights, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


def test_shards_stay_below_the_limit(tmp_path: Path) -> None:
    """Every shard is smaller than the limit, the index names each tensor's file, and together they are the weights."""
    weights = network().state_dict()
    save_weights(weights, tmp_path, limit=110_000)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text(encoding="utf-8"))
    assert all(file.stat().st_size < 110_000 for file in tmp_path.iterdir())
    assert set(index["weight_map"]) == set(weights)
    assert index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in weights.values())
    for name, file in index["weight_map"].items():
        assert torch.equal(load_file(tmp_path / file)[name], weights[name])


def test_a_tensor_beyond_the_limit_is_refused() -> None:
    """A tensor that no shard can hold is an error that names it."""
    with pytest.raises(ConfigError, match=r"model\.embed_tokens\.weight"):
        plan_shards(network().state_dict(), 70_000)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, Path]:
    """A short run and its export, made through the command line."""
    from specdec.training import main
    from tests.training.toys import write_corpus

    root = tmp_path_factory.mktemp("export")
    corpus, runs, out = str(write_corpus(root)), str(root / "runs"), root / "model"
    common = ["--runs", runs, "--corpus", corpus, "--held-out-every", "10"]
    shape = ["--layers", "2", "--hidden", "32", "--intermediate", "48", "--heads", "4", "--kv-heads", "2"]
    length = ["--context", "32", "--steps", "20", "--batch", "4", "--evaluate-every", "10"]
    assert main(["tokenizer", *common, "--vocab-size", "300"]) == 0
    assert main(["model", "toy", *common, *shape, *length]) == 0
    assert main(["export", "toy", "--runs", runs, "--out", str(out)]) == 0
    return RunFolder(root / "runs" / "toy"), out


def test_hugging_face_loads_the_folder(exported: tuple[RunFolder, Path]) -> None:
    """`from_pretrained(folder)` gives the logits of our own loader within 1e-5, and the tokenizer's very ids."""
    transformers = pytest.importorskip("transformers")
    _, folder = exported
    model = transformers.LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    words = transformers.AutoTokenizer.from_pretrained(folder)
    ids = words("Tim saw the moon")["input_ids"]
    assert ids[0] == model.config.bos_token_id == model.config.eos_token_id == 0
    assert ids == load_tokenizer(folder).encode("Tim saw the moon").ids and ids.count(0) == 1
    tokens = torch.tensor([ids])
    with torch.no_grad():
        assert torch.allclose(model(tokens).logits, load_network(folder)(tokens), atol=1e-5, rtol=0)


def test_weights_are_half_precision_under_known_names(exported: tuple[RunFolder, Path]) -> None:
    """All tensors are float16 and carry Hugging Face's names; the tied output matrix is not stored twice."""
    _, folder = exported
    weights = load_file(folder / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}
    assert {"model.embed_tokens.weight", "model.layers.1.self_attn.q_proj.weight", "model.norm.weight"} < set(weights)
    assert "lm_head.weight" not in weights


def test_the_card_repeats_the_record(exported: tuple[RunFolder, Path]) -> None:
    """Loss, tokens, command, licence and data in the card are those of the run."""
    run, folder = exported
    card, record = (folder / "README.md").read_text(encoding="utf-8"), run.read_record()
    for fact in (f"{record['best']['loss']:.3f} nats", f"{record['tokens']:,}", run.settings()["command"], "toy.txt"):
        assert fact in card
    assert card.startswith("---\nlicense: apache-2.0\n")


def test_an_unfinished_run_says_so(tmp_path: Path) -> None:
    """A card of a run that goes on begins with the word preliminary."""
    trainer = Trainer(task(tmp_path / "run", recipe()))
    run = trainer.task.folder
    with pytest.raises(NotFoundError, match="no evaluated weights"):
        export(run, tmp_path, tmp_path / "out")
    (tmp_path / "run" / "settings.json").unlink()
    settings = {"name": "toy", "command": "…", "started": "2026-01-01", "hardware": "…", "corpus": ["stories.txt"]}
    counts = {"train_documents": 9, "train_tokens": 99, "held_out_documents": 1, "held_out_tokens": 9}
    taught = {"lessons": {"target": "a target", "text_windows": 7, "own_windows": 5}, "stages": []}
    shape = {name: getattr(trainer.task.network.shape, name) for name in ModelShape.__slots__}
    run.begin({**settings, "shape": shape, "recipe": recipe().to_json(), "data": counts, **taught})
    trainer._timed_step()
    trainer._evaluate(1.0)
    save_tokenizer(tokenizer(), tmp_path)
    export(run, tmp_path, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "**Preliminary:** exported after 1 of 12 steps" in card
    assert "CDLA-Sharing-1.0" in card and "draft for `a target`" in card


@pytest.mark.parametrize("name", FAMILY)
def test_bundled_model_is_whole(name: str) -> None:
    """Each bundled folder loads, has a card, ids that its tokenizer knows, and no file of 9,000,000 bytes or more."""
    folder = bundled_path(name)
    model = load_network(folder)
    assert all(file.stat().st_size < SHARD_BYTES for file in folder.iterdir())
    assert name.endswith(f"-{model.shape.num_hidden_layers}x{model.shape.hidden_size}")
    assert model.shape.vocab_size == 4096
    assert name in (folder / "README.md").read_text(encoding="utf-8")
    with torch.no_grad():
        assert torch.isfinite(model(torch.arange(model.shape.context)[None])).all()


def test_the_family_shares_its_tokenizer() -> None:
    """Any draft works with any target: their tokenizer files are equal to the byte."""
    assert len({(bundled_path(name) / "tokenizer.json").read_bytes() for name in FAMILY}) == 1


def test_assets_are_light() -> None:
    """All assets together take at most 90 MB, and no file is left over."""
    files = [file for file in assets_dir().rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= 90_000_000
    assert {folder.name for folder in (assets_dir() / "models").iterdir()} == set(FAMILY)


def test_a_curve_is_drawn(exported: tuple[RunFolder, Path]) -> None:
    """The picture of the losses is a PNG that the card shows."""
    _, folder = exported
    assert (folder / CURVE).read_bytes().startswith(b"\x89PNG")
    assert f"]({CURVE})" in (folder / "README.md").read_text(encoding="utf-8")
