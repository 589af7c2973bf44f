"""The lists of models: what can be chosen as target, what as drafter beside it, and a picture of their sizes."""

import json
from collections.abc import Sequence
from typing import Any

import gradio as gr

from specdec.serving import Offer, Service, drafts_for, targets
from specdec.serving.defaults import default_draft
from specdec.ui.assets import page_file
from specdec.ui.view import count, model_label

Choices = list[tuple[str, str]]

DEFAULT = ""  # as a draft: the first that surely fits
NO_MODELS = {"ngram": "n-gram lookup · no model", "none": "none · plain decoding"}
SIZES = "import(new URL('ui/sizes.js', document.baseURI)).then((sizes) => sizes.start(element, props, watch));"


def find(offers: Sequence[Offer], name: str) -> Offer | None:
    """The offer of that name."""
    return next((offer for offer in offers if offer.name == name), None)


def settle(offers: Sequence[Offer], target: str, draft: str) -> tuple[str | None, str]:
    """The pair itself where it is on offer, else what comes nearest: the first target, the first drafter that fits."""
    possible = targets(offers)
    chosen = find(possible, target) or next(iter(possible), None)
    if chosen is None:
        return None, "none"
    if draft in NO_MODELS or find(drafts_for(chosen, offers), draft):
        return chosen.name, draft
    return chosen.name, default_draft(offers, chosen.name)


def choices(offers: Sequence[Offer], target: str | None) -> tuple[Choices, Choices]:
    """(targets, drafters for a target) as Gradio wants choices: (label, value)."""
    chosen = find(offers, target or "")
    drafts = drafts_for(chosen, offers) if chosen else []
    return _choices(targets(offers)), [*_choices(drafts), *((label, name) for name, label in NO_MODELS.items())]


def lists(offers: Sequence[Offer], target: str, draft: str) -> tuple[Any, Any]:
    """Both lists brought up to date, with the pair chosen in them, or what comes nearest to it."""
    pair = settle(offers, target, draft)
    known = choices(offers, pair[0])
    return gr.update(choices=known[0], value=pair[0]), gr.update(choices=known[1], value=pair[1])


def dropdowns(service: Service) -> tuple[gr.Dropdown, gr.Dropdown]:
    """Target and drafter, and below them the picture of their sizes; each follows what is chosen."""
    offers = service.offers
    pair = settle(offers, "", DEFAULT)
    known = choices(offers, pair[0])
    target = gr.Dropdown(
        known[0], value=pair[0], label="Target model", info="its distribution is the truth", elem_id="target"
    )
    draft = gr.Dropdown(known[1], value=pair[1], label="Drafter", info="what guesses ahead", elem_id="draft")
    picture = gr.HTML(
        sizes(offers, *pair),
        html_template=page_file("sizes.html"),
        js_on_load=SIZES,
        apply_default_css=False,
        elem_id="sizes",
    )
    quick: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden", "queue": False}
    target.change(lambda *pair: lists(service.offers, *pair)[1], [target, draft], draft, **quick)
    gr.on(
        [target.change, draft.change],
        lambda *pair: sizes(service.offers, *pair),
        [target, draft],
        picture,
        **quick,
    )
    return target, draft


def sizes(offers: Sequence[Offer], target: str | None, draft: str) -> str:
    """What the picture shows, as JSON: {"target": parameters, "draft": parameters, labels, "said": one sentence}."""
    large, small = (offer.parameters if offer else None for offer in (find(offers, target or ""), find(offers, draft)))
    shown = {"target": large or 0, "draft": small or 0}
    labels = {"target": _label(large), "draft": "no model" if draft in NO_MODELS else _label(small)}
    return json.dumps(shown | {"labels": labels, "said": _compared(large, small, draft)})


def _label(parameters: int | None) -> str:
    return count(parameters) if parameters else "unknown"


def _compared(large: int | None, small: int | None, draft: str) -> str:
    """The picture in one sentence."""
    if draft == "none":
        return "No drafter: the target writes alone."
    if draft == "ngram":
        return "The n-gram lookup has no parameters: it finds what followed the same words earlier in the text."
    if not (large and small):
        return "How many parameters a model has is known once it has been brought or loaded."
    return f"The draft has {large / small:.2g} times fewer parameters than the target."


def _choices(offers: Sequence[Offer]) -> Choices:
    return [(model_label(offer.name, offer.parameters), offer.name) for offer in offers]
