"""Torch on one thread for a while: operations on a few dozen numbers only lose time by waiting for other threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """While open, torch's own operations run on one thread; kernels of the simulator are not concerned."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
