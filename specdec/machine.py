"""What this machine is called, for the record of anything that was measured on it."""

import platform
from pathlib import Path


def processor() -> str:
    """The processor's name where the system tells it, else its architecture."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
