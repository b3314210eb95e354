"""Arguments of `warpsim inspect`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_source


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser("inspect", description="Shows what a scene contains and how it is simulated.")
    add_source(parser)
    parser.add_argument("--ledger", action="store_true", help="list everything the reader met, not only what it lacks")
