"""The page's runs count as the API's do."""

import httpx
import pytest
from gradio_client import Client
from prometheus_client.parser import text_string_to_metric_families

from tests.serving.http.servers import program
from tests.ui.conftest import free_port


def test_a_run_of_the_page_is_in_its_metrics(monkeypatch: pytest.MonkeyPatch):
    """`python app.py`, the same variable: what a run's statistics say is what `/metrics` has grown to."""
    monkeypatch.setenv("SPECDEC_TELEMETRY", "on")
    with program("app", "--port", str(free_port())) as (_, address):
        page = Client(address, verbose=False, analytics_enabled=False)
        stats = page.predict("Once upon a time", api_name="/complete")["stats"]
        page.close()
        text = httpx.get(f"{address}/metrics", timeout=60).text
    told: dict[str, float] = {}
    for sample in (sample for family in text_string_to_metric_families(text) for sample in family.samples):
        told[sample.name] = told.get(sample.name, 0) + sample.value
    assert told["generation_tokens_total"] == stats["tokens"] > 0
    assert told["spec_decode_num_accepted_tokens_total"] == stats["accepted"]
    assert told["specdec_rounds_total"] == stats["rounds"]
