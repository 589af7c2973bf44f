"""The API as an application: by itself, or at its paths inside another one."""

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from specdec.serving.http.body import Body
from specdec.serving.http.desk import Desk
from specdec.serving.http.door import Door
from specdec.serving.http.errors import ApiError, invalid
from specdec.serving.http.failing import Failing
from specdec.serving.http.observing import observe, providers
from specdec.serving.http.routes import router
from specdec.serving.http.spanning import Spanning
from specdec.serving.http.tracing import Tracing
from specdec.serving.http.wire import Json, refusal
from specdec.serving.service import Service

if TYPE_CHECKING:
    from specdec.telemetry.providers import Providers

PATHS, PREFIX = ("/generate", "/healthz", "/readyz", "/metrics"), "/v1/"
SAID = {400: "the body cannot be read", 404: "there is nothing at this path", 405: "this path has no such method"}


def create_api(service: Service, told: "Providers | None" = None) -> FastAPI:
    """The API over a service; `state.desk.close()` before the server ends lets its requests end well.

    `told`: OpenTelemetry as its caller has set it up, in place of what the settings say.
    """
    settings = service.settings
    told = told or providers(settings)
    if told:
        observe(service, told.telemetry)
    app = FastAPI(
        title="specdec",
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        redirect_slashes=False,
        middleware=[
            Middleware(Tracing),
            *([Middleware(Spanning, telemetry=told.telemetry)] if told else []),
            *([Middleware(CORSMiddleware, **_cors(settings.origins))] if settings.origins else []),
            Middleware(Door, key=settings.api_key, per_minute=settings.requests_per_minute),
            Middleware(Body),
            Middleware(Failing),
        ],
        exception_handlers={RequestValidationError: _invalid, HTTPException: _refused},
    )
    app.state.desk = Desk(service)
    app.state.providers = told
    app.include_router(router)
    return app


def attach(app: FastAPI, service: Service) -> Desk:
    """Let the API answer at its paths before anything of an application that has other things to do sees a request."""
    api = create_api(service)
    app.add_middleware(_Beside, api=api)
    desk: Desk = api.state.desk
    return desk


class _Beside:
    """One application in front of another, for some paths."""

    def __init__(self, app: ASGIApp, api: ASGIApp) -> None:
        self._app = app
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        is_ours = scope["type"] == "http" and (scope["path"] in PATHS or scope["path"].startswith(PREFIX))
        await (self._api if is_ours else self._app)(scope, receive, send)


def _cors(origins: list[str]) -> dict[str, Any]:
    """Answers may be read, and requests made with a key and an id, by pages of these sites; never with cookies."""
    return {
        "allow_origins": origins,
        "allow_methods": ["GET", "POST"],
        "allow_headers": ["Authorization", "Content-Type", "X-Request-ID", "traceparent"],
        "expose_headers": ["X-Request-ID", "Retry-After"],
    }


async def _invalid(request: Request, error: Exception) -> Json:
    return refusal(invalid(error.errors()) if isinstance(error, RequestValidationError) else _unknown(500))


async def _refused(request: Request, error: Exception) -> Json:
    if not isinstance(error, HTTPException):
        return refusal(_unknown(500))
    answer = refusal(_unknown(error.status_code))
    answer.headers.update(error.headers or {})
    return answer


def _unknown(status: int) -> ApiError:
    code = {400: "invalid_body", 404: "not_found", 405: "method_not_allowed"}.get(status, "refused")
    return ApiError(status, code, SAID.get(status, "this cannot be answered"))
