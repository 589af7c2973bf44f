"""What is meant where nobody says: the first target on offer, and a draft that surely fits."""

import logging
from collections.abc import Sequence

from specdec.errors import SpecdecError
from specdec.serving.catalogue import Offer, drafts_for, targets
from specdec.serving.service import Service

log = logging.getLogger(__name__)


def default_target(offers: Sequence[Offer]) -> str | None:
    """The first model that may be a target; None where nothing is on offer."""
    return next((offer.name for offer in targets(offers)), None)


def default_draft(offers: Sequence[Offer], target: str) -> str:
    """The first draft on offer of a target's vocabulary; "ngram", which fits any, where there is none."""
    chosen = next((offer for offer in offers if offer.name == target), None)
    if chosen is None:
        return "ngram"
    return next((draft.name for draft in drafts_for(chosen, offers) if draft.vocabulary == chosen.vocabulary), "ngram")


def warm_up(service: Service) -> None:
    """Make a service ready for its default pair; where that fails a warning says why, and it is not ready."""
    target = default_target(service.offers)
    try:
        if target:
            service.warm_up(target, default_draft(service.offers, target))
    except SpecdecError as error:
        log.warning("the default models could not be warmed up: %s", error)
