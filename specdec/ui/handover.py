"""What the settings say, for elsewhere: a link to this page, a command line, a snippet of Python.

A link is a stranger's: a value that its control would not take is left out, and the control keeps its own.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any
from urllib.parse import urlencode

import gradio as gr

from specdec.config import LIMITS, SamplingParams
from specdec.errors import ConfigError
from specdec.serving import GenerationRequest
from specdec.ui.watch import Form

PLAIN = SamplingParams()  # what neither a command nor a snippet need mention
LONGEST_LINK = 7_800  # characters of a query; a whole address of 8,000 is what servers should take (RFC 9110, 4.1)


def link(form: Form) -> str:
    """The settings as a query, "?prompt=…"; ConfigError where it is longer than servers take."""
    query = "?" + urlencode({name: value for name, value in asdict(form).items() if value is not None})
    if len(query) > LONGEST_LINK:
        raise ConfigError(
            f"this prompt is too long for a link, which would have {len(query):,} characters where servers take about "
            "8,000: hand on the command, or the run as a file"
        )
    return query


def command(form: Form) -> str:
    """The `python -m specdec generate …` that runs the same; ConfigError where the settings cannot be meant.

    There `--prompt=-` means standard input, so that the prompt "-" comes from there.
    """
    asked = form.request()
    lookahead, rule = asked.speculation.num_speculative_tokens, asked.speculation.acceptance
    options: dict[str, Any] = {"--target": asked.target, "--draft": asked.draft, "--prompt": asked.prompt}
    options |= {"-k": lookahead} | {_option(name): value for name, value in _chosen(asked.params).items()}
    options |= {"--acceptance": rule} if rule != "rejection" else {}
    words = [word for name, value in options.items() for word in _words(name, str(value))]
    program = shlex.join(["python", "-m", "specdec", "generate", *words, *["--chat"] * asked.chat])
    return f"printf %s - | {program}" if asked.prompt == "-" else program


def snippet(form: Form) -> str:
    """A program that runs the same; ConfigError where the settings cannot be meant."""
    asked = form.request()
    drafter, names = _drafter(asked)
    chosen = ", ".join(f"{name}={value!r}" for name, value in _chosen(asked.params).items())
    imported = sorted({"Engine", "SamplingParams", "SpeculativeConfig", "load_model", *names})
    prompt = "target.tokenizer.apply_chat_template([{'role': 'user', 'content': prompt}])" if asked.chat else "prompt"
    speculation = replace(asked.speculation, top=0)
    settings = f"{speculation.num_speculative_tokens!r}, {speculation.acceptance!r}"
    return f"""from specdec import {", ".join(imported)}

target = load_model({asked.target!r})
engine = Engine(target{drafter})
prompt = {asked.prompt!r}
trace = engine.generate({prompt}, SamplingParams({chosen}), SpeculativeConfig({settings}))
print(trace.text, trace.stats.acceptance_rate)
"""


def restored(query: Mapping[str, str], controls: Sequence[Any]) -> list[Any]:
    """For each control, in the order of `Form`'s fields, the value that a link gives it, or Gradio's "leave it"."""
    names = [spec.name for spec in fields(Form)]
    return [
        _value(control, query[name]) if name in query else gr.skip()
        for name, control in zip(names, controls, strict=True)
    ]


def _chosen(params: SamplingParams) -> dict[str, Any]:
    """The sampling settings that are not as they are anyway."""
    return {name: value for name, value in asdict(params).items() if value != getattr(PLAIN, name)}


def _option(name: str) -> str:
    return "--max-new-tokens" if name == "max_tokens" else "--" + name.replace("_", "-")


def _words(name: str, value: str) -> list[str]:
    """An option and its value, in one word where the value would be taken for an option."""
    return [f"{name}={value}"] if value.startswith("-") else [name, value]


def _drafter(asked: GenerationRequest) -> tuple[str, tuple[str, ...]]:
    """(what follows the target in the engine's arguments, names to import for it)."""
    if asked.draft == "none":
        return "", ()
    if asked.draft == "ngram":
        return ", NgramDrafter()", ("NgramDrafter",)
    return f", ModelDrafter(load_model({asked.draft!r}))", ("ModelDrafter",)


def _value(control: Any, text: str) -> Any:
    """`text` as a value of `control`, or Gradio's "leave it" where it is none."""
    if isinstance(control, gr.Textbox):
        return text
    if isinstance(control, gr.Checkbox):
        return text == "True"
    if isinstance(control, gr.Dropdown | gr.Radio):
        return text if text in [value for _, value in control.choices] else gr.skip()
    try:
        number = float(text)
    except ValueError:
        return gr.skip()
    if isinstance(control, gr.Slider):
        fits = control.minimum <= number <= control.maximum and (control.step != 1 or number.is_integer())
        return number if fits else gr.skip()
    return int(number) if number.is_integer() and 0 <= number <= LIMITS.max_seed else gr.skip()
