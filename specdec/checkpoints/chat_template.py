"""A model's chat template: messages to a prompt, rendered as transformers does, in a sandbox.

Words of a user that spell a special token must not become one. Where messages contain such text it is replaced by
words that nobody can guess before rendering; afterwards the template's own special tokens are the only ones left, the
prompt is cut at them, and what lies between is text. Without such text the prompt stays whole, as in transformers.
"""

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from specdec.checkpoints.extras import optional
from specdec.errors import LoadError, RequestError

MAX_TEMPLATE_LENGTH = 256 << 10

Messages = Sequence[Mapping[str, Any]]


class ChatTemplate:
    """`source` is Jinja; `names` are what the template may call tokens by (`bos_token`, …).

    It is compiled when it is first used, so that a broken one does not keep a model from completing plain text.
    """

    def __init__(self, source: str, names: Mapping[str, str]) -> None:
        if len(source) > MAX_TEMPLATE_LENGTH:
            raise LoadError(f"the chat template is longer than {MAX_TEMPLATE_LENGTH:,} characters")
        self._source = source
        self._names = dict(names)

    def pieces(
        self, messages: Messages, specials: Mapping[str, Any], *, add_generation_prompt: bool
    ) -> list[tuple[str, bool]]:
        """The prompt in order; True where special tokens in a piece are control, False where they are text.

        `specials` maps the text of each special token to the token (`lstrip`, `rstrip`). RequestError where the
        template refuses the messages, LoadError where the template is at fault.
        """
        disguise = _Disguise(specials)
        prompt = self._render(disguise.put_on(_checked(messages)), add_generation_prompt=add_generation_prompt)
        return disguise.split(prompt, specials) if disguise.used else [(prompt, True)]

    def _render(self, messages: Any, *, add_generation_prompt: bool) -> str:
        variables = {"messages": messages, "tools": None, "documents": None} | self._names
        rendered: str = _sandbox().render(self._code, variables | {"add_generation_prompt": add_generation_prompt})
        return rendered

    @cached_property
    def _code(self) -> Any:
        return _sandbox().compile_template(self._source)


def _sandbox() -> Any:
    return optional("specdec.checkpoints.template_sandbox")  # needs Jinja


class _Disguise:
    """Keeps special-token text inside messages apart from the template's."""

    def __init__(self, specials: Iterable[str]) -> None:
        longest_first = sorted(map(re.escape, specials), key=len, reverse=True)
        self._special = re.compile("(" + ("|".join(longest_first) or "(?!)") + ")")
        self._words: dict[str, str] = {}

    @property
    def used(self) -> bool:
        """Whether any message contained special-token text."""
        return bool(self._words)

    def put_on(self, value: Any) -> Any:
        """The same messages with every special-token text replaced."""
        if isinstance(value, str):
            return self._special.sub(self._replace, value)
        if isinstance(value, dict):
            return {self.put_on(key): self.put_on(item) for key, item in value.items()}
        return [self.put_on(item) for item in value] if isinstance(value, list) else value

    def split(self, prompt: str, specials: Mapping[str, Any]) -> list[tuple[str, bool]]:
        """Text, special token, text, …; users' words restored."""
        parts = self._special.split(prompt)
        for index in range(1, len(parts), 2):
            special = specials[parts[index]]
            if special.lstrip:
                parts[index - 1] = parts[index - 1].rstrip()
            if special.rstrip:
                parts[index + 1] = parts[index + 1].lstrip()
        return [(self._take_off(part), bool(index % 2)) for index, part in enumerate(parts) if part]

    def _replace(self, match: re.Match[str]) -> str:
        word = f"\ue000{secrets.randbits(128)}\ue001"  # digits between private-use marks: no template changes those
        self._words[word] = match[0]
        return word

    def _take_off(self, text: str) -> str:
        for word, original in self._words.items():
            text = text.replace(word, original)
        return text


def _checked(value: Any) -> Any:
    """Messages rebuilt from plain JSON types, so that a template meets no object with methods of its own."""
    if not isinstance(value, list | tuple) or not value:
        raise RequestError("messages must be a list with at least one message")
    for message in value:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise RequestError("each message needs a role and a content")
    return _plain(value)


def _plain(value: Any) -> Any:
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    raise RequestError(f"messages may hold text, numbers and lists, not {type(value).__name__}")
