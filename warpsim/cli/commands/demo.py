"""`warpsim demo`: an example task, solved and shown; needs no file and no shell."""

from __future__ import annotations

import argparse

from warpsim.cli.commands import optimize
from warpsim.io.example_scenes import example_scene

_SCENE, _FOLDER = "bounce_shot", "warpsim-demo"


def add(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "demo",
        description="Solves the task of an example scene: which velocity makes a ball hit a target after a bounce? "
        "Writes the folder that `warpsim optimize` does, with result.html for a browser. The first run compiles "
        "kernels, which takes a minute or two.",
    )
    parser.add_argument("-o", "--output", default=_FOLDER, metavar="FOLDER", help=f"default: {_FOLDER}")
    parser.add_argument("--no-gif", action="store_true", help="do not draw before_after.gif")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Solves the task as `warpsim optimize` would."""
    made = argparse.ArgumentParser()
    optimize.add(made.add_subparsers())
    given = ["optimize", str(example_scene(_SCENE)), "--output", arguments.output]
    return optimize.run(made.parse_args([*given, "--no-gif"] if arguments.no_gif else given))
