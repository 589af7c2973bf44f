"""The real page over toy models, as a program: `python -m tests.ui.toy_server PORT slow|hostile|broken`.

"slow" takes 40 ms for each pass of the target, so that there is time to stop it; "hostile" speaks in attacks; of
"broken" the draft fails with every pass.
"""

import sys
import time
from collections.abc import Sequence
from typing import Any

from specdec.serving import Offer, Service, Settings
from specdec.ui.launch import launch
from tests.serving.toys import WORDS, Toy, ToyNetwork, toy

ATTACKS = (
    "<img src=x onerror=HIT>",
    "<IMG SRC=x ONERROR='HIT'>",
    "<svg onload=HIT>",
    "<svg/onload=HIT//",
    "<script>HIT</script>",
    "</script><script>HIT</script>",
    "</textarea><script>HIT</script>",
    "</style><img src=x onerror=HIT>",
    "<!--<img src=--><img src=x onerror=HIT>-->",
    "<body onload=HIT>",
    "<iframe srcdoc='<script>parent.HIT</script>'></iframe>",
    "<iframe src=javascript:HIT></iframe>",
    "<a href=javascript:HIT autofocus onfocus=HIT>x</a>",
    "<details open ontoggle=HIT>",
    "<video><source onerror=HIT></video>",
    "<input autofocus onfocus=HIT>",
    "<math><mtext></p><img src=x onerror=HIT>",
    "<object data=javascript:HIT></object>",
    "<style>@import'javascript:HIT'</style>",
    '"><img src=x onerror=HIT>',
    "'-HIT-'",
    "javascript:HIT",
    "data:text/html,<script>HIT</script>",
    "${HIT}",
    "`${HIT}`",
    "\\`+(HIT)+\\`",
    "{{constructor.constructor('HIT')()}}",
    "{{#with this}}{{lookup constructor 'HIT'}}{{/with}}",
    "\\u003cimg src=x onerror=HIT>",
    "&lt;img src=x onerror=HIT&gt;",
)
HOSTILE = tuple(" " + attack.replace("HIT", f"window.hit={i}") for i, attack in enumerate(ATTACKS, 1))


class SlowNetwork(ToyNetwork):
    """A network that takes its time."""

    def forward(self, *arguments: Any, **options: Any) -> Any:
        time.sleep(0.04)
        return super().forward(*arguments, **options)


class BrokenNetwork(ToyNetwork):
    """A network that fails."""

    def forward(self, *arguments: Any, **options: Any) -> Any:
        raise RuntimeError("out of memory <img src=x onerror=window.hit=1>")


def load(name: str, words: Sequence[str], kind: str) -> Toy:
    """A counting target, quick or slow, and a draft that errs on every third token, or is broken."""
    model = toy(name, errs=3 if name == "draft" else 0, words=words)
    if kind == "slow" and name == "target":
        model.network = SlowNetwork(len(words))
    if kind == "broken" and name == "draft":
        model.network = BrokenNetwork(len(words))
    return model


def main(port: int, kind: str) -> None:
    """Serve until killed."""
    words = HOSTILE if kind == "hostile" else WORDS
    offers = [Offer("target", role="target"), Offer("draft", role="draft")]
    service = Service(Settings(max_new_tokens=5_000), lambda name: load(name, words, kind), offers)
    launch(service, "127.0.0.1", port)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
