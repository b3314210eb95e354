"""Receding-horizon control at 50 Hz: a quadruped keeps its feet under pushes that its drives alone do not survive.

    python examples/quadruped_mpc.py [--output pushed.usda]

The controller plans the targets of twelve drives 0.24 s ahead, in steps of 20 ms through contact, by one iteration
of iLQR that begins with its last plan. The plant is the same file in steps of 2 ms, and each control reaches it one
period late, which is the time that planning may take. Every two seconds a push of 15 N·s, from another side each time,
changes the velocity of trunk and legs at once.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from pathlib import Path

import torch

import warpsim as ws
from warpsim.optimizers import ILQR, ControlProblem, RecedingHorizon, run_closed_loop

SCENE = Path(__file__).resolve().parents[1] / "scenes" / "quadruped.usda"
PERIOD, KNOTS, BETWEEN = 0.02, 12, 100  # s from control to control; of the horizon; controls from push to push
MASS, PUSH, SIDES = 12.0, 15.0, (0.0, 2.4, 4.8, 7.2)  # kg, N·s, rad
VELOCITIES = 18  # six of the trunk, twelve joints
LOWEST = 0.2  # m of the trunk's height, 0.3 m standing


def problem_of(model: ws.Simulator, standing: torch.Tensor) -> ControlProblem:
    """Stay where and as it stands, calmly; targets near the joints' own positions."""
    height, joints = standing[2:3], standing[7:]

    def pose(state: ws.Observed) -> list[torch.Tensor]:
        q, qd = state.q, state.qd
        turned = [6 * q[..., 4:6], 3 * q[..., 6:7]]
        return [
            10 * (q[..., 2:3] - height),
            *turned,
            0.5 * (q[..., 7:] - joints),
            0.2 * qd[..., 3:6],
            0.02 * qd[..., 6:],
        ]

    return ControlProblem(
        model,
        KNOTS,
        running=lambda state, target: torch.cat([*pose(state), 0.7 * state.qd[..., :3], 0.3 * (target - joints)], -1),
        terminal=lambda state: 2 * torch.cat([*pose(state), state.qd[..., :3]], -1),
        start=joints.repeat(KNOTS, 1),
        q=standing,
        qd=torch.zeros(VELOCITIES, dtype=standing.dtype),
    )


def main(output: str | None = None) -> float:
    """Runs the loop, checks that it stood, and returns the median processor time of a plan, s."""
    torch.set_num_threads(1)
    plant, model = ws.Simulator(SCENE), ws.Simulator(SCENE)
    model.set_parameters({"world.timestep": PERIOD})
    standing = plant.rollout(steps=500).q[-1, 0]
    method = ILQR(closed_loop=False, lengths=(1.0, 0.4, 0.1))
    controller = RecedingHorizon(problem_of(model, standing), delay=1, method=method)

    q, qd = standing, torch.zeros(VELOCITIES, dtype=standing.dtype)
    heights, motions, used = [], [], []
    for side in SIDES:
        qd[:2] += PUSH / MASS * torch.tensor([math.cos(side), math.sin(side)], dtype=qd.dtype)
        plant.reset(q=q, qd=qd)
        first = {"q": q.reshape(1, -1), "qd": qd.reshape(1, -1).clone()}
        began = time.process_time()
        run = run_closed_loop(plant, controller, BETWEEN)
        used.append((time.process_time() - began) / BETWEEN)
        q, qd = run.states["q"][-1], run.states["qd"][-1].clone()
        heights.append(float(run.states["q"][:, 2].min()))
        motions.append((first, run.controls))
        print(f"pushed at {math.degrees(side) % 360:3.0f}°: trunk {heights[-1]:.3f} m high at least; {run.latency()}")
        print(run.trouble() or "every plan was made from steps that converged")
    took = statistics.median(used)
    print(f"{1e3 * took:.1f} ms of processor time per control of {1e3 * PERIOD:.0f} ms, the plant included")
    steps = BETWEEN * round(PERIOD / plant.timestep)
    alone = [float(plant.rollout(steps=steps, start=first, keep_every=10).q[:, 0, 2].min()) for first, _ in motions]
    print("under the file's own targets alone the trunk sinks to " + ", ".join(f"{h:.3f}" for h in alone) + " m")
    assert min(heights) > LOWEST, "the quadruped should stay on its feet"
    assert min(alone) < LOWEST, "some push should be one that drives alone do not survive"
    if output:
        first, controls = motions[1]
        held = controls.repeat_interleave(round(PERIOD / plant.timestep), 0)
        motion = plant.rollout(controls=held, start=first, keep_every=10)
        print("wrote", ", ".join(str(path) for path in motion.save(output)))
    return took


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="a .usda file for the motion after the second push")
    main(parser.parse_args().output)
