"""Writes the Grafana dashboard that shows what `/metrics` tells.

    python scripts/dashboard.py

`assets/dashboards/specdec.json` is made with Grafana's own builders from the names in `specdec.telemetry.names`. A test
fails where it is stale, and asks every query of a real Prometheus.
"""

import sys
from itertools import count
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from grafana_foundation_sdk.builders import dashboard, prometheus, timeseries  # noqa: E402
from grafana_foundation_sdk.cog.encoder import JSONEncoder  # noqa: E402
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DataSourceRef, VariableRefresh  # noqa: E402

from specdec.telemetry import names  # noqa: E402
from specdec.telemetry.names import Metric  # noqa: E402

DASHBOARD = ROOT / "assets" / "dashboards" / "specdec.json"
SOURCE = DataSourceRef(type_val="prometheus", uid="$datasource")
MODEL = "gen_ai_request_model"
CHOSEN = f'{{{MODEL}=~"$model"}}'
DRAFTING = f'{{{MODEL}=~"$model",specdec_draft!="none"}}'
WIDTH, HEIGHT = 8, 8  # three panels a row


class Chart(NamedTuple):
    """A panel: `queries` are legends with what is asked under them."""

    title: str
    says: str
    unit: str
    queries: dict[str, str]


def rate(metric: Metric, by: str = "", chosen: str = CHOSEN, part: str = "") -> str:
    """A counter's increase a second, summed; `part` is "_sum" or "_count" of a histogram."""
    return f"sum{f' by ({by})' if by else ''} (rate({metric.prometheus}{part}{chosen}[$__rate_interval]))"


def share(part: str, whole: str) -> str:
    """A quotient; nothing where there is nothing to divide by."""
    return f"{part} / ({whole} > 0)"


def mean(metric: Metric) -> str:
    """A histogram's mean."""
    return share(rate(metric, part="_sum"), rate(metric, part="_count"))


def quantiles(metric: Metric) -> dict[str, str]:
    """Half, and all but one in twenty, of a histogram's observations are below."""
    buckets = rate(metric, "le", part="_bucket")
    return {name: f"histogram_quantile({part}, {buckets})" for name, part in (("p50", 0.5), ("p95", 0.95))}


def speculation() -> list[Chart]:
    """How well drafts are liked."""
    accepted, drafted = rate(names.ACCEPTED_TOKENS), rate(names.DRAFT_TOKENS)
    judged = f"({accepted} + {rate(names.REJECTED_TOKENS)})"
    position = f"{rate(names.ACCEPTED_AT, 'position')} / on () group_left () ({rate(names.DRAFTS)} > 0)"
    length = share(rate(names.GENERATED, chosen=DRAFTING), rate(names.ROUNDS, chosen=DRAFTING))
    return [
        Chart(
            "Acceptance", "Accepted ÷ drafted, and α: accepted ÷ judged.", "percentunit",
            {"draft acceptance rate": share(accepted, drafted), "α": share(accepted, judged)},
        ),
        Chart("Mean acceptance length τ", "Tokens per round, of runs that have a drafter.", "none", {"τ": length}),
        Chart(
            "Acceptance by position", "Rounds that accepted their draft at a position ÷ rounds with drafts.",
            "percentunit", {"position {{position}}": position},
        ),
        Chart("Draft tokens", "Drafted and accepted.", "cps", {"drafted": drafted, "accepted": accepted}),
        Chart(
            "Where engine time goes", "Seconds of each part of a round ÷ seconds of all.", "percentunit",
            {"{{specdec_phase}}": f"{rate(names.ENGINE_TIME, 'specdec_phase')} / on () group_left () "
             f"({rate(names.ENGINE_TIME)} > 0)"},
        ),
        Chart("Faults of drafters", "Rounds whose drafter failed.", "cps",
              {"faults": f"{rate(names.FAULTS)} or vector(0)"}),
    ]  # fmt: skip


