"""Arguments of `warpsim validity`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_force, add_max_contacts, add_source


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
