"""Arguments of `warpsim plot`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_force
from warpsim.view.plots.curves import KINDS


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "plot",
        description="Draws what a run record holds: joint curves, energies, contacts over time, iterations of the "
        "constraint solver, the loss and gradient norms of a search. Needs matplotlib: pip install warpsim[plot].",
    )
    parser.add_argument("record", help="record.json of `optimize`, or what `simulate --record` wrote")
    parser.add_argument(
        "-o", "--output", help="the .png, .svg or .pdf file (default: the record's name, in this folder)"
    )
    parser.add_argument(
        "--what", nargs="+", choices=KINDS, metavar="KIND", help=f"of {', '.join(KINDS)} (default: all)"
    )
    add_force(parser)
