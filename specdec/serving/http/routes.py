"""The endpoints: each turns what was asked into a run, and the run into an answer."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from specdec.serving.http import names, openai, requests
from specdec.serving.http.desk import Desk
from specdec.serving.http.errors import ApiError, Refusal, shutting_down
from specdec.serving.http.events import events
from specdec.serving.http.schemas import ChatBody, CompletionBody, GenerateBody, OpenAIBody
from specdec.serving.http.shapes import Chat, Completion, Shape
from specdec.serving.http.wire import EventStream, Json
from specdec.serving.service import GenerationRequest

TELEMETRY_OFF = "telemetry is off here: start this server with SPECDEC_TELEMETRY=on, and specdec[telemetry] installed"

REFUSALS: dict[int | str, dict[str, Any]] = {  # for the OpenAPI schema
    "4XX": {"model": Refusal, "description": "What was asked for cannot be meant, or not now."},
    "503": {"model": Refusal, "description": "Not now: Retry-After says when."},
}
STREAMS: dict[int | str, dict[str, Any]] = {200: {"content": {EventStream.media_type: {}}}}
TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {}}}}

router = APIRouter(responses=REFUSALS)


def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


async def _resources() -> Iterator[ExitStack]:  # type: ignore[misc]
    """What is closed once the answer is out, or its client gone."""
    with ExitStack() as stack:
        yield stack


DeskOf = Annotated[Desk, Depends(_desk)]
Resources = Annotated[ExitStack, Depends(_resources)]


@router.post("/generate", response_class=Response, responses=STREAMS)
async def generate(body: GenerateBody, desk: DeskOf, resources: Resources) -> Response:
    """Continue a prompt, and tell each round: which drafts were kept, which were refused, with p, q and u."""
    request = requests.generation(body, desk.service)
    run = await desk.begin(request, resources)
    return EventStream(events(run, names.shown(desk.service, request.target)))


@router.post("/v1/completions", responses=STREAMS)
async def completions(body: CompletionBody, desk: DeskOf, resources: Resources) -> Response:
    """Continue a prompt, as OpenAI's endpoint of this name does."""
    shape = Completion(body.logprobs is not None)
    return await _answer(body, requests.completion(body, desk.service), shape, desk, resources)


@router.post("/v1/chat/completions", responses=STREAMS)
async def chat_completions(body: ChatBody, desk: DeskOf, resources: Resources) -> Response:
    """Continue a conversation, as OpenAI's endpoint of this name does."""
    return await _answer(body, requests.chat(body, desk.service), Chat(bool(body.logprobs)), desk, resources)


async def _answer(
    body: OpenAIBody, request: GenerationRequest, shape: Shape, desk: Desk, resources: ExitStack
) -> Response:
    run = await desk.begin(request, resources)
    if not body.stream:
        return Json(await openai.whole(run, shape, body.model))
    with_usage = body.stream_options is not None and body.stream_options.include_usage
    return EventStream(openai.chunks(run, shape, body.model, with_usage=with_usage))


@router.get("/v1/models")
async def models(desk: DeskOf) -> Response:
    """The models on offer; a `draft` can only draft."""
    listed = [
        {"id": names.public(offer), "object": "model", "created": desk.opened, "owned_by": "specdec"}
        | {"role": offer.role, "parameters": offer.parameters}
        for offer in desk.service.offers
    ]
    return Json({"object": "list", "data": listed})


@router.get("/healthz")
async def healthz() -> Response:
    """Whether the process lives."""
    return Json({"status": "ok"})


@router.get("/readyz")
async def readyz(desk: DeskOf) -> Response:
    """Whether a request would be served now: the default models are warm, and the server is not about to end."""
    if desk.closing:
        raise shutting_down()
    if not desk.ready:
        raise ApiError(503, "not_ready", "the default models are not ready yet: try again in a moment", retry_after=5)
    return Json({"status": "ready"})


@router.get("/metrics", response_class=Response, responses=TEXT)
def metrics(request: Request) -> Response:
    """The metrics as Prometheus reads them."""
    providers = request.app.state.providers
    if providers is None:
        raise ApiError(404, "telemetry_off", TELEMETRY_OFF)
    text, kind = providers.text(request.headers.get("accept", ""))
    return Response(text, headers={"Content-Type": kind, "Cache-Control": "no-store"})
