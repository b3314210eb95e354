"""Arguments that commands share."""

from __future__ import annotations

import argparse


def natural(text: str) -> int:
    """A whole number, 0 or more, of a command line."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text}: give a whole number, 0 or more")
    return number


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
