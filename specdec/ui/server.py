"""The web application: our own routes first, the Gradio page mounted behind them, one process.

Nothing is loaded from anywhere else, nothing is shared, measured or reported to anyone. The files given out are the
few named in `assets.py`.
"""

import gzip
import socket
import threading
from contextlib import suppress
from functools import cache

import gradio as gr
import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import FileResponse

from specdec.serving import Service
from specdec.serving.http import attach
from specdec.serving.http.logs import log_lines
from specdec.serving.http.server import leave_with_success, listening
from specdec.ui.assets import STYLES, served
from specdec.ui.page import build

MAX_UPLOAD = "1mb"
GOODBYE_S = 3
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".png": "image/png"}  # not from the system's table


def create_app(service: Service) -> FastAPI:
    """The page over a service, ready for any ASGI server; further routes may be added by the caller."""
    app = FastAPI(title="specdec", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_api_route("/ui/{name}", _file, methods=["GET"], include_in_schema=False)
    gr.mount_gradio_app(
        app,
        build(service),
        path="/",
        app_kwargs={"docs_url": None, "redoc_url": None, "openapi_url": None},
        footer_links=[],
        run_history=False,
        show_error=False,
        max_file_size=MAX_UPLOAD,
        ssr_mode=False,
        enable_monitoring=False,
        pwa=False,
        mcp_server=False,  # Gradio's connects to whatever host a request claims to be sent to
        allowed_paths=[],
        favicon_path=str(served()["favicon.png"]),
        theme=_theme(),
        head="".join(f'<link rel="stylesheet" href="ui/{name}">' for name in STYLES),
    )
    app.state.page = app.routes[-1].app  # type: ignore[attr-defined]
    app.add_middleware(CORSMiddleware, allow_origins=[])  # the page is its own; the API, before it, has its setting
    app.state.desk = attach(app, service)
    return app


def serve(service: Service, host: str, port: int) -> None:
    """Serve until interrupted; ConfigError where the address cannot be listened on."""
    with listening(host, port) as listener:
        log_lines()
        leave_with_success()
        config = uvicorn.Config(
            create_app(service),
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GOODBYE_S,
        )
        server = _Server(config)
        threading.Thread(target=_compressed, name="compress", daemon=True).start()
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
        print(f"specdec is at http://{shown}:{port}  (Ctrl+C ends it)", flush=True)
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])
        service.bringing.cancel()  # its threads would be waited for


class _Server(uvicorn.Server):
    """uvicorn, but that it ends the pages' open heartbeats when it is told to stop, and need not wait for them."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Hang up, then leave as usual."""
        self.config.app.state.desk.close()  # type: ignore[union-attr]
        self.config.app.state.page.stop_event.set()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def _file(name: str, request: Request) -> Response:
    """One of the page's files; plotly.js compressed, because it is large."""
    path = served().get(name)
    if path is None:
        raise HTTPException(404)
    kind = MEDIA_TYPES[path.suffix]
    if name == "plotly.min.js" and "gzip" in request.headers.get("accept-encoding", ""):
        headers = {"content-encoding": "gzip", "cache-control": "max-age=86400", "vary": "accept-encoding"}
        return Response(_compressed(), media_type=kind, headers=headers)
    return FileResponse(path, media_type=kind, headers={"cache-control": "no-cache"})


@cache
def _compressed() -> bytes:
    return gzip.compress(served()["plotly.min.js"].read_bytes(), 4, mtime=0)


def _theme() -> gr.Theme:
    """System fonts and few colours: everything else is in `assets/page/`."""
    sans = [gr.themes.Font(name) for name in ("system-ui", "-apple-system", "Segoe UI", "sans-serif")]
    mono = [gr.themes.Font(name) for name in ("ui-monospace", "SF Mono", "Menlo", "monospace")]
    return gr.themes.Base(primary_hue="emerald", neutral_hue="stone", font=sans, font_mono=mono)
