"""The simulator of the scene named on the command line."""

from __future__ import annotations

import argparse

from warpsim.sim.simulator import Simulator


def open_simulator(arguments: argparse.Namespace, *, worlds: int = 1, device: str = "cpu") -> Simulator:
    """The simulator of the scene named on the command line."""
    return Simulator(
        arguments.scene,
        worlds=worlds,
        device=device,
        strict=arguments.strict,
        keyframe=arguments.keyframe,
        max_contacts=arguments.max_contacts,
        iterations=arguments.iterations,
    )
