"""A policy that swings a pole up and balances it, trained from random weights by gradients through physics.

    python examples/policy_swingup.py [--output swingup.usda]

A network of 64 × 64 sees cart and pole and pushes the cart with at most 10 N, too little to lift the pole otherwise
than by swinging it. 64 cart-poles, each with a pole of its own mass (±20 %), start anywhere between hanging and
upright; each update differentiates 0.32 s of their motion, and a critic stands for what comes after. Then 32 poles that
hang in ways it has not seen must be upright for the last two of eight seconds, at the scene's own time step, also with
poles 20 % lighter and heavier.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch

import warpsim as ws
from warpsim.learn import SHAC, Critic

SCENE = Path(__file__).resolve().parents[1] / "scenes" / "cartpole.usda"
POLE, PUSH = "/World/Cart/Pole/Rod.physics:mass", "/World/Push.mjc:gear"
FORCE = [10.0, 0.0, 0.0, 0.0, 0.0, 0.0]  # N
TIMESTEP, PERIOD = 0.01, 0.02  # s: a step in training; a control
WORLDS, UPDATES, SEED, UNSEEN = 64, 700, 0, 1000
TESTS, SECONDS, LAST, UPRIGHT = 32, 8.0, 2.0, 0.2  # tests, s, s, rad
HANGING = torch.tensor([0.0, torch.pi], dtype=torch.float64)  # m, rad


def training_starts(sim: ws.Simulator, number: int) -> dict[str, torch.Tensor]:
    """Every second world near hanging and at rest, the others at any angle and moving."""
    seed = SEED + number
    q = ws.Randomization(base=HANGING, absolute=[0.5, 0.4])
    near = sim.draw({"q": q, "qd": ws.Randomization(absolute=[0.2, 0.3], kind="normal")}, seed=seed)
    q = ws.Randomization(absolute=[1.5, torch.pi])
    anywhere = sim.draw({"q": q, "qd": ws.Randomization(absolute=[1.0, 3.0], kind="normal")}, seed=seed)
    first = (torch.arange(sim.worlds) % 2 == 0).unsqueeze(1)
    return {name: torch.where(first, near[name], anywhere[name]) for name in ("q", "qd")}


def cost(state: ws.Observed, push: torch.Tensor) -> torch.Tensor:
    """Little while the pole is up and quiet and the cart in the middle; much near the ends of the rail."""
    (x, angle), (speed, spin) = state.q.unbind(-1), state.qd.unbind(-1)
    up = torch.sigmoid(10 * (torch.cos(angle) - 0.5))  # swinging is not punished below
    beyond = torch.relu(x.abs() - 1.4)
    costs = 0.5 * (1 - torch.cos(angle)) + 0.05 * x**2 + 0.01 * speed**2 + 0.002 * up * spin**2 + 10 * beyond**2
    return costs + 0.002 * push[..., 0] ** 2


def train(sim: ws.Simulator, updates: int = UPDATES, progress: bool = True) -> ws.NetworkPolicy:
    """The policy, from random weights."""
    masses = sim.draw({POLE: ws.Randomization(relative=0.2)}, seed=SEED)
    sim.set_parameters({**masses, PUSH: FORCE, "world.timestep": torch.full((sim.worlds,), TIMESTEP)})
    policy = sim.network_policy(hidden=(64, 64), velocity_scale=0.2, seed=SEED)
    trainer = SHAC(
        sim,
        policy,
        cost,
        lambda number: training_starts(sim, number),
        period=PERIOD,
        window=0.32,
        episode=5.0,
        rate=5e-3,
        rate_decay=200,
        critic=Critic(len(policy.features), rate=3e-3, seed=SEED),
        evaluate_every=50,
        evaluate_seconds=8.0,
        seed=SEED,
    )
    trainer.train(updates, progress=progress)
    return trainer.best_policy()


def test(policy: ws.NetworkPolicy, sim: ws.Simulator, mass: float) -> tuple[int, ws.Trajectory]:
    """How many of the unseen starts end upright with a pole of some mass, kg; and their motion."""
    starts = {"q": ws.Randomization(base=HANGING, absolute=0.5), "qd": ws.Randomization(absolute=0.5, kind="normal")}
    sim.set_parameters({POLE: mass, PUSH: FORCE})
    steps, hold = (round(duration / sim.timestep) for duration in (SECONDS, PERIOD))
    with torch.no_grad():
        motion = sim.rollout_policy(policy, steps, **sim.draw(starts, seed=UNSEEN), hold=hold)
    angle = motion.q[-round(LAST / sim.timestep) :, :, 1]
    off = torch.remainder(angle + torch.pi, 2 * torch.pi) - torch.pi
    return int((off.abs() < UPRIGHT).all(0).sum()), motion


def main(output: str | None = None) -> ws.NetworkPolicy:
    """Trains and tests."""
    torch.set_num_threads(1)  # the tensors are too small to share
    began, used = time.perf_counter(), time.process_time()
    policy = train(ws.Simulator(SCENE, worlds=WORLDS, outputs=()))
    used = time.process_time() - used
    print(f"trained in {time.perf_counter() - began:.0f} s ({used:.0f} s of processor time)")
    assert used < 120, "training should take less than two minutes of processor time"

    sim = ws.Simulator(SCENE, worlds=TESTS)
    own = float(sim.attribute(POLE).value)
    for share in (1.0, 0.8, 1.2):
        count, motion = test(policy, sim, share * own)
        farthest = float(motion.q[..., 0].abs().max())
        print(f"pole of {share * own:.2f} kg: {count} of {TESTS} upright at last; cart within {farthest:.2f} m")
        assert count >= 30, "at least 30 of 32 poles should be upright for the last two seconds"
    if output:
        print("wrote", ", ".join(str(path) for path in motion.save(output)))
    return policy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="a .usda file for the motion")
    main(parser.parse_args().output)
