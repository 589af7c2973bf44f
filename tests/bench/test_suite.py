"""The suite from its settings to its files: complete, readable again, and kept where it was interrupted."""

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from specdec.bench import surroundings
from specdec.bench.peers import Transformers
from specdec.bench.plan import Way
from specdec.bench.results import Results, ratios
from specdec.bench.suite import run_suite
from specdec.errors import RequestError, UnsupportedError
from tests.bench.toys import DRAFT, SCOPE, shelf

HOSTILE = "<img src=x onerror=alert(1)></script>"


@pytest.fixture(autouse=True)
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little memory to stream through: the figure is not what these tests are about."""
    monkeypatch.setattr(surroundings.surroundings, "__defaults__", (1_000,))


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return run_suite(SCOPE, tmp_path, f"bench {HOSTILE}", shelf=shelf())


def test_a_run_leaves_its_results_and_a_report(tmp_path, capsys):
    """Every way of every contest has a row, in the file as in the table; the JSON says on what and how it was made."""
    results = run_suite(SCOPE, tmp_path, "bench", shelf=shelf())
    assert results.complete
    assert [(row.suite, row.way.k) for row in results.rows] == [
        ("k", 0), ("k", 0), ("k", 2), ("k", "auto"), ("prompt-length", 0), ("prompt-length", 0), ("prompt-length", 3),
    ]  # fmt: skip
    assert Results.load(tmp_path / "results.json") == results
    assert (tmp_path / "report.html").exists()
    data = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert data["schema"] == 1
    assert {"processor", "cores", "threads", "blas", "bandwidth_gb_s", "packages"} <= set(data["machine"])
    printed = capsys.readouterr().out
    assert f"{DRAFT}, k = 2" in printed
    assert printed.count("plain, not bit-exact") == 2


def test_results_survive_json(results):
    """Every field, tuples included."""
    assert Results.from_json(results.to_json()) == results


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 1}', '{"schema": 2}', '{"schema": 1, "rows": [1]}'])
def test_other_files_are_refused_in_a_sentence(text):
    """Whatever they are."""
    with pytest.raises(RequestError, match="results"):
        Results.from_json(text)


def test_a_comparison_is_the_ratio_of_speeds(results, tmp_path, capsys):
    """With itself 1; the table has a column for it."""
    assert set(ratios(results, results).values()) == {1.0}
    run_suite(SCOPE, tmp_path / "again", "bench", tmp_path / "results.json", shelf())
    assert "× earlier" in capsys.readouterr().out


def test_ctrl_c_keeps_what_was_finished(tmp_path):
    """Interrupted in its second contest: the first one's rows are in both files, marked as not complete."""
    toys = shelf()
    player, asked = toys.player, []

    def interrupted(target, way):
        asked.append(way)
        if len(asked) > 4:
            raise KeyboardInterrupt
        return player(target, way)

    toys.player = interrupted
    with pytest.raises(KeyboardInterrupt):
        run_suite(SCOPE, tmp_path, "bench", shelf=toys)
    kept = Results.load(tmp_path / "results.json")
    assert not kept.complete
    assert {row.suite for row in kept.rows} == {"k"}
    assert "interrupted" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_missing_engines_are_one_sentence_each(tmp_path, monkeypatch):
    """llama.cpp is not installed, transformers cannot read toys: what is there is measured, the rest is named."""

    def refuse(self, target, way):
        raise UnsupportedError("it is a toy")

    monkeypatch.setattr(Transformers, "player", refuse)
    monkeypatch.setitem(__import__("sys").modules, "llama_cpp", None)
    found = run_suite(replace(SCOPE, suites=("peers",)), tmp_path, "bench", shelf=shelf())
    assert {row.way.engine for row in found.rows} == {"specdec"}
    left_out = [note for note in found.notes if "left out" in note]
    assert len(left_out) == 2
    assert any("it is a toy" in note for note in left_out)
    assert any("llama-cpp-python is not installed" in note for note in left_out)


class Loads(HTMLParser):
    """What a page would fetch, and the tags it has."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.fetched += [value or "" for name, value in attributes if name in ("src", "href", "data", "srcset")]


def test_the_report_needs_nothing_else(results, tmp_path):
    """No address is loaded, a policy forbids it, plotly is in it once, and hostile text is text."""
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    found = Loads()
    found.feed(page)
    assert found.fetched == []
    assert "default-src 'none'" in page
    assert page.count("plotly.js v") == 1
    assert "img" not in found.tags
    assert HOSTILE not in page
    assert found.tags.count("table") == 2


def test_transformers_takes_turns_with_the_same_weights():
    """A bundled model, plain, assisted by itself and with lookup: the same greedy text as ours."""
    pytest.importorskip("transformers")
    from specdec.bench.shelf import Shelf
    from specdec.config import SamplingParams

    name, real = "specdec-draft-2x64", Shelf(1)
    prompt = real.model(name).tokenizer.encode("Once upon a time, there was a cat.")
    texts = [
        [token.id for step in real.player(name, way)(prompt, SamplingParams(max_tokens=12)) for token in step.tokens]
        for way in (Way(), *(Way("transformers", draft, 3 * (draft != "none")) for draft in ("none", name, "ngram")))
    ]
    assert texts[0] == texts[1] == texts[2] == texts[3]
