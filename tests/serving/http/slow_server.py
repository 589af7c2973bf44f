"""The API over toys whose target takes 20 ms for a pass, as a program. It takes a port, any where it is given none.

`GET /line` tells how many are in the line, `GET /passes` how many passes of the target were made.
"""

import sys
from dataclasses import replace

from specdec.serving import Service, Settings
from specdec.serving.http import serve
from specdec.serving.http.routes import router
from tests.serving.http.servers import OFFERS, passes, slowed

if __name__ == "__main__":
    settings = replace(Settings.from_environment(), max_new_tokens=5_000, requests_per_minute=0)
    service = Service(settings, slowed(0.02), OFFERS)
    router.add_api_route("/line", lambda: service.standing)
    router.add_api_route("/passes", lambda: passes(service))
    serve(service, "127.0.0.1", int(*sys.argv[1:]))
