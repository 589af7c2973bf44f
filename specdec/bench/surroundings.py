"""What a measurement was made on and with: without that its figures mean nothing."""

import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from specdec.machine import processor
from specdec.model import kernels
from specdec.model.workers import Workers, available_cores
from specdec.threads import VARIABLES

PACKAGES = ("numpy", "torch", "transformers", "llama-cpp-python")
STREAMED = 64_000_000  # float32 numbers: more than any cache holds


def surroundings(threads: int | None, streamed: int = STREAMED) -> dict[str, Any]:
    """Processor, cores, threads, memory bandwidth, BLAS and versions, ready for JSON."""
    workers = Workers(threads)
    return {
        "processor": processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": available_cores(),
        "threads": workers.threads,
        "bandwidth_gb_s": _bandwidth(workers, streamed),
        "blas": _blas(),
        "blas_threads": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        "rows": "one by one" if kernels.row_by_row else "in small-matrix kernels",
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def busy(machine: dict[str, Any]) -> str:
    """A warning where others were computing too; empty where not."""
    load = machine["load"]
    return f"The machine was busy (load {load:.1f}): these figures will not hold." if load and load > 0.5 else ""


def commit() -> str | None:
    """The commit that this package was run from, with a + where files differ; None outside a checkout."""
    root = Path(__file__).resolve().parents[2]
    found = _git(root, "rev-parse", "--show-toplevel")
    if not found or Path(found).resolve() != root:
        return None
    changed = "+" if _git(root, "status", "--porcelain", "--untracked-files=no") else ""
    return f"{_git(root, 'rev-parse', '--short=12', 'HEAD')}{changed}"


def _git(folder: Path, *arguments: str) -> str:
    """What git says, empty where it says nothing or is not there."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _bandwidth(workers: Workers, count: int) -> float:
    """The best of five streams through memory, in units of 10⁹ bytes a second: decoding cannot read weights faster."""
    numbers = np.ones(count, np.float32)
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        workers.run(lambda part: numbers[part].max(), count)
        seconds.append(time.perf_counter() - started)
    return numbers.nbytes / min(seconds) / 1e9


def _blas() -> str:
    built: Any = np.show_config(mode="dicts")
    blas = built["Build Dependencies"]["blas"]
    return f"{blas['name']} {blas['version']}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
