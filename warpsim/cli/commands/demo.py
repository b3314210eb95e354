"""`warpsim demo`: an example task, solved and shown; needs no file and no shell."""

from __future__ import annotations

import argparse

from warpsim.cli.arguments.optimize import add
from warpsim.cli.commands import optimize
from warpsim.core.driving import Steps
from warpsim.io.example_scenes import example_scene

_SCENE = "bounce_shot"


def run(arguments: argparse.Namespace) -> Steps[int]:
    """Solves the task as `warpsim optimize` would."""
    made = argparse.ArgumentParser()
    add(made.add_subparsers())
    given = ["optimize", str(example_scene(_SCENE)), "--output", arguments.output]
    return optimize.run(made.parse_args([*given, "--no-gif"] if arguments.no_gif else given))
