"""load_model: whatever transformers or llama.cpp's converter wrote computes here what it computes there."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, MistralConfig, MistralForCausalLM, PreTrainedModel

from specdec.checkpoints import LanguageModel, fetch, load_model
from specdec.checkpoints.loading import _name_of
from specdec.config import RopeConfig
from specdec.errors import ConfigError, LoadError, NotFoundError, UnsupportedError
from specdec.model.rotary import frequencies
from tests.checkpoints.converter import to_gguf
from tests.checkpoints.files import bpe, tokenizer_metadata, write_tokenizer
from tests.model.random_models import gpt2_reference, llama_reference, qwen2_reference, reference_logits

IDS = [5, 7, 5, 250, 3, 3, 0, 299, 17, 42, 120, 9]
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 10_000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip


def mistral_reference() -> PreTrainedModel:
    """A tiny Mistral without a window."""
    torch.manual_seed(0)
    config = MistralConfig(
        vocab_size=300, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=128, sliding_window=None, initializer_range=0.15,
        bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    return MistralForCausalLM(config).eval()


MODELS: dict[str, Callable[[], PreTrainedModel]] = {
    "llama": llama_reference,
    "llama with an output layer": lambda: llama_reference(tie_word_embeddings=False),
    "llama with every bias": lambda: llama_reference(attention_bias=True, mlp_bias=True),
    "llama with heads that are no fraction of its width": lambda: llama_reference(head_dim=24),
    "llama with linear scaling": lambda: llama_reference(
        rope_parameters={"rope_type": "linear", "rope_theta": 10_000.0, "factor": 4.0}
    ),
    "llama with llama3 scaling": lambda: llama_reference(rope_parameters=LLAMA3),
    "mistral": mistral_reference,
    "qwen2": qwen2_reference,
    "gpt2": gpt2_reference,
}


def assert_same(model: LanguageModel, reference: PreTrainedModel, tolerance: float = 2e-4) -> None:
    """The same logits at every position, relative to their size."""
    network = model.network
    ours = network.forward(IDS, network.new_cache(len(IDS)))
    theirs = reference_logits(reference, IDS)
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= tolerance * np.abs(theirs).max()


@pytest.mark.parametrize("name", MODELS)
def test_a_folder_that_transformers_saved(tmp_path: Path, name: str) -> None:
    """Every family and variant: logits equal transformers' within 2e-4 of the largest."""
    reference = MODELS[name]()
    reference.save_pretrained(tmp_path)
    assert_same(load_model(tmp_path, threads=1), reference)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_folder_in_half_precision(tmp_path: Path, dtype: torch.dtype) -> None:
    """bf16 and f16 weights: logits equal those of the same rounded weights in float32."""
    llama_reference().to(dtype).save_pretrained(tmp_path)
    assert_same(load_model(tmp_path, threads=1), AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32))


def test_a_folder_in_shards(tmp_path: Path) -> None:
    """A model in many files, with an index, is the same model."""
    reference = llama_reference()
    reference.save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
    assert_same(load_model(tmp_path, threads=1), reference)


def test_gpt2_saved_without_its_head(tmp_path: Path) -> None:
    """GPT-2 on the Hub has tensor names without `transformer.`; they are found."""
    reference = gpt2_reference()
    reference.transformer.save_pretrained(tmp_path)
    assert_same(load_model(tmp_path, threads=1), reference)


GGUF: dict[str, tuple[str, Callable[[], PreTrainedModel], dict[str, Any]]] = {
    "llama": ("llama", llama_reference, {}),
    "llama with an output layer": ("llama", lambda: llama_reference(tie_word_embeddings=False), {}),
    "llama with every bias": ("llama", lambda: llama_reference(attention_bias=True, mlp_bias=True), {}),
    "llama with wide heads": ("llama", lambda: llama_reference(head_dim=24), {}),
    "llama with linear scaling": (
        "llama",
        MODELS["llama with linear scaling"],
        {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0},
    ),
    "qwen2": ("qwen2", qwen2_reference, {}),
    "gpt2": ("gpt2", gpt2_reference, {}),
}


@pytest.mark.parametrize("name", GGUF)
def test_a_gguf_file_of_the_same_model(tmp_path: Path, name: str) -> None:
    """llama.cpp's names, its order of q and k, its transposes: undone, the logits equal transformers'."""
    architecture, make, metadata = GGUF[name]
    reference = make()
    path = to_gguf(reference, tmp_path / "model.gguf", architecture, metadata=metadata)
    assert_same(load_model(path, threads=1), reference)


