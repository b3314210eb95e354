"""A one-legged robot learns to go forward, from random weights, by gradients through physics and contact.

    python examples/policy_hopper.py [--output hop.usda]

A network of 64 × 64 sees the hopper's height, pitch, joint angles and velocities and gives the targets of its three
servos. Each update differentiates 0.32 s of the motion of 64 hoppers, through landings and take-offs; a critic stands
for what comes after. Training ends when all of 64 other starts lead well forward. Then 16 hoppers that start in ways
nothing has seen must go forward by a meter or more within five seconds, at the scene's own time step, and none may
fall.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

import warpsim as ws
from warpsim.learn import SHAC, Critic, Iteration

SCENE = Path(__file__).resolve().parents[1] / "scenes" / "hopper.usda"
PLANE = "/World/Torso/Plane"
TIMESTEP, PERIOD = 0.005, 0.02  # s: a step in training; a control
WORLDS, UPDATES, SEED = 64, 1500, 0
VALIDATION, UNSEEN = 1_000_000, 2_000_000  # draws of starts that no training reaches
TESTS, SECONDS, FORWARD, CALM = 16, 5.0, 1.0, 0.3  # tests, s, m, share of the starts' disorder in training
JUDGED = 64  # starts that end the training: many more than are tested, or it would end by luck
CHECK = 20  # updates from one validation to the next
SPEED = 0.5  # m/s
LOWEST, STEEPEST = -0.25, 0.7  # m below standing, rad: beyond that it has fallen


def starts(sim: ws.Simulator, seed: int, share: float = 1.0) -> dict[str, torch.Tensor]:
    """Leaning, bent, moving, up to 6 cm over the ground; or a share of all that, closer to standing at rest."""

    def about(middle: list[float], reach: list[float]) -> ws.Randomization:
        return ws.Randomization(base=[share * m for m in middle], absolute=[share * r for r in reach])

    q = about([0.0, 0.03, 0.0, 0.0, 0.0, 0.0], [0.0, 0.03, 0.3, 0.3, 0.3, 0.3])  # m, m, rad …
    qd = about([0.25, 0.0, 0.0, 0.0, 0.0, 0.0], [0.75, 0.5, 1.0, 1.0, 1.0, 1.0])
    return sim.draw({"q": q, "qd": qd}, seed=seed)


def cost(state: ws.Observed, target: torch.Tensor) -> torch.Tensor:
    """Little while it goes forward at the wanted speed with its torso upright; below zero while it stands at all."""
    _, height, pitch = state.q[..., :3].unbind(-1)
    low = torch.relu(-0.05 - height)
    posture = 4 * pitch**2 + 0.05 * state.qd[..., 2] ** 2 + 40 * low**2 + 0.2 * state.q[..., 3:].square().sum(-1)
    return 0.2 * (2 * (state.qd[..., 0] - SPEED) ** 2 + posture + 0.01 * target.square().sum(-1) - 3.0)


def fallen(state: ws.Observed) -> torch.Tensor:
    """Whether the torso is too low or too steep."""
    return (state.q[..., 1] < LOWEST) | (state.q[..., 2].abs() > STEEPEST)


def train(sim: ws.Simulator, updates: int = UPDATES, progress: bool = True) -> tuple[ws.NetworkPolicy, list[Iteration]]:
    """The policy, from random weights, and its learning curve."""
    sim.set_parameters({"world.timestep": torch.full((sim.worlds,), TIMESTEP)})
    joints = [name for name in sim.joint_names if name != f"{PLANE}:transX"]
    policy = sim.network_policy(hidden=(64, 64), position=joints, angle=(), velocity_scale=0.2, seed=SEED)
    with torch.no_grad():
        policy.layers[-1].weight.mul_(0.02)  # at first it stands
    trainer = SHAC(
        sim,
        policy,
        cost,
        lambda number: starts(sim, SEED + number),
        failed=fallen,
        period=PERIOD,
        window=0.32,
        episode=4.0,
        discount=0.98,
        rate=1e-3,
        rate_decay=1000,
        world_clip=3.0,
        normalize=200,  # heights differ by centimeters, velocities by meters per second; both matter
        critic=Critic(len(policy.features), rate=1e-3, passes=4, seed=SEED),
        warm_up=60,
        seed=SEED,
    )
    judge = ws.Simulator(SCENE, worlds=JUDGED, outputs=())  # at the scene's own time step, as in the test

    def good(iteration: Iteration) -> bool:
        if iteration.number % CHECK != CHECK - 1:
            return False
        way, fell, _ = test(trainer.average, judge, VALIDATION)
        return float(way.min()) > 1.5 * FORWARD and not fell.any()

    curve = trainer.train(updates, progress=progress, until=good)
    return trainer.average, curve


def test(policy: ws.NetworkPolicy, sim: ws.Simulator, seed: int) -> tuple[torch.Tensor, torch.Tensor, ws.Trajectory]:
    """How far each of some starts leads, m, whether it falls on the way, and the motion."""
    steps, hold = (round(duration / sim.timestep) for duration in (SECONDS, PERIOD))
    with torch.no_grad():
        motion = sim.rollout_policy(policy, steps, **starts(sim, seed, CALM), hold=hold)
    return motion.q[-1, :, 0] - motion.q[0, :, 0], fallen(motion).any(0), motion


def main(output: str | None = None) -> ws.NetworkPolicy:
    """Trains and tests."""
    torch.set_num_threads(1)  # the tensors are too small to share
    began, used = time.perf_counter(), time.process_time()
    policy, curve = train(ws.Simulator(SCENE, worlds=WORLDS, outputs=()))
    used = time.process_time() - used
    print(f"trained in {time.perf_counter() - began:.0f} s ({used:.0f} s of processor time)")
    for part in range(0, len(curve), len(curve) // 10):
        row = curve[part]
        print(f"update {row.number:4d}: mean cost {row.cost:6.3f}, {row.failed:2d} of {WORLDS} fell within the window")
    assert used < 180, "training should take less than three minutes of processor time"

    way, fell, motion = test(policy, ws.Simulator(SCENE, worlds=TESTS), UNSEEN)
    print(f"{TESTS} unseen starts: {float(way.min()):.2f} to {float(way.max()):.2f} m forward, {int(fell.sum())} fell")
    assert float(way.min()) >= FORWARD and not fell.any(), "each hopper should go a meter forward without falling"
    if output:
        print("wrote", ", ".join(str(path) for path in motion.save(output)))
    return policy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="a .usda file for the motion")
    main(parser.parse_args().output)
