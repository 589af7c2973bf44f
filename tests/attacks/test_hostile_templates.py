"""Chat templates from a stranger's checkpoint: one clear error, in bounded time and memory, and nothing reached."""

import time
import tracemalloc

import pytest

from specdec.checkpoints.chat_template import MAX_TEMPLATE_LENGTH, ChatTemplate
from specdec.checkpoints.template_budget import DEADLINE_S
from specdec.errors import LoadError
from tests.attacks.templates import REACHING, RUNAWAY

MESSAGES = [{"role": "user", "content": "Hi"}]
MAX_PEAK = 64 << 20


def refused(template: str) -> str:
    """The message of the LoadError that rendering ends in, in bounded time."""
    start = time.perf_counter()
    with pytest.raises(LoadError) as caught:
        ChatTemplate(template, {}).pieces(MESSAGES, {}, add_generation_prompt=True)
    assert time.perf_counter() - start < DEADLINE_S + 10
    message = str(caught.value)
    assert message.startswith("the chat template")
    assert "\n" not in message
    assert len(message) < 300
    return message


@pytest.mark.parametrize("name", RUNAWAY)
def test_a_template_that_runs_away_is_stopped(name: str) -> None:
    """Loops without end, texts and lists that double, comparisons of what doubled: stopped by the budget."""
    refused(RUNAWAY[name])


@pytest.mark.parametrize("name", ["text times a number", "doubling with ~", "doubling a list", "nesting by map"])
def test_a_template_that_runs_away_takes_little_memory(name: str) -> None:
    """At most 64 MiB at its height."""
    refused(RUNAWAY[name])
    tracemalloc.start()
    try:
        refused(RUNAWAY[name])
        assert tracemalloc.get_traced_memory()[1] <= MAX_PEAK
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", REACHING)
def test_a_template_reaches_nothing_outside(name: str) -> None:
    """No attribute of Python's, no file, no method that pads, writes or formats."""
    refused(REACHING[name])


def test_a_template_of_any_length_is_not_compiled() -> None:
    """256 KiB is the limit."""
    with pytest.raises(LoadError, match="longer than"):
        ChatTemplate("x" * (MAX_TEMPLATE_LENGTH + 1), {})


def test_one_template_does_not_spend_anothers_budget() -> None:
    """Each rendering has its own: many renderings of an honest template never run out."""
    template = ChatTemplate("{% for m in messages %}{{ m.content * 50000 }}{% endfor %}", {})
    for _ in range(200):
        ((text, control),) = template.pieces(MESSAGES, {}, add_generation_prompt=False)
        assert (len(text), control) == (100_000, True)


def test_a_long_honest_chat_is_rendered() -> None:
    """500 messages of 1,000 characters stay far from any limit."""
    template = ChatTemplate("{% for m in messages %}<{{ m.role ~ '|' + m.content | trim }}>{% endfor %}", {})
    messages = [{"role": "user", "content": "x" * 1000}] * 500
    ((text, _),) = template.pieces(messages, {}, add_generation_prompt=False)
    assert len(text) == 500 * 1007