def speed() -> list[Chart]:
    """How long anybody waits."""
    return [
        Chart("Time to first token", "Engine time of the prompt and the first round.", "s", quantiles(names.TTFT)),
        Chart("Inter-token latency", "Engine time of a round after the first.", "s", quantiles(names.LATENCY)),
        Chart("Time per output token", "Mean over requests, after the first round.", "s",
              {"mean": mean(names.TIME_PER_TOKEN)}),
        Chart("Request duration", "From a place in the line to the last token.", "s", quantiles(names.DURATION)),
        Chart("Decoding speed", "Tokens a second of decoding, mean over requests.", "none",
              {"mean": mean(names.SPEED)}),
        Chart("Tokens of a request", "Means.", "none", {
            kind: share(
                rate(names.TOKEN_USAGE, chosen=f'{{{MODEL}=~"$model",gen_ai_token_type="{kind}"}}', part="_sum"),
                rate(names.TOKEN_USAGE, chosen=f'{{{MODEL}=~"$model",gen_ai_token_type="{kind}"}}', part="_count"),
            )
            for kind in ("input", "output")
        }),
    ]  # fmt: skip


def load() -> list[Chart]:
    """What there is to do."""
    answers = rate(names.HTTP, "http_response_status_code", "", "_count")
    return [
        Chart("Tokens generated", "All requests together.", "cps", {"tokens/s": rate(names.GENERATED)}),
        Chart("Requests ended", "By reason.", "cps", {"{{finished_reason}}": rate(names.ENDED, "finished_reason")}),
        Chart("The line", "Requests whose turn it is, and those behind.", "none",
              {"running": names.RUNNING.prometheus, "waiting": names.WAITING.prometheus}),
        Chart("HTTP answers", "By status.", "cps", {"{{http_response_status_code}}": answers}),
        Chart("Caches in use", "Positions that the running request holds.", "none",
              {"{{specdec_cache}}": names.CACHED.prometheus}),
        Chart("Prefix cache", "Prompt tokens that it had ÷ tokens looked up.", "percentunit",
              {"hits": share(rate(names.PREFIX_HITS, chosen=""), rate(names.PREFIX_QUERIES, chosen=""))}),
        Chart("Prefix cache, size", "What it holds.", "bytes", {"held": names.PREFIX_SIZE.prometheus}),
        Chart("Circuit breakers", "Breakers of drafters by state; how often a second one opened.", "none",
              {"{{specdec_state}}": names.BREAKERS.prometheus, "opened": rate(names.OPENED, chosen="")}),
    ]  # fmt: skip


ROWS = {"Speculation": speculation, "Speed": speed, "Load": load}


def described(chart: Chart) -> str:
    """What a panel says, with the metrics that it is made of."""
    asked = " ".join(chart.queries.values())
    used = [metric.prometheus for metric in names.METRICS if metric.prometheus in asked]
    return f"{chart.says}\n\nFrom {', '.join(f'`{name}`' for name in used)}."


def panel(number: int, chart: Chart) -> timeseries.Panel:
    """A chart as Grafana's panel."""
    made = timeseries.Panel().id(number).title(chart.title).description(described(chart)).unit(chart.unit).min(0)
    made = made.datasource(SOURCE).span(WIDTH).height(HEIGHT)
    for letter, (legend, query) in zip("ABC", chart.queries.items(), strict=False):
        target = prometheus.Dataquery().ref_id(letter).expr(query).legend_format(legend)
        made.with_target(target.range().datasource(SOURCE))
    return made


def page() -> str:
    """assets/dashboards/specdec.json as it should be."""
    source = dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
    model = dashboard.QueryVariable("model").label("Target").datasource(SOURCE).include_all(True).multi(True)
    model = model.query(f"label_values({names.GENERATED.prometheus}, {MODEL})").all_value(".*")
    made = dashboard.Dashboard("specdec").uid("specdec").tags(["specdec"]).readonly().timezone("browser")
    made = (
        made.description("Speculative decoding: what specdec's /metrics tells.").refresh("10s").time("now-15m", "now")
    )
    made = made.tooltip(DashboardCursorSync.CROSSHAIR).with_variable(source)
    made = made.with_variable(model.refresh(VariableRefresh.ON_TIME_RANGE_CHANGED))
    numbers = count(1)
    for title, charts in ROWS.items():
        made = made.with_row(dashboard.Row(title).id(next(numbers)))
        for chart in charts():
            made = made.with_panel(panel(next(numbers), chart))
    return JSONEncoder(sort_keys=True, indent=2, ensure_ascii=False).encode(made.build()) + "\n"


if __name__ == "__main__":
    DASHBOARD.parent.mkdir(exist_ok=True)
    DASHBOARD.write_text(page(), encoding="utf-8")
    print(DASHBOARD.relative_to(ROOT))
