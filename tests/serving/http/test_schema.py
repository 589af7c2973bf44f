"""Whatever the OpenAPI schema allows, and much that it does not, is answered as it says, and never by a 5xx."""

import json
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.serving.http.servers import chatty, passes, service_of, serving

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
KNOWN = {"model": ["target", "other"], "draft": ["draft", "ngram", "none"]}


def narrowed(client: httpx.Client) -> str:
    """The server's schema, in which models have names that it knows, so that requests get as far as the engine."""
    schema = client.get("/v1/openapi.json").json()
    for body in ("GenerateBody", "CompletionBody", "ChatBody"):
        properties = schema["components"]["schemas"][body]["properties"]
        for name, values in KNOWN.items():
            properties[name] = {"enum": values}
        properties["max_tokens"] = {"type": "integer", "minimum": 0, "maximum": 20}
    return json.dumps(schema)


@pytest.mark.parametrize(
    ("phases", "examples"),
    [("fuzzing", 15), pytest.param("coverage,fuzzing", 400, marks=[pytest.mark.load, pytest.mark.timeout(1_500)])],
)
def test_answers_are_those_of_the_schema(tmp_path: Path, phases: str, examples: int):
    """Requests made from the schema by schemathesis: status, kind and shape of each answer are documented, none is 5xx.

    Some of the requests get through to the models, or nothing of that would have been tried.
    """
    service = service_of(loader=chatty)
    options = ["--phases", phases, "--max-examples", str(examples), "--checks", CHECKS, "--no-color"]
    with serving(service) as client:
        made = passes(service)
        path = tmp_path / "openapi.json"
        path.write_text(narrowed(client), encoding="utf-8")
        command = [sys.executable, "-m", "schemathesis.cli", "run", str(path), "--url", str(client.base_url), *options]
        done = subprocess.run(
            [*command, "--generation-deterministic", "--request-timeout", "60"],
            cwd=tmp_path, capture_output=True, text=True, timeout=1_200, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        tried = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
        assert tried and tried[1] == tried[2] and int(tried[1]) >= 3 * examples
        assert passes(service) > made + examples
