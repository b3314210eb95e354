"""Arguments of `warpsim play`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_force, add_source, natural


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "play",
        description="Lets a policy that `warpsim train` wrote control a scene, and shows or saves the motion.",
    )
    parser.add_argument("policy", help="a .pt file of `warpsim train`")
    add_source(parser)
    parser.add_argument("--seconds", type=float, default=10.0, help="simulated time (default: 10)")
    parser.add_argument("--worlds", type=natural, default=1, help="copies to run together (default: 1)")
    parser.add_argument("--noise", type=float, default=0.0, help="standard deviation of the initial coordinates")
    parser.add_argument("--seed", type=natural, default=0, help="seed of the noise (default: 0)")
    parser.add_argument("-o", "--output", help="a .html, .usda, .usdc or .npz file; without it a browser is opened")
    add_force(parser)
