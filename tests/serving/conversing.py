"""Tiny transformers that read and write bytes, for services that hold conversations."""

from collections.abc import Sequence
from dataclasses import dataclass

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.model import Transformer
from specdec.serving import GenerationRequest
from tests.decoding.tiny import tiny

SEEDS = {"target": 1, "draft": 2, "other": 3}


class ByteDecoder:
    """A byte a character."""

    def push(self, token: int) -> str:
        return chr(token)

    def flush(self) -> str:
        return ""


class ByteCodec:
    """Latin-1, with a chat template of line ends."""

    fingerprint = "bytes"
    has_chat_template = True

    def encode(self, text: str, *, add_bos: bool = True) -> list[int]:
        return list(text.encode("latin-1"))

    def piece(self, token: int) -> str:
        return chr(token)

    def decoder(self) -> ByteDecoder:
        return ByteDecoder()

    def apply_chat_template(
        self, messages: Sequence[dict[str, str]], *, add_generation_prompt: bool = True
    ) -> list[int]:
        return self.encode("".join(f"{turn['role']}:{turn['content']}\n" for turn in messages))


@dataclass
class Talker:
    """A `Model`."""

    name: str
    network: Transformer
    tokenizer: ByteCodec
    eos_ids: frozenset[int] = frozenset()


def load_talker(name: str) -> Talker:
    """The loader of a service of talkers: target, draft and other, of different weights."""
    return Talker(name, tiny(SEEDS[name], vocab=256).network, ByteCodec())


def turn(said: Sequence[str], tokens: int = 12, seed: int = 0, **changes: object) -> GenerationRequest:
    """The next answer in a conversation in which user and assistant took turns to say all of `said`."""
    messages = tuple({"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(said))
    asked: dict[str, object] = {
        "prompt": "".join(said), "target": "target", "draft": "draft", "chat": True, "messages": messages,
        "params": SamplingParams(temperature=1.0, max_tokens=tokens, seed=seed, logprobs=True),
        "speculation": SpeculativeConfig(3), "reuse": True,
    }  # fmt: skip
    return GenerationRequest(**(asked | changes))  # type: ignore[arg-type]
