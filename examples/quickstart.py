"""Quick start: load a robot, roll it out, and let Adam find motor commands and a start pose that reach a target.

    python examples/quickstart.py [--output reach.usda]

A seven-joint arm from a USD file shall bring its fingertip to a point and be at rest there after 0.2 s. Two things are
optimized together, through one hundred steps of physics: the drive targets of all steps, `controls[100, 7]`, and the
joint angles it starts from.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

import warpsim as ws

SCENE = Path(__file__).resolve().parents[1] / "scenes" / "arm.usda"
STEPS, ITERATIONS = 100, 60
HAND = "/World/Arm/Shoulder/UpperArm/Elbow/Forearm/Wrist/Palm/Hand"
TARGET = (0.45, 0.15, 0.75)  # m, world


def main(output: str | None = None) -> float:
    """Optimizes and returns the fingertip's final distance from the target, m."""
    sim = ws.Simulator(SCENE, outputs=("body_position", "body_rotation", "body_velocity"))
    target = torch.tensor(TARGET, dtype=sim.torch_dtype)
    start = sim.state.q[0]
    hold = start[: sim.control_size]  # drives that hold the start pose

    controls = hold.repeat(STEPS, 1).requires_grad_()  # rad, one row per step
    angles = hold.clone().requires_grad_()  # rad, where the arm starts
    optimizer = torch.optim.Adam([{"params": [controls], "lr": 0.05}, {"params": [angles], "lr": 0.02}])

    for iteration in range(ITERATIONS):
        optimizer.zero_grad()
        q = torch.cat([angles, start[sim.control_size :]])
        trajectory = sim.rollout(controls=controls, q=q)
        miss = trajectory.body_position(HAND)[-1, 0] - target
        speed = trajectory.body_velocity(HAND)[-1, 0, 3:]
        moved = angles - hold
        loss = miss.square().sum() + 1e-3 * speed.square().sum() + 1e-2 * moved.square().sum()
        loss.backward()
        optimizer.step()
        if iteration % 10 == 0:
            off, fast = miss.detach().norm().item(), speed.detach().norm().item()
            print(f"iteration {iteration:3d}: {1e3 * off:7.2f} mm from the target, moving at {fast:.3f} m/s")

    with torch.no_grad():
        trajectory = sim.rollout(controls=controls, q=torch.cat([angles, start[sim.control_size :]]))
    distance = float((trajectory.body_position(HAND)[-1, 0] - target).norm())
    print(f"the fingertip ends {1e3 * distance:.2f} mm from the target")
    if output:
        print("wrote", ", ".join(str(path) for path in trajectory.save(output)))
    return distance


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="a .usda file for the motion")
    final = main(parser.parse_args().output)
    assert final < 0.01, f"the arm should come within 10 mm of its target, but misses by {1e3 * final:.1f} mm"
