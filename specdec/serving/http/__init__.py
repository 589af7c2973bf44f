"""The service over HTTP: OpenAI's endpoints, and one that tells every round.

Read in this order: `schemas.py` and `requests.py` (what may be asked), `running.py` and `desk.py` (a generation in an
asynchronous world), `shapes.py`, `logprobs.py`, `usage.py`, `openai.py`, `events.py` (answers), `wire.py`, `errors.py`
and `failing.py` (bytes; what goes wrong), `tracing.py`, `spanning.py`, `door.py`, `body.py` (what every request
passes), `observing.py` (what is told of it to `specdec.telemetry`), `routes.py`, `app.py`, `server.py`.
"""

from specdec.serving.http.app import attach, create_api
from specdec.serving.http.server import serve

__all__ = ["attach", "create_api", "serve"]
