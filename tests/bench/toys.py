"""A shelf of toys: counting models, so that every figure of a contest is known beforehand."""

from specdec.bench.plan import Contest, Scope, Way, Work
from specdec.bench.shelf import Shelf
from tests.serving.toys import toy

TARGET, DRAFT = "toy", "draft-toy"
SCOPE = Scope(
    suites=("k", "prompt-length"),
    targets=(TARGET,),
    drafts=(DRAFT,),
    ks=(0, 2, "auto"),
    lengths=(1,),
    both=False,
    tokens=12,
    prompts=2,
    repeat=2,
    threads=1,
)


def shelf() -> Shelf:
    """The target counts; the draft does, too, and errs on every third token."""
    return Shelf(1, lambda name: toy(name, errs=3 if name.startswith("draft") else 0))


def contest(*ways: Way, repeat: int = 2, temperature: float = 0.0) -> Contest:
    """Two prompts of twelve tokens."""
    return Contest("k", Work(TARGET, "story", temperature, 12, 2), ways, repeat)
