"""Arguments of `warpsim view`."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.common import add_force


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "view",
        description="Writes one HTML file that shows a scene, and its motion if it has one, in any browser: orbit, "
        "play, scrub, click on things. It holds everything it needs and asks nothing of the network.",
    )
    parser.add_argument("file", help="a .usd, .usda, .usdc, .usdz, .xml (MJCF), .urdf or .npz file")
    parser.add_argument("--scene", help="for an .npz file: what was simulated")
    parser.add_argument("--world", type=int, help="for an .npz file: which world (default: 0)")
    parser.add_argument("--keyframe", help="MJCF: name of the keyframe to show")
    parser.add_argument("-o", "--output", help="the .html file to write (default: the scene's name, in this folder)")
    parser.add_argument("--open", action="store_true", help="open it in the browser")
    parser.add_argument(
        "--live",
        action="store_true",
        help="simulate it in the browser instead: pause, step, pull, move sliders (pip install warpsim[live])",
    )
    parser.add_argument("--port", type=int, default=0, help="with --live: on 127.0.0.1 (default: one that is free)")
    parser.add_argument(
        "--slider",
        action="append",
        default=[],
        metavar="ATTRIBUTE=LOW:HIGH",
        help="with --live: a slider for a USD attribute; may be given again",
    )
    add_force(parser)
