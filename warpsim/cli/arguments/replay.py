"""Arguments of `warpsim replay`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_force


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "replay",
        description="Runs a record's inputs again. Exit code 1 if the trajectory is not the same to the last bit.",
    )
    parser.add_argument("record", help="a record, as `warpsim simulate --record` and `warpsim optimize` write them")
    parser.add_argument("--scene", help="the scene's file, if it has moved and is not beside the record")
    parser.add_argument("-o", "--output", help="where to write the new record")
    add_force(parser)
