"""Arguments that commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from warpsim.scene.description import SOLVER_STOPS


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
    parser.add_argument(
        "--iterations",
        choices=SOLVER_STOPS,
        help="whether the contact solver converges (default) or stops at the file's own cap, which leaves no gradients",
    )
    strictness = parser.add_mutually_exclusive_group()
    strictness.add_argument(
        "--strict", action="store_const", const=True, help="fail if the file has physics that is not modeled"
    )
    strictness.add_argument(
        "--lenient", dest="strict", action="store_const", const=False, help="leave out physics that is not modeled"
    )
    parser.set_defaults(max_contacts=None)


def add_max_contacts(parser: argparse.ArgumentParser) -> None:
    """Room for contacts, of commands that simulate."""
    parser.add_argument(
        "--max-contacts",
        type=int,
        metavar="N",
        help="stop if a world has more contacts than this (default: warpsim:maxContacts of the file, or no limit)",
    )


def add_force(parser: argparse.ArgumentParser) -> None:
    """`--force`, of every command that writes."""
    parser.add_argument(
        "--force", action="store_true", help="replace files that warpsim did not write or that were changed since"
    )


def add_folder(parser: argparse.ArgumentParser) -> None:
    """The folder of results, of commands that write several files; `result_folder` is where they go."""
    parser.add_argument("-o", "--output", metavar="FOLDER", help="the folder to write (default: out/NAME of the scene)")


def result_folder(arguments: argparse.Namespace) -> Path:
    """Where results go: the folder that was asked for, or one with the scene's name."""
    return Path("out", Path(arguments.scene).stem) if arguments.output is None else Path(arguments.output)
