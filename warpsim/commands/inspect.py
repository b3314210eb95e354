"""`warpsim inspect`: what was read, what was ignored, sizes, and the contract of the simulation."""

from __future__ import annotations

import argparse

from warpsim.commands.common import add_source, open_simulator
from warpsim.describe import describe


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser("inspect", help="show what a scene contains and how it is simulated")
    add_source(parser)
    parser.add_argument("--ledger", action="store_true", help="list everything the reader met, not only what it lacks")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the description."""
    print(describe(open_simulator(arguments), ledger=arguments.ledger))
    return 0