def llama3_tensor(model: PreTrainedModel, **changes: float) -> dict[str, Any]:
    """The divisors of rotary frequencies that llama.cpp's converter writes for Llama 3.1."""
    rope = RopeConfig(10_000.0, "llama3", 8.0, 1.0, 4.0, 8192)
    size = model.config.head_dim
    divisors = frequencies(RopeConfig(10_000.0), size) / frequencies(rope, size)
    return {"rope_freqs.weight": torch.tensor(divisors * changes.get("times", 1.0), dtype=torch.float32)}


def test_llama3_scaling_in_a_gguf_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stored there as a tensor; recognised as the rule it came from."""
    reference = llama_reference(rope_parameters=LLAMA3 | {"original_max_position_embeddings": 8192})
    state = reference.state_dict()
    monkeypatch.setattr(reference, "state_dict", lambda: state | llama3_tensor(reference))
    monkeypatch.setitem(sys.modules["tests.checkpoints.converter"]._LLAMA, "rope_freqs", "rope_freqs")
    model = load_model(to_gguf(reference, tmp_path / "m.gguf", "llama"), threads=1)
    assert model.network.config.rope == RopeConfig(10_000.0, "llama3", 8.0, 1.0, 4.0, 8192)
    assert_same(model, reference)


def test_another_scaling_in_a_gguf_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Divisors that are not Llama 3.1's are not taken for them."""
    reference = llama_reference()
    state = reference.state_dict()
    monkeypatch.setattr(reference, "state_dict", lambda: state | llama3_tensor(reference, times=1.5))
    monkeypatch.setitem(sys.modules["tests.checkpoints.converter"]._LLAMA, "rope_freqs", "rope_freqs")
    with pytest.raises(UnsupportedError, match="rope_freqs"):
        load_model(to_gguf(reference, tmp_path / "m.gguf", "llama"))


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"general.architecture": "phi3"}, "architecture 'phi3'"),
        ({"split.count": 3}, "one part of several"),
        ({"llama.expert_count": 8}, "expert_count 8"),
        ({"llama.rope.scaling.type": "yarn"}, "rope.scaling.type 'yarn'"),
        ({"llama.rope.dimension_count": 8}, "rope.dimension_count 8"),
        ({"llama.attention.value_length": 32}, "attention.value_length 32"),
        ({"llama.attention.sliding_window": 64}, "sliding_window 64"),
    ],
)
def test_gguf_models_that_are_not_implemented_are_refused_by_name(
    tmp_path: Path, metadata: dict[str, Any], message: str
) -> None:
    """What would change the arithmetic is an error, not a wrong answer."""
    path = to_gguf(llama_reference(), tmp_path / "m.gguf", "llama", metadata=metadata)
    with pytest.raises(UnsupportedError, match=message):
        load_model(path)


@pytest.mark.parametrize(
    "key",
    ["general.architecture", "llama.block_count", "llama.rope.freq_base", "llama.rope.scaling.type", "split.count",
     "llama.expert_count", "tokenizer.ggml.model", "tokenizer.ggml.eos_token_id", "general.license"],
)  # fmt: skip
def test_a_list_where_one_value_belongs_is_refused(tmp_path: Path, key: str) -> None:
    """Metadata of another kind than expected is named, whatever would have been done with it."""
    path = to_gguf(llama_reference(), tmp_path / "m.gguf", "llama", metadata={key: [1, 2]})
    with pytest.raises(ConfigError, match=key):
        load_model(path)


def test_a_gguf_tensor_nobody_knows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A norm on queries, say, would change every logit."""
    reference = llama_reference()
    extra = {"model.layers.0.self_attn.q_norm.weight": torch.ones(16)}
    state = reference.state_dict() | extra
    monkeypatch.setattr(reference, "state_dict", lambda: state)
    monkeypatch.setitem(sys.modules["tests.checkpoints.converter"]._LLAMA, "self_attn.q_norm", "attn_q_norm")
    with pytest.raises(UnsupportedError, match=r"blk\.0\.attn_q_norm\.weight"):
        load_model(to_gguf(reference, tmp_path / "m.gguf", "llama"))


def test_a_quantised_gguf_file_is_near_the_original(tmp_path: Path) -> None:
    """Q8_0 matrices beside F32 norms, as real files mix them: logits within 5 % of the largest."""
    reference = llama_reference()
    kinds = {f"blk.{layer}.ffn_up.weight": gguf.GGMLQuantizationType.Q8_0 for layer in range(3)}
    path = to_gguf(reference, tmp_path / "m.gguf", "llama", kinds=kinds)
    assert_same(load_model(path, threads=1), reference, tolerance=0.05)


def test_what_a_language_model_says_of_itself(tmp_path: Path) -> None:
    """Name, end ids from both configurations and the chat's end of turn, tokenizer, licence, source."""
    llama_reference(vocab_size=400).save_pretrained(tmp_path)
    tokenizer = bpe()
    write_tokenizer(tmp_path, tokenizer)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [0, 7, 10_000]}))
    reports: list[tuple[str, int, int]] = []
    model = load_model(tmp_path, progress=lambda *report: reports.append(report))
    assert model.name == tmp_path.name
    assert model.eos_ids == {0, 1, 7, tokenizer.token_to_id("<|im_end|>")}
    assert model.tokenizer is not None
    assert model.tokenizer.decode(model.tokenizer.encode("Once upon")) == "Once upon"
    assert (model.licence, model.source) == ("", str(tmp_path))
    assert reports[-1][1] == reports[-1][2] == sum(p.numel() for p in llama_reference(vocab_size=400).parameters())


