"""What Prometheus reads is what the runs' own statistics say, to the last token."""

from dataclasses import replace

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client.parser import text_string_to_metric_families

from specdec.config import SamplingParams, SpeculativeConfig
from specdec.records import Record, Round
from specdec.serving import GenerationRequest, Offer, Service
from specdec.serving.http.observing import observe
from specdec.stats import Stats
from specdec.telemetry import names
from specdec.telemetry.names import METRICS, Metric
from specdec.telemetry.providers import Providers
from tests.decoding.tiny import tiny
from tests.serving.http.servers import ANYBODY, service_of, serving, streamed
from tests.serving.toys import Toy, load_toy, toy

BODY = {"prompt": "#0", "model": "target", "draft": "draft", "num_speculative_tokens": 4, "max_tokens": 30}


@pytest.fixture
def providers() -> Providers:
    return Providers({})


@pytest.fixture
def service() -> Service:
    return service_of()


def request(draft: str = "draft", target: str = "target", tokens: int = 30) -> GenerationRequest:
    return GenerationRequest(
        "#0", target, draft, params=SamplingParams(max_tokens=tokens), speculation=SpeculativeConfig(4)
    )


def total(providers: Providers, metric: Metric, suffix: str = "", **labels: str) -> float:
    """The sum of a metric's samples that have these labels (dots of names as underscores)."""
    text = providers.text("")[0].decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return sum(
        sample.value
        for sample in samples
        if sample.name == metric.prometheus + suffix and labels.items() <= sample.labels.items()
    )


def assert_equal_to(providers: Providers, stats: Stats, runs: int = 1) -> None:
    """Each figure of `Stats` under its name."""
    assert total(providers, names.ROUNDS) == stats.rounds
    assert total(providers, names.GENERATED) == stats.tokens
    assert total(providers, names.DRAFT_TOKENS) == stats.drafted
    assert total(providers, names.ACCEPTED_TOKENS) == stats.accepted
    assert total(providers, names.REJECTED_TOKENS) == stats.rejected
    for position, accepted in enumerate(stats.accepted_per_position):
        assert total(providers, names.ACCEPTED_AT, position=str(position)) == accepted
    assert total(providers, names.ACCEPTED_AT) == stats.accepted
    for phase in ("prefill", "draft", "verify", "sample"):
        seconds = total(providers, names.ENGINE_TIME, specdec_phase=phase)
        assert seconds == pytest.approx(getattr(stats, f"{phase}_s"))
    assert total(providers, names.TTFT, "_sum") == pytest.approx(stats.ttft_s)
    assert total(providers, names.LATENCY, "_count") == stats.rounds - runs
    after = stats.prefill_s + stats.decode_s - stats.ttft_s
    assert total(providers, names.LATENCY, "_sum") == pytest.approx(after)
    assert total(providers, names.TOKEN_USAGE, "_sum", gen_ai_token_type="input") == stats.prompt_tokens
    assert total(providers, names.TOKEN_USAGE, "_sum", gen_ai_token_type="output") == stats.tokens
    assert total(providers, names.DURATION, "_count") == total(providers, names.ENDED) == runs


@pytest.mark.parametrize("draft", ["draft", "ngram", "none"])
def test_metrics_are_the_runs_statistics(providers: Providers, service: Service, draft: str):
    """Counts are equal, seconds too, for a run with a draft model, with n-grams, and a plain one."""
    observe(service, providers.telemetry)
    records = list(service.stream(request(draft)))
    stats = Stats.of(records)
    assert_equal_to(providers, stats)
    rounds = [record for record in records if isinstance(record, Round)]
    assert total(providers, names.DRAFTS) == sum(bool(step.drafted) for step in rounds)
    assert total(providers, names.SPEED, "_sum") == pytest.approx(stats.tokens_per_second)
    first = len(rounds[0].tokens)
    expected = (stats.prefill_s + stats.decode_s - stats.ttft_s) / (stats.tokens - first)
    assert total(providers, names.TIME_PER_TOKEN, "_sum") == pytest.approx(expected)
    assert total(providers, names.GENERATED, specdec_draft=draft) == stats.tokens


def test_page_and_api_are_counted_in_one_place(providers: Providers, service: Service):
    """A run over HTTP, in either protocol, and one pulled from the service by itself; the warm-up is none of them."""
    with serving(service, told=providers) as client:
        done = streamed(client, "/generate", BODY)[-1][1]
        openai = client.post("/v1/completions", json=BODY | {"stream": False}).json()
        runs = list(service.stream(request()))
        counts = [done["usage"], openai["usage"]]
        drafted = sum(count["speculation"]["num_draft_tokens"] for count in counts) + Stats.of(runs).drafted
        assert total(providers, names.DRAFT_TOKENS) == drafted
        assert total(providers, names.ENDED, finished_reason="length") == 3
        assert total(providers, names.HTTP, "_count", http_route="/generate", http_response_status_code="200") == 1


def test_runs_that_end_otherwise_are_told_by_reason(providers: Providers):
    """A reader that leaves is `cancelled`; what fails is `error`, with the kind of its error and nothing else."""

    def broken(name: str):
        model = toy(name)
        if name == "other":
            model.network.forward = lambda *_, **__: 1 / 0
        return model

    service = service_of(loader=broken)
    observe(service, providers.telemetry)
    records = service.stream(request())
    pulled: list[Record] = [next(records), next(records)]
    records.close()
    with pytest.raises(ZeroDivisionError):
        list(service.stream(request("none", "other")))
    unread = service.stream(request())
    unread.close()
    assert total(providers, names.ENDED, finished_reason="cancelled") == 1
    assert total(providers, names.ENDED, finished_reason="error") == 1
    assert total(providers, names.DURATION, "_count", error_type="ZeroDivisionError") == 1
    assert total(providers, names.ROUNDS) == Stats.of(pulled).rounds == 1


