"""The API by itself: `python -m specdec serve`."""

import signal
import socket
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from specdec.errors import ConfigError
from specdec.serving.defaults import warm_up
from specdec.serving.http.app import create_api
from specdec.serving.http.logs import log_lines
from specdec.serving.service import Service

if TYPE_CHECKING:
    from specdec.telemetry.providers import Providers

GOODBYE_S = 8


def serve(service: Service, host: str, port: int) -> None:
    """Serve until told to stop; ConfigError where the address cannot be listened on."""
    log_lines()
    leave_with_success()
    server = ApiServer(service)
    with listening(host, port) as listener:
        threading.Thread(target=warm_up, args=(service,), name="warm-up", daemon=True).start()
        bound = listener.getsockname()[1]
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
        print(f"specdec answers at http://{shown}:{bound}  (Ctrl+C ends it)", flush=True)
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])


class ApiServer(uvicorn.Server):
    """uvicorn with the API, which it tells first when it is told to stop; headers of proxies are not believed."""

    def __init__(self, service: Service, told: "Providers | None" = None) -> None:
        self.app = create_api(service, told)
        config = uvicorn.Config(
            self.app,
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=GOODBYE_S,
        )
        super().__init__(config)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests end well, then leave as usual."""
        self.app.state.desk.close()
        await super().shutdown(sockets)


def leave_with_success() -> None:
    """Let SIGTERM end this process with status 0: uvicorn raises it once more when it has ended well."""
    signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(0)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; ConfigError where that cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"port {port} of {host} cannot be used ({error}): choose another with --port") from error
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # its connections inherit that; asyncio sets it not
    return listener
