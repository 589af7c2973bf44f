"""The machine a run was done on, in one line for its record."""

import torch

from specdec.machine import processor


def describe_hardware(device: str) -> str:
    """Processor or accelerator, threads, PyTorch's version."""
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else processor()
    threads = torch.get_num_threads()
    return f"{name}, {threads} thread{'s' if threads > 1 else ''}, PyTorch {torch.__version__}"
