"""Arguments of `warpsim stress`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_force, add_max_contacts, natural


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "stress",
        description="Replays a result of `warpsim optimize` with half and double time step, another integrator, other "
        "masses, frictions, contact stiffnesses and dampings, impacts on or off, softening off, noisy and late "
        "controls, whichever apply; prints loss and success of each, and says if the result holds only at the "
        "settings it was optimized at. docs/evidence.md explains the rule.",
        epilog="Exit code: 0 it holds (or no condition of success is given), 3 it is not solved as it stands, 4 it is "
        "a simulator exploit, 1 an error.",
    )
    parser.add_argument("result", help="result.usda, or any USD file with a WarpsimTask prim")
    parser.add_argument("--task", metavar="PATH", help="the task's prim, where there are several")
    parser.add_argument("--seed", type=natural, default=0, help="of control noise (default: 0)")
    add_max_contacts(parser)
    parser.add_argument("-o", "--output", metavar="JSON", help="where to write the run record with the table in it")
    add_force(parser)
