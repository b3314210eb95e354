"""`warpsim validity`: how far along a rollout its gradient can be trusted."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from warpsim.check.validity import measure_validity, plot_validity
from warpsim.cli.commands.opening import open_simulator
from warpsim.cli.commands.outputs import check_outputs
from warpsim.core.errors import InputError
from warpsim.view.raycast import write_png


def run(arguments: argparse.Namespace) -> int:
    """Measures, prints, draws."""
    if not 0.0 < arguments.seconds < math.inf:
        raise InputError(f"--seconds {arguments.seconds:g}: give a finite number above 0")
    if arguments.plot:
        check_outputs([arguments.plot], [arguments.scene], force=arguments.force)
    sim = open_simulator(arguments)
    found = measure_validity(sim, max(1, round(arguments.seconds / sim.timestep)))
    print(found)
    if arguments.plot:
        print(f"wrote {write_png(Path(arguments.plot), plot_validity(found))}")
    return 0
