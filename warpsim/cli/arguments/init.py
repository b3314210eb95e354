"""Arguments of `warpsim init`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_force


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "init",
        description="Writes NAME_task.usda over a robot: a WarpsimTask with a goal to edit and a list of all "
        "attributes that may vary, each switched off. A robot in MJCF or URDF is written as NAME_scene.usda first.",
    )
    parser.add_argument("robot", help="a .usd, .usda, .usdc, .usdz, .xml (MJCF) or .urdf file")
    parser.add_argument("-o", "--output", metavar="FOLDER", default=".", help="where to write; default: here")
    add_force(parser)
