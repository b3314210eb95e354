"""`warpsim convert`: MJCF or URDF → USD."""

from __future__ import annotations

import argparse
from pathlib import Path

from warpsim.commands.common import add_source
from warpsim.errors import InputError
from warpsim.load import is_usd, load_scene
from warpsim.usd import author
from warpsim.usd.export import export_scene


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser("convert", help="write an MJCF or URDF robot as USD")
    add_source(parser)
    parser.add_argument("output", help="the .usda or .usdc file to write")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Converts and lists what USD could not hold."""
    output = Path(arguments.output)
    if not is_usd(output):
        raise InputError(f"{output}: give a .usda or .usdc file to write")
    scene = load_scene(arguments.scene, strict=arguments.strict, keyframe=arguments.keyframe)
    stage, notes = export_scene(scene)
    author.save(stage, output)
    print(f"wrote {output}")
    for note in notes:
        print(f"  {note}")
    return 0
