"""Which models are on offer: those that are here, and those that were named."""

from specdec.checkpoints import DEFAULT_DRAFT, DEFAULT_TARGET
from specdec.serving import Offer, catalogue, drafts_for, targets
from specdec.serving.defaults import default_draft, default_target


def test_the_bundled_pair_comes_first():
    """The defaults lead, with their sizes and roles, so that a page's first choice needs no download."""
    target, draft = catalogue()[:2]
    assert (target.name, target.role) == (DEFAULT_TARGET, "target")
    assert (draft.name, draft.role) == (DEFAULT_DRAFT, "draft")
    assert target.parameters is not None
    assert draft.parameters is not None
    assert target.parameters > 4 * draft.parameters > 0


def test_named_models_are_added_once_and_nothing_else_is_invented():
    """A folder or file is offered as it was named; a known model comes with its size, downloaded or not."""
    here = catalogue()
    offers = catalogue(["some/folder", "gpt2", "some/folder", DEFAULT_TARGET])
    assert offers[-1] == Offer("some/folder")
    assert [offer.name for offer in offers].count("some/folder") == 1
    assert [offer.name for offer in offers].count(DEFAULT_TARGET) == 1
    assert next(offer for offer in offers if offer.name == "gpt2").parameters == 124_439_808
    assert {offer.name for offer in offers} == {offer.name for offer in here} | {"some/folder", "gpt2"}


def test_drafts_fit_their_target():
    """Smaller, of the same vocabulary, not the target itself; one that nobody knows is the engine's to judge."""
    offers = [
        Offer("large", 100, "target", "a"),
        Offer("either", 50, "either", "a"),
        Offer("small", 10, "draft", "a"),
        Offer("foreign", 10, "draft", "b"),
        Offer("unknown"),
    ]
    fits = {target.name: [draft.name for draft in drafts_for(target, offers)] for target in targets(offers)}
    assert fits == {
        "large": ["either", "small", "unknown"],
        "either": ["small", "unknown"],
        "unknown": ["either", "small", "foreign"],
    }


def test_the_draft_that_nobody_named_shares_the_vocabulary():
    """The first that does; n-grams, which fit any target, where none does or the target is not on offer."""
    offers = [
        Offer("unknown"),
        Offer("large", 100, "target", "a"),
        Offer("foreign", 10, "draft", "b"),
        Offer("small", 10, "draft", "a"),
        Offer("smaller", 5, "draft", "a"),
        Offer("lonely", 100, "target", "c"),
    ]
    assert {name: default_draft(offers, name) for name in ("large", "lonely", "elsewhere")} == {
        "large": "small",
        "lonely": "ngram",
        "elsewhere": "ngram",
    }
    assert (default_target(offers), default_target([])) == ("unknown", None)
    assert default_draft(catalogue(), DEFAULT_TARGET) == DEFAULT_DRAFT
