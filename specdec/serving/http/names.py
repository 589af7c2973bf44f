"""Models by the names that clients see: a folder or file of the server's is called by its last part."""

from pathlib import Path

from specdec.serving.catalogue import Offer
from specdec.serving.defaults import default_draft, default_target
from specdec.serving.http.errors import ApiError
from specdec.serving.service import NO_MODEL_DRAFTS, Service


def public(offer: Offer) -> str:
    """What clients call it."""
    from specdec.checkpoints.locate import as_path

    return offer.name if as_path(offer.name) is None else Path(offer.name).name


def target(service: Service, asked: str | None) -> str:
    """The service's own name of the model that was asked for, or of the default one; ApiError where there is none."""
    if asked is not None:
        return _find(service, asked, "model")
    found = default_target(service.offers)
    if found is None:
        raise ApiError(404, "model_not_found", "there is no model here", param="model")
    return found


def draft(service: Service, asked: str | None, target: str) -> str:
    """The same of a draft."""
    if asked is None:
        return default_draft(service.offers, target)
    return asked if asked in NO_MODEL_DRAFTS else _find(service, asked, "draft")


def _find(service: Service, asked: str, param: str) -> str:
    for offer in service.offers:
        if asked == public(offer):
            return offer.name
    raise ApiError(404, "model_not_found", f"there is no model {asked[:80]!r} here", param=param)


def shown(service: Service, name: str) -> str:
    """What clients call a model that the service knows by `name`."""
    return next((public(offer) for offer in service.offers if offer.name == name), name)
