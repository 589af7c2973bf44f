"""The model card, written from a run's settings and record: no figure in it is typed by hand.

Format: Hugging Face model cards, https://huggingface.co/docs/hub/model-cards.
"""

import math
from typing import Any

ABOUT = {
    "stories.txt": (
        "`stories.txt`: parts of TinyStories, short synthetic stories in the words of a small child, written by "
        'GPT-3.5 and GPT-4 (Ronen Eldan and Yuanzhi Li, "TinyStories: How Small Can Language Models Be and Still '
        'Speak Coherent English?", [arXiv:2305.07759](https://arxiv.org/abs/2305.07759), '
        "[data set](https://huggingface.co/datasets/roneneldan/TinyStories)). The data set's licence is "
        "CDLA-Sharing-1.0; no part of the data is in this folder."
    ),
    "classics.txt": (
        "`classics.txt`: children's books from Project Gutenberg, first published before 1929 and in the public "
        "domain in the United States."
    ),
}

CURVE = "loss.png"
CARD = """---
license: apache-2.0
language: en
pipeline_tag: text-generation
tags: [llama, speculative-decoding]
---
# {name}

{intro}

{status}

| | |
| --- | --- |
{table}

## A sample

Temperature 0.8, seed 0, the prompt in bold, as it came out of the exported weights:

{story}

## Data

{data}

Of {documents:,} documents every {every}th was held out, from the tokenizer too: {train_tokens:,} tokens to train on,
{held_out_tokens:,} to measure with. In the stream each document begins with `<|endoftext|>`, so give the model that
token before a prompt.

## Training

```
{commands}
```

AdamW, {precision}, batches of {batch} windows of {context} tokens, learning rate {learning_rate:g} after a warm-up over
{warmup_fraction:.0%} of the run, down a cosine to {final_fraction:.0%} of it, weight decay {weight_decay:g}, dropout \
{dropout:g}, seed {seed}.
{teaching}{lengths}The weights kept are those of step {best_step:,}, the best on held-out text.

![Loss by tokens seen]({curve})

## Limits

A small model for showing how decoding works: it tells simple English stories and knows nothing else, invents freely,
and is not to be relied on for anything. Positions beyond {context} were never trained.

## Licence

The weights are under Apache-2.0, like the project.
"""


def model_card(settings: dict[str, Any], record: dict[str, Any], *, parameters: int, prompt: str, story: str) -> str:
    """`README.md` of an exported model; `story` is a sampled continuation of `prompt`."""
    data, shape, recipe = settings["data"], settings["shape"], settings["recipe"]
    return CARD.format(
        **recipe,
        name=settings["name"],
        intro=_intro(settings, parameters),
        status=_status(record),
        table="\n".join(f"| {name} | {value} |" for name, value in _facts(settings, record, parameters)),
        story=_quote(f"**{prompt}**{story}"),
        data=_data(settings),
        documents=data["train_documents"] + data["held_out_documents"],
        every=recipe["held_out_every"],
        train_tokens=data["train_tokens"],
        held_out_tokens=data["held_out_tokens"],
        curve=CURVE,
        commands="\n".join([*(stage["command"] for stage in settings["stages"]), settings["command"]]),
        context=shape["context"],
        best_step=record["best_step"],
        teaching=_teaching(settings),
        lengths="".join(map(_length, settings["lengths"])),
    )


def _intro(settings: dict[str, Any], parameters: int) -> str:
    shape, teacher = settings["shape"], _teacher(settings)
    size = f"{shape['num_hidden_layers']} layers × {shape['hidden_size']}, {parameters:,} parameters"
    role = f"the draft for `{teacher}`, distilled from it" if teacher else "trained from scratch"
    return f"A Llama of {size}, {role}: it writes short stories for children. Bundled with specdec."


def _status(record: dict[str, Any]) -> str:
    if record["finished"]:
        return f"Finished after {record['step']:,} steps."
    of = f" of {record['total_steps']:,}" if record["total_steps"] else ""
    return f"**Preliminary:** exported after {record['step']:,}{of} steps, while training went on."


def _facts(settings: dict[str, Any], record: dict[str, Any], parameters: int) -> list[tuple[str, str]]:
    """The rows of the card's table."""
    shape, best, stages = settings["shape"], record["best"], settings["stages"]
    minutes = sum(stage["seconds"] for stage in (*stages, record)) / 60
    facts = [
        ("held-out loss", f"{best['loss']:.3f} nats a token (perplexity {math.exp(best['loss']):.2f})"),
        ("tokens seen", _tokens_seen(settings, record)),
        ("training time", f"{minutes:.0f} min, started {(*stages, settings)[0]['started'][:10]}"),
        ("hardware", settings["hardware"]),
        ("parameters", f"{parameters:,}, stored as float16"),
        ("heads", f"{shape['num_attention_heads']} of {shape['head_dim']}, {shape['num_key_value_heads']} key/value"),
        ("context", f"{shape['context']} tokens"),
        ("vocabulary", f"{shape['vocab_size']:,}, byte-level BPE"),
    ]
    if best["acceptance"] is not None:
        facts.insert(1, ("expected acceptance by its target", f"{best['acceptance']:.1%} a token at temperature 1"))
        facts.insert(2, ("same first choice as its target", f"{best['agreement']:.1%} of held-out tokens"))
    return facts


def _data(settings: dict[str, Any]) -> str:
    """What it learnt from, each file once, in the order of the stages."""
    files = [name for stage in (*settings["stages"], settings) for name in stage["corpus"]]
    return "\n".join(f"- {ABOUT.get(name, f'`{name}`')}" for name in dict.fromkeys(files))


def _tokens_seen(settings: dict[str, Any], record: dict[str, Any]) -> str:
    earlier = "".join(f"{stage['tokens']:,} of {' and '.join(stage['corpus'])}, then " for stage in settings["stages"])
    if settings["lessons"]:
        return f"{earlier}{record['tokens']:,} of lessons"
    return f"{earlier}{record['tokens']:,} ({record['tokens'] / settings['data']['train_tokens']:.1f} epochs)"


def _teacher(settings: dict[str, Any]) -> str | None:
    return settings["lessons"]["target"] if settings["lessons"] else None


def _teaching(settings: dict[str, Any]) -> str:
    """How a draft was taught; nothing for others."""
    lessons, recipe = settings["lessons"], settings["recipe"]
    if lessons is None:
        return ""
    soft = recipe["distill_weight"]
    return (
        f"Lessons: the target's distributions over {lessons['text_windows']:,} windows of the text and "
        f"{lessons['own_windows']:,} that the target wrote itself. Loss: {soft:g} × cross-entropy with the target, "
        f"{1 - soft:g} × with the text, {recipe['overlap_weight']:g} × (1 − Σ min(p, q)).\n"
    )


def _length(past: dict[str, Any]) -> str:
    """A length that was given up on the way; it set the learning rate until then."""
    planned = ", ".join(f"{value:g} {name}" for name, value in past.items() if name != "until_step")
    return f"Until step {past['until_step']:,} the run was meant to take {planned}.\n"


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())
