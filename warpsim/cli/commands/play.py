"""`warpsim play`: a trained policy in its scene, as a motion."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from warpsim.cli.commands.opening import open_simulator
from warpsim.cli.commands.outputs import check_outputs
from warpsim.core.errors import InputError
from warpsim.learn.saved_policy import load_policy
from warpsim.sim.start import Start
from warpsim.sim.trajectory import check_target

_SHOWN = ("body_position", "body_rotation", "body_velocity")


def run(arguments: argparse.Namespace) -> int:
    """Runs, prints how far it went, saves or shows."""
    if not arguments.seconds > 0 or arguments.noise < 0:
        raise InputError(f"--seconds {arguments.seconds:g} must be above 0, --noise {arguments.noise:g} not below")
    if arguments.output:
        check_target(Path(arguments.output), Path(arguments.scene))
        check_outputs([arguments.output], [arguments.scene, arguments.policy], force=arguments.force)
    saved = load_policy(arguments.policy)
    sim = open_simulator(arguments, worlds=arguments.worlds)
    if arguments.noise:
        sim.reset(start=Start(position_noise=arguments.noise, seed=arguments.seed))
    hold = saved.hold(sim)
    steps = max(1, round(arguments.seconds / sim.timestep / hold)) * hold
    with torch.no_grad():
        motion = sim.rollout_policy(saved.policy, steps, hold=hold, outputs=_SHOWN)
    body = sim.body_names[1]
    moved = (motion.body_position(body)[-1] - motion.body_position(body)[0]).mean(0).tolist()
    print(f"{body} moved by ({', '.join(f'{x:.3f}' for x in moved)}) m in {steps * sim.timestep:g} s")
    frames = motion.every(max(1, round(1 / 60 / sim.timestep)))
    if arguments.output:
        print("wrote " + ", ".join(str(path) for path in frames.save(arguments.output)))
    else:
        print(f"opened {frames.view()}")
    return 0
