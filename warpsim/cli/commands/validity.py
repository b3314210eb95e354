"""`warpsim validity`: how far along a rollout its gradient can be trusted."""

from __future__ import annotations

import argparse
from pathlib import Path

from warpsim.check.validity import measure_validity, plot_validity
from warpsim.cli.commands.common import add_max_contacts, add_source
from warpsim.cli.commands.opening import open_simulator
from warpsim.cli.commands.outputs import add_force, check_outputs
from warpsim.view.raycast import write_png


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "validity",
        description="Mode switches, growth of perturbations and adjoints, the horizon beyond which gradients are "
        "noise, the solver, penetration, energy, and advice.",
    )
    add_source(parser)
    add_max_contacts(parser)
    parser.add_argument("--seconds", type=float, default=2.0, help="simulated time (default: 2)")
    parser.add_argument("--plot", metavar="PNG", help="where to draw the traces")
    add_force(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Measures, prints, draws."""
    if arguments.plot:
        check_outputs([arguments.plot], [arguments.scene], force=arguments.force)
    sim = open_simulator(arguments)
    found = measure_validity(sim, max(1, round(arguments.seconds / sim.timestep)))
    print(found)
    if arguments.plot:
        print(f"wrote {write_png(Path(arguments.plot), plot_validity(found))}")
    return 0
