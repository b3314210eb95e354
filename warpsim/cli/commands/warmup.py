"""`warpsim warmup`: compiles kernels ahead of time, so that no later run has to wait for it."""

from __future__ import annotations

import argparse
import sys
import time

import warp as wp
from tqdm.auto import tqdm

from warpsim.core.registry import provided
from warpsim.engine.engine import find_device
from warpsim.sim.simulator import Simulator

_MATTERS = ("deformable.compile", "matter:liquid")
"""What loads the kernels of matters, which scenes of rigid bodies leave alone."""


def kernel_modules() -> list[str]:
    """Warp's modules of this package's kernels: all that `Simulator` uses, and those of every matter.

    A Python module's kernels are one module of Warp's, or some, named after it, where a scene needs few of them.
    """
    for name in _MATTERS:
        provided(name)
    package = Simulator.__module__.partition(".")[0] + "."
    return sorted(
        {
            value.module.name
            for name, module in list(sys.modules.items())
            if name.startswith(package)
            for value in vars(module).values()
            if isinstance(value, wp.Kernel) and value.module.name.startswith(name)
        }
    )


def run(arguments: argparse.Namespace) -> int:
    """Compiles module by module."""
    find_device(arguments.device)
    names = kernel_modules()
    begin = time.perf_counter()
    for name in tqdm(names, unit="module", disable=arguments.quiet):
        wp.load_module(name, device=arguments.device)
    print(f"{len(names)} modules of kernels are ready for {arguments.device} ({time.perf_counter() - begin:.1f} s)")
    return 0
