"""Arguments of `warpsim convert`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_force, add_source


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "convert", description="Writes a scene as USD or MJCF, and lists what that cannot hold."
    )
    add_source(parser)
    parser.add_argument("output", help="the .usda, .usdc or .xml (MJCF) file to write")
    add_force(parser)
