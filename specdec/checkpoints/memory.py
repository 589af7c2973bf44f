"""How much memory there is and was taken; refusing a model that does not fit, before any of it is read."""

import sys
from contextlib import suppress
from pathlib import Path

from specdec.errors import MemoryLimitError

OVERHEAD = 1.15  # beside the weights: a layer once more while loading, and the first cache (shallow models take more)

_PROC = Path("/proc/meminfo")
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


def require_memory(name: str, parameters: int, available: int | None) -> None:
    """Raise MemoryLimitError unless so many float32 fit into `available` bytes; None means that nobody knows."""
    needed = needed_bytes(parameters)
    if available is not None and needed > available:
        raise MemoryLimitError(
            f"{name} needs {_mebibytes(needed)} of memory ({parameters:,} parameters as float32), "
            f"{_mebibytes(available)} are available"
        )


def needed_bytes(parameters: int) -> int:
    """Memory that a model of so many parameters takes."""
    return int(4 * parameters * OVERHEAD)


def available_bytes() -> int | None:
    """Memory that a process may still take, by the kernel and by its container's limit; None where unknown."""
    known = [
        value for value in (_from_kernel(_PROC), *(_from_container(*pair) for pair in _CGROUPS)) if value is not None
    ]
    return min(known, default=None)


def peak_bytes() -> int | None:
    """Most memory this process has held; None where the system does not tell.

    Linux's own record of the program comes first: what getrusage says begins with the memory of whoever started it.
    """
    for line in _lines(_STATUS):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_peak() -> None:
    """Let `peak_bytes` begin anew, where the system can (Linux); elsewhere it goes on counting from the start."""
    with suppress(OSError):
        _CLEAR.write_text("5")


def _from_kernel(meminfo: Path) -> int | None:
    for line in _lines(meminfo):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _from_container(limit: Path, usage: Path) -> int | None:
    """What a cgroup leaves; page cache, which counts as used, can be given back."""
    numbers = [int(line) for path in (limit, usage) for line in _lines(path)[:1] if line.isdecimal()]
    if len(numbers) < 2:
        return None
    stat = dict(line.split()[:2] for line in _lines(usage.with_name("memory.stat")) if " " in line)
    cached = int(stat.get("inactive_file", stat.get("total_inactive_file", "0")))
    return max(0, numbers[0] - numbers[1] + cached)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB"
