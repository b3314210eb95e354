"""`warpsim view`: a file, animated or not, as a page for any browser."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from warpsim.cli.commands.looking import open_for_looking
from warpsim.cli.commands.outputs import add_force, check_outputs
from warpsim.core.errors import InputError
from warpsim.core.registry import provided
from warpsim.view.page import write_page
from warpsim.view.page.stage_content import stage_page

_TASK = "WarpsimTask"
"""Type of prims that say what is wanted; reading them takes a second longer, so it is done where there is one."""


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
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Writes the page, and opens it if asked to."""
    source = Path(arguments.file)
    if arguments.live:
        return provided("live_command")(arguments)
    output = Path(arguments.output) if arguments.output else Path(source.with_suffix(".html").name)
    if output.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{output}: give an .html file to write")
    read = [arguments.file] if arguments.scene is None else [arguments.file, arguments.scene]
    check_outputs([output], read, force=arguments.force)
    stage = open_for_looking(arguments.file, keyframe=arguments.keyframe, scene=arguments.scene, world=arguments.world)
    page = stage_page(stage, source.stem)
    if any(prim.GetTypeName() == _TASK for prim in stage.Traverse()):
        page = provided("with_targets")(page, stage)
    written = write_page(output, page)
    print(f"wrote {written} ({written.stat().st_size / 1e6:.2f} MB)")
    if arguments.open:
        webbrowser.open(written.resolve().as_uri())
    return 0
