"""`warpsim inspect`: what was read, what was ignored, sizes, and the contract of the simulation."""

from __future__ import annotations

import argparse

from warpsim.io.load import load_scene, warn_of_ledger
from warpsim.scene.convergence import with_stop
from warpsim.sim.describe import describe


def run(arguments: argparse.Namespace) -> int:
    """Prints the description."""
    scene = load_scene(arguments.scene, strict=arguments.strict, keyframe=arguments.keyframe)
    scene = with_stop(scene, arguments.iterations)
    if arguments.strict is not False:
        warn_of_ledger(scene, arguments.scene)
    print(describe(scene, ledger=arguments.ledger))
    return 0
