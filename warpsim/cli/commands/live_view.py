"""`warpsim view --live`: apart from `view`, which needs no simulator and starts sooner without one."""

from __future__ import annotations

import argparse

from warpsim.core.errors import InputError
from warpsim.sim.simulator import Simulator


def run_live(arguments: argparse.Namespace) -> int:
    """Simulates under the hands of whoever looks, until they leave."""
    unwanted = [name for name in ("output", "scene", "world") if getattr(arguments, name) is not None]
    if unwanted:
        raise InputError(f"--{unwanted[0]} does not go with --live, which writes nothing and simulates a scene")
    sliders = dict(map(_slider, arguments.slider))
    sim = Simulator(arguments.file, keyframe=arguments.keyframe)
    if "wrench" not in sim.control_names and sim.scene.bodies:
        sim = sim.with_worlds(1, controls=(*sim.control_names, "wrench"))
    with sim.viewer(sliders=sliders, port=arguments.port, browser=arguments.open) as viewer:
        print(f"open in a browser on this machine (Ctrl-C ends it): {viewer.url}", flush=True)
        try:
            viewer.run()
        except KeyboardInterrupt:
            print("ended")
    return 0


def _slider(text: str) -> tuple[str, tuple[float, float]]:
    path, _, ends = text.rpartition("=")
    low, _, high = ends.partition(":")
    try:
        return path, (float(low), float(high))
    except ValueError:
        raise InputError(f"--slider {text!r}: write ATTRIBUTE=LOW:HIGH, e.g. /World/Ball.physics:mass=0.1:2") from None
