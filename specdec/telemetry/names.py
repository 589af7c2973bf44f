"""All names: OpenTelemetry's GenAI conventions where they have one, vLLM's where they have not, else our own.

https://opentelemetry.io/docs/specs/semconv/gen-ai/ (status: development). Ratios are left to queries: what is exported
are counts and seconds.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "histogram", "gauge"]

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
MODEL = "gen_ai.request.model"
TOKEN_TYPE = "gen_ai.token.type"
MAX_TOKENS = "gen_ai.request.max_tokens"
TEMPERATURE = "gen_ai.request.temperature"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
FINISH_REASONS = "gen_ai.response.finish_reasons"
ERROR = "error.type"
METHOD = "http.request.method"
ROUTE = "http.route"
STATUS = "http.response.status_code"
POSITION = "position"
REASON = "finished_reason"
DRAFT = "specdec.draft"
PHASE = "specdec.phase"
STATE = "specdec.state"
CACHE = "specdec.cache"
ROUND = "specdec.round"
DRAFTED = "specdec.drafted"
ACCEPTED = "specdec.accepted"
REQUEST_ID = "specdec.request_id"

RUN = (OPERATION, PROVIDER, MODEL, DRAFT)
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
SHORT_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5)
SPEEDS = (1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0, 5_000.0)
TOKENS = (1.0, 4.0, 16.0, 64.0, 256.0, 1_024.0, 4_096.0, 16_384.0)


@dataclass(frozen=True, slots=True)
class Metric:
    """An instrument: its name, unit (UCUM), what it says, its attributes; `buckets` of a histogram."""

    name: str
    kind: Kind
    unit: str
    says: str
    attributes: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def prometheus(self) -> str:
        """The name in Prometheus's text; a histogram has `_bucket`, `_sum` and `_count` behind it."""
        name = self.name.replace(".", "_")
        unit = {"s": "_seconds", "By": "_bytes"}.get(self.unit, "")
        name = name.removesuffix(unit) + unit
        return f"{name}_total" if self.kind == "counter" else name


DURATION = Metric(
    "gen_ai.server.request.duration", "histogram", "s",
    "a request from its place in the line to its last token; waiting, loading and a slow reader included",
    (*RUN, ERROR), SECONDS,
)  # fmt: skip
TTFT = Metric(
    "gen_ai.server.time_to_first_token", "histogram", "s",
    "engine time of the prompt and the first round", RUN, SECONDS,
)  # fmt: skip
TIME_PER_TOKEN = Metric(
    "gen_ai.server.time_per_output_token", "histogram", "s",
    "engine time after the first round ÷ tokens after it, of each request", RUN, SHORT_SECONDS,
)  # fmt: skip
TOKEN_USAGE = Metric(
    "gen_ai.client.token.usage", "histogram", "{token}",
    "tokens of each request: input or output", (*RUN, TOKEN_TYPE), TOKENS,
)  # fmt: skip
LATENCY = Metric(
    "inter_token_latency_seconds", "histogram", "s",
    "engine time of each round after the first: how long a reader waits for more", RUN, SHORT_SECONDS,
)  # fmt: skip
SPEED = Metric(
    "specdec.tokens_per_second", "histogram", "",
    "generated tokens ÷ seconds of decoding, of each request", RUN, SPEEDS,
)  # fmt: skip
GENERATED = Metric("generation_tokens", "counter", "{token}", "tokens generated", RUN)
ROUNDS = Metric("specdec.rounds", "counter", "{round}", "passes of the target, plain ones included", RUN)
DRAFTS = Metric("spec_decode_num_drafts", "counter", "{round}", "rounds with drafts that count", RUN)
DRAFT_TOKENS = Metric("spec_decode_num_draft_tokens", "counter", "{token}", "tokens drafted", RUN)
ACCEPTED_TOKENS = Metric("spec_decode_num_accepted_tokens", "counter", "{token}", "draft tokens accepted", RUN)
ACCEPTED_AT = Metric(
    "spec_decode_num_accepted_tokens_per_pos", "counter", "{token}",
    "rounds that accepted their draft at this position, from 0", (*RUN, POSITION),
)  # fmt: skip
REJECTED_TOKENS = Metric("specdec.rejected_tokens", "counter", "{token}", "draft tokens judged and refused", RUN)
ENGINE_TIME = Metric(
    "specdec.engine.time", "counter", "s", "engine time: prefill, draft, verify, sample", (*RUN, PHASE)
)  # fmt: skip
FAULTS = Metric("specdec.draft.faults", "counter", "{fault}", "rounds whose drafter failed", RUN)
ENDED = Metric("specdec.requests", "counter", "{request}", "requests that ended, by reason", (*RUN, REASON))
HTTP = Metric(
    "http.server.request.duration", "histogram", "s",
    "answers of the HTTP API, but for health and metrics", (METHOD, ROUTE, STATUS), SECONDS,
)  # fmt: skip
RUNNING = Metric("num_requests_running", "gauge", "{request}", "requests whose turn it is: 0 or 1")
WAITING = Metric("num_requests_waiting", "gauge", "{request}", "requests in the line behind it")
CACHED = Metric(
    "specdec.kv_cache.tokens", "gauge", "{token}",
    "positions held in the caches of the running request: target's and draft's", (CACHE,),
)  # fmt: skip
PREFIX_QUERIES = Metric("prefix_cache_queries", "counter", "{token}", "prompt tokens looked up in the prefix cache")
PREFIX_HITS = Metric("prefix_cache_hits", "counter", "{token}", "prompt tokens that it had")
PREFIX_SIZE = Metric("specdec.prefix_cache.size", "gauge", "By", "what the prefix cache holds")
BREAKERS = Metric(
    "specdec.breakers", "gauge", "{breaker}", "circuit breakers of drafters: closed, open, half-open", (STATE,)
)  # fmt: skip
OPENED = Metric("specdec.breaker.opened", "counter", "{time}", "times that a circuit breaker opened")

METRICS = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
