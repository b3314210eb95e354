"""Arguments of `warpsim gradcheck`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_max_contacts, add_source, natural


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "gradcheck",
        description="Rolls a scene out, finds a free-motion and a contact window, and compares gradients by controls, "
        "initial state and parameters with central differences. Exit code 1 if a gradient is wrong.",
    )
    add_source(parser)
    add_max_contacts(parser)
    parser.add_argument("--steps", type=int, help="length of the rollout (default: two seconds)")
    parser.add_argument("--window", type=int, default=10, help="maximum number of steps of a window (default: 10)")
    parser.add_argument(
        "--parameter",
        action="append",
        metavar="NAME",
        help="a parameter to check, e.g. body.mass; may be repeated (default: masses, sizes, friction, damping, gains)",
    )
    parser.add_argument("--seed", type=natural, default=0, help="seed of the random directions (default: 0)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0 (default: cpu)")
