"""Arguments of `warpsim simulate`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_force, add_max_contacts, add_source, natural


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "simulate",
        description="Runs a scene with its drives at their targets and all other controls at zero.",
    )
    add_source(parser)
    add_max_contacts(parser)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--steps", type=int, help="number of time steps")
    length.add_argument("--seconds", type=float, help="simulated time (default: 5)")
    parser.add_argument("--worlds", type=int, default=1, help="copies to run together (default: 1)")
    parser.add_argument("--noise", type=float, default=0.0, help="standard deviation of the initial coordinates")
    parser.add_argument("--seed", type=natural, default=0, help="seed of the noise (default: 0)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0 (default: cpu)")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads that share the worlds (default: 1)")
    parser.add_argument("--fps", type=float, default=60.0, help="frames kept per simulated second (default: 60)")
    parser.add_argument(
        "-o",
        "--output",
        help="where the motion goes: .usda or .usdc (world 0; a .npz beside it holds energies, momenta, penetration, "
        "constraint error, saturation and solver status of all worlds), .npz alone, or .html to look at in a browser",
    )
    parser.add_argument("--record", metavar="JSON", help="write a run record, for `warpsim compare` and `replay`")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_force(parser)
