"""Arguments of `warpsim sweep`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_folder, add_force, add_max_contacts


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "sweep",
        description="Simulates a scene at every point of a grid of attributes' values, and writes sweep.csv and "
        "sweep.png. With a task each point has its loss, its terms and whether it is solved; without one, energies and "
        "coordinates at the end. Points that cannot be simulated stay in the table with the reason. Under torchrun "
        "ranks share the points.",
        epilog="warpsim sweep scenes/throw.usda --vary '/World/Ball.physics:velocity[0]=1:4:16' --vary "
        "/World/Ball/Shape.physics:mass=0.1,0.2,0.4",
    )
    parser.add_argument("scene", help="a .usd, .usda, .usdc or .usdz file")
    parser.add_argument(
        "--vary",
        action="append",
        required=True,
        metavar="PATH=LOW:HIGH:COUNT",
        help="an attribute and its values, in its unit: evenly spaced, LOW:HIGH:COUNT:log, or VALUE,VALUE,…; PATH[2] "
        "is the third number of a vector; repeated: all combinations",
    )
    parser.add_argument("--task", metavar="PATH", help="the task's prim, where there are several")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--steps", type=int, help="number of time steps, where there is no task")
    length.add_argument("--seconds", type=float, help="simulated time, where there is no task (default: 5)")
    add_folder(parser)
    add_max_contacts(parser)
    parser.add_argument("--workers", type=int, default=1, help="processes that share the points (default: 1)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_force(parser)
