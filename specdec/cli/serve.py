"""`serve`: the HTTP API, by itself."""

import argparse
from dataclasses import replace

from specdec.errors import MissingExtraError
from specdec.serving import Service, Settings, catalogue


def serve_api(options: argparse.Namespace) -> None:
    """Run the command until it is told to stop; SpecdecError where it cannot begin."""
    try:
        from specdec.serving.http import serve
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn"):
            raise
        raise MissingExtraError(error.name, "serve") from error
    settings = Settings.from_environment()
    given = {name: getattr(options, name) for name in ("threads", "api_key", "prefix_cache_mb")}
    settings = replace(settings, **{name: value for name, value in given.items() if value is not None})
    serve(Service(settings, offers=catalogue(options.model)), options.host, options.port)
