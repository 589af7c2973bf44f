"""`serve`: the HTTP API, by itself."""

import argparse

from specdec.cli.setting_options import chosen_settings
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
    settings = Settings.from_environment(host=options.host, options=chosen_settings(options))
    serve(Service(settings, offers=catalogue(options.model)), options.host, options.port)
