"""Arguments of `warpsim demo`."""

from __future__ import annotations

import argparse

_FOLDER = "warpsim-demo"


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "demo",
        description="Solves the task of an example scene: which velocity makes a ball hit a target after a bounce? "
        "Writes the folder that `warpsim optimize` does, with result.html for a browser. The first run compiles "
        "kernels, which takes a minute or two.",
    )
    parser.add_argument("-o", "--output", default=_FOLDER, metavar="FOLDER", help=f"default: {_FOLDER}")
    parser.add_argument("--no-gif", action="store_true", help="do not draw before_after.gif")
