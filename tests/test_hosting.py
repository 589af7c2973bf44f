"""What Hugging Face Spaces read is right, and what `docs/hosting.md` says is so."""

import os
import runpy
import subprocess
import sys
from typing import Any

import gradio
import pytest
from packaging.requirements import Requirement

import app
from specdec.checkpoints import known_models
from specdec.serving import Settings
from tests.source_tree import ROOT

HOSTING: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "hosting.py"))
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
SPACE = {"SPACE_ID": "somebody/specdec", "MEMORY": "16Gi"}


def test_the_head_of_the_readme_is_what_spaces_take():
    """A key that is missing or a description of more than 60 characters, and a push is refused."""
    head = HOSTING["front_matter"]()
    assert (head["sdk"], head["app_file"], head["license"]) == ("gradio", "app.py", "apache-2.0")
    assert 0 < len(head["short_description"]) <= 60
    assert {head["colorFrom"], head["colorTo"]} <= COLOURS
    assert head["title"]
    assert len(head["emoji"]) == 1
    assert isinstance(head["python_version"], str), "3.10 as a number would be 3.1"
    assert tuple(map(int, head["python_version"].split("."))) >= (3, 11)
    assert head["suggested_hardware"] == "cpu-basic"
    assert len(head["tags"]) >= 2


def test_spaces_build_with_the_gradio_of_the_tests():
    """The pinned version lies in the range of requirements.txt, and these very tests ran with it, up to its patches."""
    pinned = HOSTING["front_matter"]()["sdk_version"]
    line = next(line for line in (ROOT / "requirements.txt").read_text().splitlines() if line.startswith("gradio"))
    assert pinned in Requirement(line.partition("#")[0].strip()).specifier
    assert pinned.split(".")[:2] == gradio.__version__.split(".")[:2]


def test_what_is_uploaded_is_a_whole_demo_and_nothing_else():
    """The files that the guide's command picks: every source, page file and model, none above 9 MB, no rubbish."""
    files = HOSTING["uploaded"]()
    needed = {"README.md", "LICENSE", "app.py", "requirements.txt"}
    needed |= {str(path.relative_to(ROOT)) for path in (ROOT / "specdec").rglob("*.py")}
    needed |= {str(path.relative_to(ROOT)) for path in (ROOT / "assets" / "page").iterdir()}
    bundled = [model.path for model in known_models() if model.kind == "bundled" and model.path]
    needed |= {str(path.relative_to(ROOT)) for folder in bundled for path in folder.iterdir()}
    assert needed <= set(files)
    assert [file for file in files if file.startswith((".", "tests", "scripts")) or "__pycache__" in file] == []
    assert [file for file in files if (ROOT / file).stat().st_size > 9_000_000] == []
    assert HOSTING["upload_command"]()[-2:] == ["--exclude", "*/__pycache__/*"]


def test_what_the_guide_says_of_a_space_is_so(monkeypatch: pytest.MonkeyPatch):
    """Half of its memory for models, nothing brought, the address of the page; the table itself is made from these."""
    there = Settings.from_environment(SPACE)
    assert there.model_memory_mb == (16 << 30) // 2_000_000
    assert (there.bring, Settings.from_environment({}, host="0.0.0.0").bring) == ("off", "known")
    for name in (*SPACE, "GRADIO_SERVER_NAME", "GRADIO_SERVER_PORT"):
        monkeypatch.delenv(name, raising=False)
    listening = []
    for environment in ({}, SPACE):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        listening.append((app.options([]).host, app.options([]).port))
    assert listening == [("127.0.0.1", 7860), ("0.0.0.0", 7860)]
    said = " ".join(HOSTING["GUIDE"].read_text().split())
    assert "address, 127.0.0.1 (on a Space 0.0.0.0) and 7860 otherwise" in said


def test_an_index_that_is_away_is_said_first():
    """Not to be mistaken for packages that do not go together."""
    command = [sys.executable, str(ROOT / "scripts" / "hosting.py"), "resolve"]
    environment = {**os.environ, "PIP_NO_INDEX": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "the package index cannot be reached" in done.stderr.splitlines()[0]
