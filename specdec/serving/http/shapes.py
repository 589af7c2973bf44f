"""Runs in OpenAI's shapes: completions and chat completions, whole and in chunks. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from specdec.records import FinishReason, Round
from specdec.serving.http import logprobs

REASONS: dict[FinishReason, str] = {"eos": "stop", "stop": "stop", "length": "length", "context": "length"}


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of an answer: its text and the rounds that it comes from; `reason` with the last one."""

    text: str
    steps: Sequence[Round] = ()
    reason: FinishReason | None = None
    offset: int = 0

    @property
    def finish_reason(self) -> str | None:
        """In OpenAI's words."""
        return None if self.reason is None else REASONS[self.reason]


@dataclass(frozen=True, slots=True)
class Completion:
    """`/v1/completions`: chunks look like the whole. `whole` and `chunk` are OpenAI's names of the objects."""

    logprobs: bool
    prefix: ClassVar[str] = "cmpl-"
    whole: ClassVar[str] = "text_completion"
    chunk: ClassVar[str] = "text_completion"

    def opening(self) -> None:
        """Nothing stands before the text."""

    def answer(self, said: Said) -> dict[str, Any]:
        """The text."""
        tokens = logprobs.legacy(said.steps, said.offset) if self.logprobs and said.steps else None
        return {"index": 0, "text": said.text, "logprobs": tokens, "finish_reason": said.finish_reason}

    part = answer


@dataclass(frozen=True, slots=True)
class Chat:
    """`/v1/chat/completions`: the role goes first, then the message's text bit by bit."""

    logprobs: bool
    prefix: ClassVar[str] = "chatcmpl-"
    whole: ClassVar[str] = "chat.completion"
    chunk: ClassVar[str] = "chat.completion.chunk"

    def opening(self) -> dict[str, Any]:
        """The role."""
        return self._choice({"delta": {"role": "assistant", "content": ""}}, Said(""), tokens=False)

    def answer(self, said: Said) -> dict[str, Any]:
        """The message."""
        message = {"role": "assistant", "content": said.text, "refusal": None}
        return self._choice({"message": message}, said, tokens=self.logprobs)

    def part(self, said: Said) -> dict[str, Any]:
        """More of its text."""
        return self._choice({"delta": {"content": said.text} if said.text else {}}, said, tokens=self.logprobs)

    def _choice(self, what: dict[str, Any], said: Said, *, tokens: bool) -> dict[str, Any]:
        shown = logprobs.chat(said.steps) if tokens and said.steps else None
        return {"index": 0, **what, "logprobs": shown, "finish_reason": said.finish_reason}


Shape = Completion | Chat
