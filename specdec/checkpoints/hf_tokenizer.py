"""The tokenizer of a Hugging Face folder: `tokenizer.json`, and from `tokenizer_config.json` what belongs to text.

That is the BOS token, whether texts begin with it, and the chat template, which newer folders keep in
`chat_template.jinja`. A folder without any tokenizer is a model for ids; one with only a sentencepiece file is refused.
"""

from collections.abc import Mapping
from typing import Any

from specdec.checkpoints.chat_template import ChatTemplate
from specdec.checkpoints.files import MAX_TOKENIZER_BYTES, ModelFolder, naming
from specdec.errors import UnsupportedError
from specdec.tokenizer import Tokenizer

_ROLES = ("bos_token", "eos_token", "unk_token", "pad_token")
_OTHER_KINDS = ("tokenizer.model", "vocab.json", "tekken.json", "vocab.txt")


def tokenizer_from_hf(folder: ModelFolder) -> Tokenizer | None:
    """The folder's tokenizer; None where it has none."""
    definition = folder.text("tokenizer.json", MAX_TOKENIZER_BYTES)
    if definition is None:
        other = next((name for name in _OTHER_KINDS if folder.find(name)), None)
        if other is not None:
            raise UnsupportedError(f"{folder.path} has a tokenizer in {other}; only tokenizer.json is supported")
        return None
    settings = folder.json("tokenizer_config.json") or {}
    names = special_names(settings, folder.json("special_tokens_map.json") or {})
    template = _template(folder, settings)
    add_bos = settings.get("add_bos_token")
    with naming(folder.path / "tokenizer.json"):
        return Tokenizer(
            definition,
            bos_token=names.get("bos_token"),
            add_bos=add_bos if isinstance(add_bos, bool) else None,
            chat=None if template is None else ChatTemplate(template, names),
        )


def special_names(*sources: Mapping[str, Any]) -> dict[str, str]:
    """Spelling of the BOS, EOS, unknown and padding token; the first source that has one wins."""
    names: dict[str, str] = {}
    for source in sources:
        for role in _ROLES:
            value = source.get(role)
            text = value.get("content") if isinstance(value, dict) else value
            if isinstance(text, str):
                names.setdefault(role, text)
    return names


def _template(folder: ModelFolder, settings: Mapping[str, Any]) -> str | None:
    """The chat template called default: a file of its own, or a text or a list of named ones in the settings."""
    text = folder.text("chat_template.jinja")
    if text is not None:
        return text
    value = settings.get("chat_template")
    if value is None:
        value = (folder.json("chat_template.json") or {}).get("chat_template")
    if isinstance(value, list):
        named = [item for item in value if isinstance(item, dict) and item.get("name") == "default"]
        value = named[0].get("template") if named else None
    return value if isinstance(value, str) else None
