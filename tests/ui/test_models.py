"""The lists of models and the picture of their sizes; examples and the settings they bring."""

import json
from typing import Any

import gradio as gr
import pytest

from specdec.serving import Offer, Service, Settings
from specdec.ui import models
from specdec.ui.examples import CHAT_LABEL, INSTRUCT, KINDS, STORY_LABEL, chosen

STORIES = (
    Offer("target", 15_700_000, "target", "stories"),
    Offer("tiny-target", 4_200_000, "target", "stories"),
    Offer("draft", 900_000, "draft", "stories"),
    Offer("tiny-draft", 400_000, "draft", "stories"),
)
SMOL = (Offer(INSTRUCT, 134_515_008, "either", "smollm2"), Offer("smol-large", 1_711_376_384, "target", "smollm2"))


@pytest.mark.parametrize(
    ("asked", "pair"),
    [
        (("tiny-target", "tiny-draft"), ("tiny-target", "tiny-draft")),
        (("target", "ngram"), ("target", "ngram")),
        (("target", "none"), ("target", "none")),
        (("", ""), ("target", "draft")),
        (("/etc/passwd", "../x"), ("target", "draft")),
        (("draft", "target"), ("target", "draft")),
        ((INSTRUCT, "draft"), (INSTRUCT, "ngram")),
        (("smol-large", "draft"), ("smol-large", INSTRUCT)),
        (("path", "draft"), ("path", "draft")),
        (("path", ""), ("path", "ngram")),
    ],
)
def test_a_pair_that_does_not_fit_becomes_one_that_does(asked: tuple[str, str], pair: tuple[str, str]):
    """What is on offer and fits stays; else the first that surely fits, else n-gram lookup, which always does."""
    assert models.settle((*STORIES, *SMOL, Offer("path")), *asked) == pair


def test_only_drafters_that_fit_are_listed():
    """Of the target's own vocabulary and smaller, then n-gram and none; every target is always there."""
    targets, drafters = models.choices((*STORIES, *SMOL), "smol-large")
    assert [value for _, value in targets] == ["target", "tiny-target", INSTRUCT, "smol-large"]
    assert drafters == [
        (f"{INSTRUCT} · 135 M params", INSTRUCT),
        ("n-gram lookup · no model", "ngram"),
        ("none · plain decoding", "none"),
    ]


def test_without_any_model_the_page_still_opens():
    """Nothing chosen, plain decoding."""
    assert models.settle((), "", "") == (None, "none")


@pytest.mark.parametrize(
    ("pair", "labels", "said"),
    [
        (("target", "draft"), ["15.7 M", "900 K"], "The draft has 17 times fewer parameters than the target."),
        (("smol-large", INSTRUCT), ["1.71 B", "135 M"], "The draft has 13 times fewer parameters than the target."),
        (("target", "ngram"), ["15.7 M", "no model"], "The n-gram lookup has no parameters"),
        (("target", "none"), ["15.7 M", "no model"], "No drafter: the target writes alone."),
        (("path", "draft"), ["unknown", "900 K"], "known once it"),
        ((None, "none"), ["unknown", "no model"], "No drafter"),
    ],
)
def test_sizes_are_compared_in_words_too(pair: tuple[Any, str], labels: list[str], said: str):
    """The sentence says what the bars show: how many times smaller the draft is, to two digits."""
    told = json.loads(models.sizes((*STORIES, *SMOL, Offer("path")), *pair))
    assert list(told["labels"].values()) == labels
    assert told["said"].startswith(said) or said in told["said"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_example_brings_the_settings_under_which_it_works(kind: Any):
    """From a pair of the other sort: prompt, models, temperature and chat template change together."""
    service = Service(offers=(*STORIES, *SMOL))
    start = ("target", "draft") if kind.chat else (INSTRUCT, "ngram")
    prompt, target, draft, temperature, chat, said = chosen(service, kind, 1, *start)
    assert prompt["value"] == list(kind.prompts.values())[1]
    assert prompt["label"] == (CHAT_LABEL if kind.chat else STORY_LABEL)
    assert (target["value"], draft["value"]) == ((INSTRUCT, "ngram") if kind.chat else ("target", "draft"))
    assert (temperature, chat, said) == (kind.temperature, kind.chat, "")


def test_models_that_suit_an_example_are_left_as_they_are():
    """Who has chosen the smaller pair, or a large one with a draft, keeps it."""
    service = Service(offers=(*STORIES, *SMOL))
    for kind, pair in [(KINDS[0], ("tiny-target", "tiny-draft")), (KINDS[1], ("smol-large", INSTRUCT))]:
        _, target, draft, *_ = chosen(service, kind, 0, *pair)
        assert (target["value"], draft["value"]) == pair


@pytest.mark.parametrize(("bring", "said"), [("any", "fetch it under Models"), ("off", "your own machine")])
def test_where_the_model_is_not_there_a_sentence_says_what_to_bring(bring: str, said: str):
    """The prompt is filled in all the same, and nothing else is changed."""
    service = Service(Settings(bring=bring), offers=STORIES)
    for kind in KINDS[1:]:
        prompt, *others, note = chosen(service, kind, 0, "target", "draft")
        assert prompt["value"] == next(iter(kind.prompts.values()))
        assert others == [gr.skip()] * 4
        assert INSTRUCT in note
        assert said in note
    assert chosen(service, KINDS[0], 0, "target", "draft")[-1] == ""


def test_every_example_is_told_apart():
    """No two buttons bear the same words, and no two prompts are the same."""
    for words in ([label for kind in KINDS for label in kind.prompts], [p for k in KINDS for p in k.prompts.values()]):
        assert len(words) == len(set(words)) >= 12
