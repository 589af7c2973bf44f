"""A request from the door to its last record: limits, a place in the line, models, and the engine's own stream.

A stream is a plain generator. Whoever stops pulling and closes it (or drops it, or raises) frees the place at once;
a set cancel flag or the deadline ends it before the next round with a `Finished` of its own.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.decoding import Engine, ModelDrafter, NgramDrafter
from specdec.decoding.protocols import COLD, Drafter, Model
from specdec.errors import NotFoundError, RequestError
from specdec.model import PrefixCache
from specdec.records import Finished
from specdec.serving.bringing import Bringing
from specdec.serving.catalogue import Offer
from specdec.serving.cutting import Cancelled, Records, within
from specdec.serving.gate import Gate, Ticket
from specdec.serving.guard import GuardedDrafter
from specdec.serving.speculation import Drafting, Guard, Watch
from specdec.serving.store import Loader, ModelStore
from specdec.settings import Settings

POLL_S = 0.05
NO_MODEL_DRAFTS = ("none", "ngram")


def never() -> bool:
    """A cancel flag that nobody sets."""
    return False


def unobserved(request: "GenerationRequest", records: Records) -> Records:
    """A look at the records as they go by that nobody takes."""
    return records


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """What is asked for. `draft` is "none", "ngram" or a model's name; `chat` applies the target's chat template.

    `messages` is a conversation of {"role", "content"} to be continued; without, `prompt` is one user's message. Where
    there are any, `prompt` is what they say, for limits and records. `reuse` lets the models skip what they have read
    of the prompt in earlier runs; whoever measures leaves it off.
    """

    prompt: str
    target: str
    draft: str = "none"
    chat: bool = False
    params: SamplingParams = field(default_factory=SamplingParams)
    speculation: SpeculativeConfig = field(default_factory=SpeculativeConfig)
    messages: tuple[Mapping[str, str], ...] = ()
    reuse: bool = False


class Service:
    """The one door to an engine. Safe to share between threads.

    `loader` turns a name into a model (default: `specdec.checkpoints.load_model`). `offers` are the models that
    requests may use; None allows whatever the loader finds, which is right for a user's own command line only. Models
    that `bringing` fetches join them. `ready` once it is warmed up. All runs but the warm-up's pass through `observe`.
    `prefixes` are the prompts that were read before. `clock` is the circuit breakers', in seconds.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        loader: Loader | None = None,
        offers: Sequence[Offer] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self.settings = settings or Settings()
        self._offers = () if offers is None else tuple(offers)
        self._anything = offers is None
        self._changing = threading.Lock()
        self.ready = False
        self.observe: Callable[[GenerationRequest, Records], Records] = unobserved
        self._gate = Gate(self.settings.queue_limit)
        self._guards: dict[tuple[str, str], Guard] = {}
        self.prefixes = PrefixCache(self.settings.prefix_cache_mb * 1_000_000)
        self._store = ModelStore(loader or self._load, self.settings.model_memory_mb * 1_000_000, on_evict=self._forget)
        self.bringing = Bringing(self.settings.bring, self.add, lambda: self._store.held_bytes)

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The models on offer at this moment."""
        return self._offers

    def add(self, offer: Offer) -> None:
        """Offer one more model, in the place of one of the same name where there is one."""
        with self._changing:
            self._offers = tuple(({each.name: each for each in self._offers} | {offer.name: offer}).values())

    def join(self) -> Ticket:
        """A place in the line, for callers that want to see it move; BusyError where the line is full."""
        return self._gate.join()

    @property
    def standing(self) -> int:
        """How many requests are in the line, the one inside included."""
        return self._gate.standing

    def holds(self, *names: str) -> bool:
        """Whether all these models are in memory, so that a request for them need not load anything."""
        return set(names) <= {*self._store.names, *NO_MODEL_DRAFTS}

    def check(self, request: GenerationRequest) -> None:
        """Raise RequestError or NotFoundError where a request breaks a limit that can be told without a model."""
        limits = self.settings
        if len(request.prompt) > limits.max_prompt_characters:
            raise RequestError(
                f"the prompt has {len(request.prompt):,} characters, {limits.max_prompt_characters:,} are allowed"
            )
        if request.params.max_tokens > limits.max_new_tokens:
            raise RequestError(
                f"max_tokens is {request.params.max_tokens:,}, {limits.max_new_tokens:,} are allowed here"
            )
        allowed = {offer.name for offer in self.offers}
        drafts = () if request.draft in NO_MODEL_DRAFTS else (request.draft,)
        for name in (request.target, *drafts):
            if not self._anything and name not in allowed:
                raise NotFoundError(f"there is no model {name[:80]!r} here")

    def stream(
        self, request: GenerationRequest, *, cancelled: Cancelled = never, ticket: Ticket | None = None
    ) -> Records:
        """Stream a generation, waiting for its turn first (with the caller's `ticket`, or one of its own).

        `cancelled` is asked before every round; a run cancelled before its turn is a single `Finished`. Limits are
        checked here and now, all else when the first record is pulled: BusyError, LoadError, ContextError, ….
        """
        self.check(request)
        return self.observe(request, self._stream(request, cancelled, ticket))

    def warm_up(self, target: str, draft: str) -> None:
        """Load two models and take one step with them, so that the first request finds everything ready."""
        request = GenerationRequest("Once", target, draft, params=SamplingParams(max_tokens=2))
        self.check(request)
        with closing(self._stream(request, never, None)) as records:
            for _ in records:
                pass
        self.ready = True

    def _stream(self, request: GenerationRequest, cancelled: Cancelled, ticket: Ticket | None) -> Records:
        with ticket or self.join() as place:
            while not place.wait(POLL_S):
                if cancelled():
                    yield Finished("cancelled", (), "")
                    return
            engine, prompt, watch = self._prepared(request)
            reader = self.prefixes if request.reuse and self.settings.prefix_cache_mb else COLD
            run = engine.stream(prompt, request.params, watch.allowed(request.speculation), reader)
            codec, seconds = engine.target.tokenizer, self.settings.max_seconds
            yield from within(watch.follow(run), request.prompt, codec, cancelled, seconds)

    def engine(self, request: GenerationRequest) -> tuple[Engine, str | list[int]]:
        """What runs a request: an engine, and the prompt as it is fed to it; errors as in `stream`.

        For callers whose turn it is in the line, and for no longer than that: nobody else may use it meanwhile.
        RequestError where the request is for drafts and the circuit breaker is not closed.
        """
        engine, prompt, watch = self._prepared(request)
        if watch.state != "closed":
            watch.close()
            raise RequestError(f"drafting is paused, because {watch.reason}: try again in a moment")
        return engine, prompt

    @property
    def drafting(self) -> tuple[Drafting, ...]:
        """The circuit breakers of all pairs that were asked for so far."""
        return tuple(
            Drafting(*pair, guard.faults.condition, guard.losses.condition)
            for pair, guard in list(self._guards.items())
            if pair[1] != "none"
        )

    def _prepared(self, request: GenerationRequest) -> tuple[Engine, str | list[int], Watch]:
        """An engine over the pair's models, the prompt as it is fed, and the watch over the run."""
        target, draft = pair = request.target, request.draft
        models = self._store.get_all(target, *(() if draft in NO_MODEL_DRAFTS else (draft,)))
        prompt = _templated(models[0], request) if request.chat else request.prompt
        guard = self._guard(pair)
        drafter = _drafter(draft, *models[1:])
        watch = guard.watch(0 if drafter is None else request.speculation.num_speculative_tokens)
        guarded = None if drafter is None else GuardedDrafter(drafter, watch)
        return Engine(models[0], guarded, guard.timings), prompt, watch

    def _forget(self, model: Model) -> None:
        """Drop what a model has read when the store lets it go."""
        self.prefixes.forget(model.network)

    def _guard(self, pair: tuple[str, str]) -> Guard:
        """What is remembered of a pair, the same one each time, however often its models come and go."""
        with self._changing:
            return self._guards.setdefault(pair, Guard(self.settings, self._clock))

    def _load(self, name: str) -> Model:
        from specdec.checkpoints import load_model

        return load_model(name, threads=self.settings.threads or None)


def _drafter(name: str, *model: Model) -> Drafter | None:
    """The drafter of that name; `model` where it is one."""
    if model:
        return ModelDrafter(model[0])
    return NgramDrafter() if name == "ngram" else None


def _templated(target: Model, request: GenerationRequest) -> list[int]:
    """The conversation in the target's own chat template."""
    codec = target.tokenizer
    if not getattr(codec, "has_chat_template", False):
        raise RequestError(f"{target.name} has no chat template: switch chat off")
    messages = [*map(dict, request.messages)] or [{"role": "user", "content": request.prompt}]
    ids: list[int] = codec.apply_chat_template(messages)  # type: ignore[union-attr]
    return ids
