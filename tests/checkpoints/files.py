"""Small files of every format, written byte by byte where a library would refuse to write something wrong."""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

TEXT = (
    "Once upon a time there was a small model who wanted to guess what a large model would say. "
    "It guessed the 1st, the 22nd and the 333rd word, and the large model's nod was all it needed. "
    "Grüße aus Köln, 你好，世界 🙂 — it isn't, we'll, they've, I'd.\n\n\tThe end.  "
)
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def safetensors_bytes(header: Any, data: bytes = b"", *, length: int | None = None) -> bytes:
    """A safetensors file of any header, right or wrong."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def safetensors_of(tensors: Mapping[str, tuple[str, Sequence[int], bytes]]) -> bytes:
    """A right file of (dtype, shape, bytes) by name."""
    header: dict[str, Any] = {}
    data = b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    return safetensors_bytes(header, data)


def bpe(
    steps: Sequence[Any] = (), *, vocab_size: int = 400, nfc: bool = False, ignore_merges: bool = False
) -> Tokenizer:
    """A byte-level BPE tokenizer trained on TEXT, with GPT-2's splitting or `steps`."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*steps]) if steps else pre_tokenizers.ByteLevel(False)
    tokenizer.decoder = decoders.ByteLevel()
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=SPECIALS,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    return tokenizer


def write_tokenizer(folder: Path, tokenizer: Tokenizer, **settings: Any) -> None:
    """tokenizer.json and tokenizer_config.json."""
    tokenizer.save(str(folder / "tokenizer.json"))
    defaults = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(defaults | settings))


def write_gguf(
    path: Path,
    metadata: Mapping[str, Any],
    tensors: Mapping[str, NDArray[np.float32]],
    *,
    architecture: str = "llama",
    kinds: Mapping[str, gguf.GGMLQuantizationType] | None = None,
) -> Path:
    """A GGUF file by the `gguf` library's writer; keys without a dot belong to the architecture."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in metadata.items():
        _ADDERS[type(value)](writer, key, value)
    for name, values in tensors.items():
        kind = (kinds or {}).get(name, gguf.GGMLQuantizationType.F32)
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


_ADDERS = {
    int: gguf.GGUFWriter.add_uint32,
    float: gguf.GGUFWriter.add_float32,
    bool: gguf.GGUFWriter.add_bool,
    str: gguf.GGUFWriter.add_string,
    list: gguf.GGUFWriter.add_array,
}


def tokenizer_metadata(tokenizer: Tokenizer, pre: str, **extra: Any) -> dict[str, Any]:
    """A tokenizer's parts as GGUF keys."""
    parts = json.loads(tokenizer.to_str())
    vocab: dict[str, int] = tokenizer.get_vocab(True)
    tokens = sorted(vocab, key=vocab.__getitem__)
    specials = {token["content"] for token in parts["added_tokens"] if token["special"]}
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if token in specials else 1 for token in tokens],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in parts["model"]["merges"]],
        "tokenizer.ggml.eos_token_id": vocab["<|im_end|>"],
    } | {f"tokenizer.{key}": value for key, value in extra.items()}
