"""The machine a run was done on, in one line for its record."""

import platform
from pathlib import Path

import torch


def describe_hardware(device: str) -> str:
    """Processor or accelerator, threads, PyTorch's version."""
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else processor()
    threads = torch.get_num_threads()
    return f"{name}, {threads} thread{'s' if threads > 1 else ''}, PyTorch {torch.__version__}"


def processor() -> str:
    """The processor's name where the system tells it, else its architecture."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
