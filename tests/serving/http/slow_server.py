"""The API over toys whose target takes 20 ms for a pass, as a program; `GET /line` tells how many are in the line."""

import time
from dataclasses import replace
from typing import Any

from specdec.serving import Service, Settings
from specdec.serving.http import serve
from specdec.serving.http.routes import router
from tests.serving.http.servers import OFFERS
from tests.serving.toys import Toy, load_toy


def slow(name: str) -> Toy:
    """A toy that takes its time."""
    model = load_toy(name)
    quick = model.network.forward

    def forward(*arguments: Any, **options: Any) -> Any:
        time.sleep(0.02)
        return quick(*arguments, **options)

    model.network.forward = forward  # type: ignore[method-assign]
    return model


if __name__ == "__main__":
    settings = replace(Settings.from_environment(), max_new_tokens=5_000, requests_per_minute=0)
    service = Service(settings, slow, OFFERS)
    router.add_api_route("/line", lambda: service.standing)
    serve(service, "127.0.0.1", 0)
