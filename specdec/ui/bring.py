"""The tab Models: what the project knows by name, what each would take, and a button that fetches it.

The browser asks how a download goes (`assets/page/bring.js`), since it goes on whoever watches; once a model has
arrived, the page's lists of models are brought up to date.
"""

from collections.abc import Callable
from typing import Any

import gradio as gr

from specdec.checkpoints import ModelInfo
from specdec.checkpoints.memory import needed_bytes
from specdec.errors import MemoryLimitError, SpecdecError
from specdec.serving import Job, Offer, Service, drafts_for
from specdec.ui.assets import page_file
from specdec.ui.models import lists
from specdec.ui.view import count
from specdec.ui.watch import sentence

BRING = "import(new URL('ui/bring.js', document.baseURI)).then((b) => b.start(element, props, server, trigger));"


def panel(service: Service) -> gr.HTML:
    """What the tab shows."""
    return gr.HTML(
        "",
        html_template=page_file("bring.html"),
        js_on_load=BRING,
        apply_default_css=False,
        elem_id="bring",
        server_functions=functions(service),
    )


def wire(service: Service, view: gr.HTML, models: list[gr.Dropdown]) -> None:
    """Bring target and drafter, `models`, up to date whenever the browser has seen a model arrive."""
    view.submit(
        lambda *pair: lists(service.offers, *pair),
        models,
        models,
        api_visibility="private",
        show_progress="hidden",
        queue=False,
    )


def look(service: Service) -> dict[str, Any]:
    """All that the tab shows."""
    bringing = service.bringing
    job = job_row(bringing.job)  # before the lists: a job seen to be done is then in them
    known = bringing.models()
    offers = [Offer.of(model) for model in known]
    return {
        "allowed": bringing.allowed,
        "models": [_row(service, model, offers) for model in known],
        "job": job,
        "offers": [offer.name for offer in service.offers],
    }


def functions(service: Service) -> list[Callable[[Any], dict[str, Any]]]:
    """What the browser may call, each with one text, each answered with what the tab shows, or {"error": …}."""

    def state(_: Any) -> dict[str, Any]:
        return look(service)

    def progress(_: Any) -> dict[str, Any]:
        return {"job": job_row(service.bringing.job)}

    def fetch(name: Any) -> dict[str, Any]:
        try:
            service.bringing.start(name if isinstance(name, str) else "")
        except SpecdecError as error:
            return {"error": sentence(str(error))}
        return look(service)

    def cancel(_: Any) -> dict[str, Any]:
        service.bringing.cancel()
        return {"job": job_row(service.bringing.job)}

    return [state, progress, fetch, cancel]


def _row(service: Service, model: ModelInfo, offers: list[Offer]) -> dict[str, Any]:
    """A model's line: facts as they are read, where it is, and why it cannot be fetched, if so."""
    drafts = [offer.name for offer in drafts_for(Offer.of(model), offers)]
    facts = [
        f"{count(model.parameters)} parameters",
        f"{megabytes(model.size)} to download",
        f"{megabytes(needed_bytes(model.parameters))} of memory",
        model.licence or "licence unknown",
    ]
    return {
        "name": model.name,
        "facts": facts,
        "use": _use(model, drafts),
        "here": model.path is not None,
        "offered": any(offer.name == model.name for offer in service.offers),
        "refused": _refusal(service, model),
    }


def _use(model: ModelInfo, drafts: list[str]) -> str:
    """How it is used: with what, or for what."""
    if model.role == "draft":
        return "A draft for its larger relatives."
    return f"Drafter: n-gram lookup{''.join(f', {name}' for name in drafts)}."


def _refusal(service: Service, model: ModelInfo) -> str:
    try:
        service.bringing.require_room(model.name, model.parameters)
    except MemoryLimitError as error:
        return sentence(str(error))
    return ""


def job_row(job: Job | None) -> dict[str, Any] | None:
    """A download as the browser is told of it."""
    if job is None:
        return None
    said = {
        "asking": "Asking the Hugging Face Hub …",
        "fetching": f"{megabytes(job.done)} of {megabytes(job.total)}",
        "done": f"{job.name} is in the lists of models now.",
        "failed": sentence(job.problem),
        "cancelled": "Cancelled.",
    }[job.phase]
    share = job.done / job.total if job.total else 0
    return {"name": job.name, "phase": job.phase, "running": job.running, "share": round(share, 4), "said": said}


def megabytes(size: int) -> str:
    """Bytes in units of 10⁶ or 10⁹."""
    return (
        f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB" if size < 1e7 else f"{size / 1e6:,.0f} MB"
    )
