"""Which models a page or an API may offer: those that are on this machine, and those its owner named."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from specdec.checkpoints.registry import ModelInfo

Role = Literal["target", "draft", "either"]


@dataclass(frozen=True, slots=True)
class Offer:
    """A model on offer. `parameters` None, `vocabulary` empty: not known before it is loaded."""

    name: str
    parameters: int | None = None
    role: Role = "either"
    vocabulary: str = ""

    @classmethod
    def of(cls, model: ModelInfo) -> "Offer":
        """A model of the registry on offer."""
        return cls(model.name, model.parameters or None, model.role, model.vocabulary)


def catalogue(named: Iterable[str] = ()) -> tuple[Offer, ...]:
    """Bundled and downloaded models, the defaults first, then `named` ones (known names, folders, .gguf files).

    Raises NotFoundError where a named one is neither a name nor a path to a model.
    """
    from specdec.checkpoints import DEFAULT_DRAFT, DEFAULT_TARGET, known_models
    from specdec.checkpoints.locate import as_path
    from specdec.checkpoints.registry import require_name

    wanted = tuple(named)
    for name in wanted:
        if as_path(name) is None:
            require_name(name)
    known = {model.name: model for model in known_models() if model.path is not None or model.name in wanted}
    first = [name for name in (DEFAULT_TARGET, DEFAULT_DRAFT) if name in known]
    offers = [Offer.of(known[name]) for name in dict.fromkeys([*first, *known])]
    return (*offers, *(Offer(name) for name in dict.fromkeys(wanted) if name not in known))


def targets(offers: Iterable[Offer]) -> list[Offer]:
    """Those that may be a target."""
    return [offer for offer in offers if offer.role != "draft"]


def drafts_for(target: Offer, offers: Iterable[Offer]) -> list[Offer]:
    """Those that may draft for a target: smaller and of its vocabulary, as far as that is known."""
    return [offer for offer in offers if offer.role != "target" and _drafts(offer, target)]


def _drafts(draft: Offer, target: Offer) -> bool:
    speaks = not (draft.vocabulary and target.vocabulary) or draft.vocabulary == target.vocabulary
    smaller = not (draft.parameters and target.parameters) or draft.parameters < target.parameters
    return speaks and smaller and draft.name != target.name
