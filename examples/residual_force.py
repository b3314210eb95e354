"""A learned residual force: a small network adds what the model lacks, fitted through the simulator.

    python examples/residual_force.py [--output predicted.usda]

Reality is MuJoCo: a ball in thick air, tied by a spring to a point above the floor. The USD file knows neither air nor
spring. A network from the ball's position and velocity to a force on it is trained by gradients through short windows
of motion, until what the simulator predicts is what was measured. Then it must predict throws it has not seen, over a
time ten times as long as the windows.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mujoco
import numpy as np
import torch
from tqdm import trange

import warpsim as ws
from warpsim.tape import Memory

SCENE = Path(__file__).resolve().parents[1] / "scenes" / "throw.usda"
THROWS, STEPS, WINDOW, HOLD, ITERATIONS, SEED = 48, 400, 40, 4, 500, 0
REALITY = """<mujoco>
  <option timestep="0.001" density="40" integrator="implicitfast"/>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <site name="hook" pos="0.5 0 1.2"/>
    <body name="ball" pos="0 0 1"><freejoint/><geom type="sphere" size=".05" mass=".2"/><site name="eye"/></body>
  </worldbody>
  <tendon><spatial stiffness="3" springlength="0.2"><site site="hook"/><site site="eye"/></spatial></tendon>
</mujoco>"""


def throws(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Where throws begin and how fast, (count, 3) each."""
    rng = np.random.default_rng(seed)
    low, high = np.array([[-0.3, -0.3, 1.2], [0.3, 0.3, 1.8]])
    return rng.uniform(low, high, (count, 3)), rng.uniform([-1.0, -1.0, -0.5], [2.5, 1.0, 2.0], (count, 3))


def measure(seed: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What MuJoCo does: q (STEPS + 1, count, 7) and qd (STEPS + 1, count, 6)."""
    model = mujoco.MjModel.from_xml_string(REALITY)
    data = mujoco.MjData(model)
    q, qd = np.zeros((STEPS + 1, count, 7)), np.zeros((STEPS + 1, count, 6))
    for k, (place, speed) in enumerate(zip(*throws(seed, count), strict=True)):
        mujoco.mj_resetData(model, data)
        data.qpos[:3], data.qvel[:3] = place, speed
        for row in range(STEPS + 1):
            q[row, k], qd[row, k] = data.qpos, data.qvel
            mujoco.mj_step(model, data)
    return torch.tensor(q), torch.tensor(qd)


class Residual(torch.nn.Module):
    """Force on the ball, N in world axes, from where it is and how fast."""

    def __init__(self, sim: ws.Simulator) -> None:
        super().__init__()
        torch.manual_seed(SEED)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(6, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 3)
        ).double()
        torch.nn.init.zeros_(self.layers[-1].weight)  # at first it adds nothing
        self._size = sim.control_size
        self._first = sim.control_slice("wrench").start + 6 * sim.body("/World/Ball").index

    def forward(self, state: ws.Observed) -> torch.Tensor:
        """(W, control_size): the force among all wrenches."""
        force = self.layers(torch.cat([state.q[:, :3], state.qd[:, :3]], -1))
        return torch.nn.functional.pad(force, (self._first, self._size - self._first - 3))


def fit(residual: Residual, sim: ws.Simulator, q: torch.Tensor, qd: torch.Tensor) -> list[float]:
    """Trains on windows that start at random moments of random throws; the losses."""
    optimizer = torch.optim.Adam(residual.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, ITERATIONS)
    rng, losses = np.random.default_rng(SEED), []
    spread = qd[..., :3].std((0, 1))
    for _ in (bar := trange(ITERATIONS, desc="fit", unit="it", mininterval=1.0)):
        throw, first = rng.integers(q.shape[1], size=sim.worlds), rng.integers(STEPS - WINDOW, size=sim.worlds)
        motion = sim.rollout_policy(
            residual,
            WINDOW,
            q=q[first, throw],
            qd=qd[first, throw],
            hold=HOLD,
            memory=Memory(segment=WINDOW),
            outputs=(),
        )
        loss = ((motion.qd[-1, :, :3] - qd[first + WINDOW, throw, :3]) / spread).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        bar.set_postfix(loss=f"{losses[-1]:.2e}")
    return losses


def error(
    sim: ws.Simulator, q: torch.Tensor, qd: torch.Tensor, residual: Residual | None
) -> tuple[float, ws.Trajectory]:
    """Root mean square distance, m, from where the balls were over whole throws; and the prediction."""
    with torch.no_grad():
        if residual is None:
            motion = sim.rollout(steps=STEPS, q=q[0], qd=qd[0])
        else:
            motion = sim.rollout_policy(residual, STEPS, q=q[0], qd=qd[0], hold=HOLD)
    return float((motion.q[..., :3] - q[..., :3]).square().sum(-1).mean().sqrt()), motion


def main(output: str | None = None) -> float:
    """Fits the residual, and compares predictions of new throws with and without it."""
    torch.set_num_threads(1)  # layers this small lose more to the hand-over between threads than they gain
    sim = ws.Simulator(SCENE, worlds=64, controls=("wrench",))
    residual = Residual(sim)
    fit(residual, sim, *measure(SEED, THROWS))
    unseen = measure(SEED + 1, 16)
    judge = ws.Simulator(SCENE, worlds=16, controls=("wrench",))
    (before, _), (after, motion) = error(judge, *unseen, None), error(judge, *unseen, residual)
    print(f"unseen throws, {STEPS} steps: off by {1e3 * before:.1f} mm without, {1e3 * after:.2f} mm with the residual")
    assert after < before / 5, "the learned force should predict unseen throws at least five times as well"
    if output:
        print("wrote", ", ".join(str(path) for path in motion.save(output)))
    return before / after


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="a .usda file for the predicted throws")
    main(parser.parse_args().output)
