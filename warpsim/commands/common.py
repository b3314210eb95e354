"""Arguments and acts that commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from pxr import Usd

from warpsim.errors import InputError
from warpsim.load import is_usd, load_scene
from warpsim.simulator import Simulator
from warpsim.usd.export import export_scene
from warpsim.usd.reader import open_stage


def add_source(parser: argparse.ArgumentParser) -> None:
    """The scene and how to read it."""
    parser.add_argument("scene", help="a .usd, .usda, .usdc, .usdz, .xml (MJCF) or .urdf file")
    parser.add_argument("--keyframe", help="MJCF: name of the keyframe to start from")
    strictness = parser.add_mutually_exclusive_group()
    strictness.add_argument(
        "--strict", action="store_const", const=True, help="fail if the file has physics that is not modelled"
    )
    strictness.add_argument(
        "--lenient", dest="strict", action="store_const", const=False, help="leave out physics that is not modelled"
    )


def open_simulator(arguments: argparse.Namespace, *, worlds: int = 1, device: str = "cpu") -> Simulator:
    """The simulator of the scene named on the command line."""
    return Simulator(
        arguments.scene, worlds=worlds, device=device, strict=arguments.strict, keyframe=arguments.keyframe
    )


def open_for_looking(source: str, keyframe: str | None) -> Usd.Stage:
    """The file's stage; other formats are converted in memory, and physics that is not modelled is no matter here."""
    if is_usd(source) and keyframe is None:
        if not Path(source).is_file():
            raise InputError(f"no file {source!r}")
        return open_stage(source)
    return export_scene(load_scene(source, strict=False, keyframe=keyframe))[0]
