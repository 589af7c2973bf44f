"""A model that does not fit is refused with the numbers, before its weights are read."""

import subprocess
import sys
from pathlib import Path

import pytest

from specdec.checkpoints import loading, memory
from specdec.checkpoints.memory import available_bytes, require_memory
from specdec.errors import MemoryLimitError
from tests.model.random_models import llama_reference


def test_the_message_has_the_numbers() -> None:
    """What is needed, for how many parameters, and what there is."""
    with pytest.raises(MemoryLimitError, match=r"toy needs 590 MiB .*134,515,008 parameters.* 500 MiB are available"):
        require_memory("toy", 134_515_008, 500 << 20)


def test_what_fits_is_let_through() -> None:
    """Enough memory, or nobody knows how much."""
    require_memory("toy", 134_515_008, 600 << 20)
    require_memory("toy", 134_515_008, None)


def test_nothing_is_read_of_a_model_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal comes before the first tensor."""
    llama_reference().save_pretrained(tmp_path)
    monkeypatch.setattr(loading, "available_bytes", lambda: 1 << 16)
    monkeypatch.setattr(loading, "Transformer", lambda *args, **kwargs: pytest.fail("weights were read"))
    with pytest.raises(MemoryLimitError):
        loading.load_model(tmp_path)


def test_a_known_model_that_does_not_fit_is_not_even_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """gpt2-xl is refused by its known size, before anybody is asked for it."""
    monkeypatch.setattr(loading, "available_bytes", lambda: 1 << 30)
    monkeypatch.setattr(loading, "fetch", lambda *args: pytest.fail("it was fetched"))
    with pytest.raises(MemoryLimitError, match=r"gpt2-xl needs .*1,557,611,200 parameters.* 1,024 MiB are available"):
        loading.load_model("gpt2-xl")


GROWN = """
from specdec.checkpoints.memory import peak_bytes
before = peak_bytes()
bytearray(b"x" * {})
print(before, peak_bytes())
"""


def test_the_peak_is_that_of_this_program_alone() -> None:
    """It grows by what was taken and given back, and does not begin with the memory of whoever started the program."""
    ballast = bytearray(b"x" * (600 << 20))
    run = subprocess.run(
        [sys.executable, "-c", GROWN.format(50 << 20)], capture_output=True, text=True, check=True, close_fds=False
    )
    before, after = map(int, run.stdout.split())
    assert before < len(ballast) / 2
    assert after - before >= 45 << 20


def test_the_kernels_figure_is_read(tmp_path: Path) -> None:
    """/proc/meminfo counts in KiB; a machine without it knows nothing."""
    (tmp_path / "meminfo").write_text("MemTotal:  100 kB\nMemAvailable:   2048 kB\n")
    assert memory._from_kernel(tmp_path / "meminfo") == 2048 * 1024
    assert memory._from_kernel(tmp_path / "absent") is None


def test_a_containers_limit_is_read(tmp_path: Path) -> None:
    """Limit minus use, page cache given back; "max" is no limit."""
    limit, usage = tmp_path / "memory.max", tmp_path / "memory.current"
    limit.write_text("1000000\n")
    usage.write_text("400000\n")
    assert memory._from_container(limit, usage) == 600_000
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 150000\n")
    assert memory._from_container(limit, usage) == 750_000
    limit.write_text("max\n")
    assert memory._from_container(limit, usage) is None


def test_this_machine_has_some_memory() -> None:
    """The figure is plausible where there is one."""
    available = available_bytes()
    assert available is None or 1 << 20 < available < 1 << 50