def broken(name: str) -> Toy:
    """A toy, of which the draft fails with every pass."""
    model = load_toy(name)
    if name == "draft":
        model.network.forward = lambda *_, **__: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    return model


def test_faults_of_a_drafter_are_counted(providers: Providers):
    """As many as the statistics have; the run ends well all the same."""
    service = service_of(loader=broken)
    observe(service, providers.telemetry)
    stats = Stats.of(service.stream(request()))
    assert total(providers, names.FAULTS) == stats.faults > 0
    assert_equal_to(providers, stats)


def test_a_reader_that_stops_at_the_last_record_has_read_all(providers: Providers, service: Service):
    """A run counts as ended from its last record on, whoever pulls no more."""
    observe(service, providers.telemetry)
    records = service.stream(request())
    while total(providers, names.ENDED) == 0:
        next(records)
    assert total(providers, names.ENDED, finished_reason="length") == 1
    records.close()
    assert total(providers, names.ENDED) == 1


def test_the_line_and_the_caches_are_read_when_asked(providers: Providers, service: Service):
    """One running, two waiting; positions in both caches while it runs, none afterwards."""
    observe(service, providers.telemetry)
    assert (total(providers, names.RUNNING), total(providers, names.WAITING)) == (0, 0)
    with service.join() as inside, service.join(), service.join():
        assert (total(providers, names.RUNNING), total(providers, names.WAITING)) == (1, 2)
        records = service.stream(request(), ticket=inside.lend())
        step = [next(records), next(records)][-1]
        assert isinstance(step, Round)
        assert total(providers, names.CACHED, specdec_cache="target") == step.target_cache > 0
        assert total(providers, names.CACHED, specdec_cache="draft") == step.draft_cache
        list(records)
        assert total(providers, names.CACHED) == 0


def test_breakers_are_read_when_asked(providers: Providers):
    """Two of each pair, faults and losses; closed at first, one open after failures in a row, and counted."""
    service = service_of(replace(ANYBODY, breaker_failures=2), loader=broken, warm=False)
    observe(service, providers.telemetry)
    assert (total(providers, names.BREAKERS), total(providers, names.OPENED)) == (0, 0)
    list(service.stream(request()))
    states = {state: total(providers, names.BREAKERS, specdec_state=state) for state in ("closed", "open", "half-open")}
    assert states == {"closed": 1, "open": 1, "half-open": 0}
    assert total(providers, names.OPENED) == 1


def test_the_prefix_cache_is_read_when_asked(providers: Providers):
    """Tokens looked up and found, and bytes held, are those that the cache itself counts."""
    service = service_of()
    observe(service, providers.telemetry)
    network, prompt = tiny(1).network, list(range(90)) * 3
    for _ in range(2):
        service.prefixes.read(network, prompt, network.new_cache(300))
    counted = service.prefixes.stats()
    told = [total(providers, name) for name in (names.PREFIX_QUERIES, names.PREFIX_HITS, names.PREFIX_SIZE)]
    assert told == [counted.query_tokens, counted.hit_tokens, counted.bytes]
    assert min(told) > 0


def test_more_can_be_read_through_callables(providers: Providers):
    """A gauge of one value, a counter with a value for each of its attribute; one that fails spoils no other."""
    state = Metric("specdec.state", "gauge", "", "a state")
    hits = Metric("specdec.lookups", "counter", "{lookup}", "lookups", ("result",))
    providers.telemetry.read(state, lambda: 2)
    providers.telemetry.read(hits, lambda: {"hit": 3, "miss": 4})
    providers.telemetry.read(Metric("specdec.broken", "gauge", "", "fails"), lambda: 1 / 0)
    assert (total(providers, state), total(providers, hits, result="miss")) == (2, 4)


def test_labels_come_from_a_closed_list(providers: Providers, service: Service):
    """A model that arrived later is `other`; so are all paths that are none of ours, and odd methods."""
    observe(service, providers.telemetry)
    service.add(Offer("somebody/their-own-model"))
    list(service.stream(request("none", "somebody/their-own-model")))
    assert total(providers, names.GENERATED, gen_ai_request_model="other") == 30
    with serving(service_of(), told=providers) as client:
        for number in range(20):
            client.get(f"/v1/SECRET{number}?SECRET")
            client.request(f"SECRET{number}", "/v1/models")
            client.post("/generate", json=BODY | {"prompt": "SECRET", "model": f"SECRET{number}"})
        text = client.get("/metrics").text
    assert "SECRET" not in text
    assert "somebody" not in text
    assert len(text.splitlines()) < 600


def test_every_metric_has_its_name_for_prometheus(providers: Providers, service: Service):
    """What the names module says is what the text holds, and nothing else is in it."""
    with serving(service, told=providers) as client:
        streamed(client, "/generate", BODY)
        text = client.get("/metrics").text
    families = {family.name for family in text_string_to_metric_families(text)}
    told = {metric.prometheus.removesuffix("_total") for metric in METRICS if metric is not names.FAULTS}
    assert families == told | {"target_info"}


def test_the_same_numbers_go_to_any_reader(service: Service):
    """OpenTelemetry's own reader sees the names with their dots."""
    reader = InMemoryMetricReader()
    observe(service, Providers({}, readers=[reader]).telemetry)
    list(service.stream(request()))
    data = reader.get_metrics_data()
    assert data
    metrics = data.resource_metrics[0].scope_metrics[0].metrics
    assert {"gen_ai.server.time_to_first_token", "spec_decode_num_drafts"} <= {metric.name for metric in metrics}
    assert data.resource_metrics[0].resource.attributes["service.name"] == "specdec"
