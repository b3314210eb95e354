"""`warpsim gradcheck`: gradients against central differences, a verdict per input, the guilty stage by name."""

from __future__ import annotations

import argparse

from warpsim.cli.commands.opening import open_simulator


def run(arguments: argparse.Namespace) -> int:
    """Checks and prints."""
    sim = open_simulator(arguments, device=arguments.device)
    report = sim.gradcheck(
        arguments.steps, parameters=arguments.parameter, window=arguments.window, seed=arguments.seed
    )
    print(report)
    return 0 if report.ok else 1
