"""The family's table counts what it says, and what is repeated from a text is found."""

from pathlib import Path

import pytest

from specdec import load_model
from specdec.bench.family import GRAM, main, repeated
from specdec.bench.prompts import STORIES


def test_repetition_is_all_or_nothing_at_its_ends() -> None:
    """Text out of the corpus is repeated wholly, text that is not in it not at all, part of it in part."""
    model = load_model("specdec-draft-2x64", threads=1)
    assert model.tokenizer is not None
    ids = model.tokenizer.encode(" ".join(STORIES), add_bos=False)
    assert len(ids) > 2 * GRAM
    text = model.tokenizer.decode(ids)
    assert repeated(model, [ids], f"Before. {text} After.") == 1
    assert repeated(model, [ids], "Something else.") == 0
    half = repeated(model, [ids], model.tokenizer.decode(ids[: GRAM + 4]))
    assert half == pytest.approx(5 / (len(ids) - GRAM + 1))


def test_a_draft_that_is_the_target_is_always_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One row for plain decoding and one for each k, by temperature; every draft is accepted."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("nothing of it", encoding="utf-8")
    name = "specdec-draft-2x64"
    options = ["--target", name, "--draft", name, "-k", "3", "--tokens", "8", "--repeat", "1", "--threads", "1"]
    assert main([*options, "--corpus", str(corpus)]) == 0
    printed = capsys.readouterr().out
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines() if line.startswith("| spec")
    ]
    assert [row[2:4] for row in rows] == [["0", "0"], ["3", "0"], ["0", "0.8"], ["3", "0.8"]]
    assert [row[4:6] for row in rows] == [["–", "–"], ["1.000", "1.000"]] * 2
    assert "0.0% of the 20-token runs" in printed


def test_an_unknown_model_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """Status 1, and no traceback."""
    assert main(["--target", "no-such-model"]) == 1
    assert capsys.readouterr().err.startswith("error: no model is called")