def test_a_gguf_file_brings_its_own_words(tmp_path: Path) -> None:
    """Tokenizer, end ids and licence come out of the file."""
    extra = {"general.license": "apache-2.0", "tokenizer.ggml.eot_token_id": 9}
    metadata = tokenizer_metadata(bpe(), "gpt-2") | extra
    path = to_gguf(llama_reference(vocab_size=400), tmp_path / "m.gguf", "llama", metadata=metadata)
    model = load_model(path, threads=1)
    assert model.tokenizer is not None
    assert model.tokenizer.encode("the large model") == bpe().encode("the large model").ids
    assert model.eos_ids == {2, 9}
    assert (model.name, model.licence) == ("m", "apache-2.0")


def test_a_folder_without_a_tokenizer_is_a_model_for_ids(tmp_path: Path) -> None:
    """Nothing but ids go in and out then."""
    llama_reference().save_pretrained(tmp_path)
    assert load_model(tmp_path, threads=1).tokenizer is None


@pytest.mark.parametrize(
    ("break_it", "error", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), NotFoundError, "has no config.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), NotFoundError, "neither model.safetensors"),
        (lambda folder: (folder / "tokenizer.model").write_bytes(b""), UnsupportedError, "tokenizer.model"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), LoadError, "tokenizer.json"),
    ],
)
def test_a_folder_with_a_part_missing_says_which(
    tmp_path: Path, break_it: Callable[[Path], object], error: type[Exception], message: str
) -> None:
    """One error that names the file."""
    llama_reference().save_pretrained(tmp_path)
    break_it(tmp_path)
    with pytest.raises(error, match=message):
        load_model(tmp_path)


def test_missing_and_misshapen_and_nan_tensors_are_named(tmp_path: Path) -> None:
    """The first tensor that is not what the configuration asks for is in the message."""
    reference = llama_reference()
    name = "model.layers.1.mlp.up_proj.weight"
    for wrong in (None, torch.zeros(3, 3), torch.full_like(reference.state_dict()[name], torch.nan)):
        state = {key: tensor for key, tensor in reference.state_dict().items() if wrong is not None or key != name}
        if wrong is not None:
            state[name] = wrong
        reference.save_pretrained(tmp_path, state_dict=state)
        with pytest.raises(LoadError, match=name):
            load_model(tmp_path, threads=1)


@pytest.mark.real
def test_loading_the_real_model_takes_little_more_than_its_weights() -> None:
    """Peak resident memory of a whole process that loads SmolLM2-135M stays below 1.5 times its float32 weights."""
    code = (
        "import sys; from specdec.checkpoints import load_model; model = load_model(sys.argv[1]);"
        "status = open('/proc/self/status').read(); peak = int(status.split('VmHWM:')[1].split()[0]) * 1024;"
        "print(peak / model.network.config.float32_bytes)"
    )
    path = fetch("smollm2-135m-instruct")
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert float(done.stdout) <= 1.5


def test_a_dot_in_a_folders_name_is_part_of_it(tmp_path: Path) -> None:
    """Only .gguf is an ending."""
    assert _name_of(tmp_path / "TinyLlama-1.1B-Chat-v1.0") == "TinyLlama-1.1B-Chat-v1.0"
    assert _name_of(tmp_path / "SmolLM2.Q4_1.gguf") == "SmolLM2.Q4_1"


@pytest.mark.parametrize("name", ["", None, 5])
def test_no_name_is_no_model(name: object) -> None:
    """An empty name is not the current folder."""
    with pytest.raises(NotFoundError):
        load_model(name)  # type: ignore[arg-type]
