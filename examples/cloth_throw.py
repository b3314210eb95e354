"""A cloth is thrown so that it lies flat at a place 1.2 m away, turned by a quarter: its initial velocities are sought.

The cloth flies for half a second under gravity, slowed by air, and stretches and bends on its way. The objective is the
mean square distance of its points from where they should be; its gradient by all initial velocities comes from the
checkpointed tape, through 50 implicit steps.

    python examples/cloth_throw.py [page.html]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch

from warpsim.deformable import DeformableProgram, Matter, Sheet, build
from warpsim.tape import CheckpointedTape
from warpsim.view.page import Page, SurfaceDrawable, Take, write_page

SIDE, CELLS = 0.4, 7
TIME_STEP, STEPS = 0.01, 50
ITERATIONS = 25
TOLERANCE = 0.01
"""m, of the root mean square distance."""


def cloth() -> tuple[np.ndarray, np.ndarray]:
    """Points and triangles of a square sheet in the plane z = 1 m."""
    n = CELLS + 1
    x, y = np.meshgrid(*2 * [np.linspace(-SIDE / 2, SIDE / 2, n)], indexing="ij")
    corner = np.arange(n * n).reshape(n, n)
    a, b, c, d = corner[:-1, :-1].ravel(), corner[:-1, 1:].ravel(), corner[1:, :-1].ravel(), corner[1:, 1:].ravel()
    triangles = np.concatenate([np.stack([a, c, d], axis=1), np.stack([a, d, b], axis=1)])
    return np.stack([x.ravel(), y.ravel(), np.ones(n * n)], axis=1), triangles


class Throw:
    """The rollout, its objective and its gradient."""

    def __init__(self) -> None:
        """Builds the cloth and the place where it should lie."""
        self.points, self.triangles = cloth()
        sheet = Sheet(self.triangles, young=2e5, thickness=5e-4, density=300.0, damping=0.02, bending=20.0)
        model = build(Matter(self.points, [sheet]), time_step=TIME_STEP, mass_damping=0.5)
        self.program = DeformableProgram(model)
        self.tape = CheckpointedTape(self.program, steps=STEPS)
        quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
        self.target = (self.points - [0.0, 0.0, 1.0]) @ quarter.T + [1.2, 0.0, 0.8]

    def run(self, velocity: np.ndarray) -> np.ndarray:
        """(STEPS + 1, n, 3) places on the way."""
        state = {"x": self.points[None], "v": velocity[None]}
        run = self.tape.forward(state, keep_states=["x"], differentiate=False)
        return run.states["x"].numpy()[:, 0].copy()

    def objective(self, velocity: np.ndarray) -> tuple[float, np.ndarray]:
        """Mean square distance, m², and its derivative by the initial velocities, (n, 3) m s."""
        run = self.tape.forward({"x": self.points[None], "v": velocity[None]}, keep_states=["x"])
        away = run.states["x"].numpy()[-1, 0] - self.target
        gradients = self.tape.backward(run, state_seeds={"x": {-1: 2.0 * away[None] / len(away)}})
        return float((away**2).sum(axis=1).mean()), gradients.initial_state["v"].numpy()[0].copy()


def main(page: Path | None) -> None:
    """Seeks the velocities, checks that the cloth arrives, and writes what happens to a page if asked to."""
    throw = Throw()
    first = np.broadcast_to([1.5, 0.0, 1.0], throw.points.shape)
    velocity = torch.tensor(first.copy(), requires_grad=True)
    search = torch.optim.LBFGS([velocity], lr=1.0, max_iter=ITERATIONS, line_search_fn="strong_wolfe")
    losses: list[float] = []

    def closure() -> torch.Tensor:
        loss, gradient = throw.objective(velocity.detach().numpy())
        velocity.grad = torch.from_numpy(gradient)
        losses.append(loss)
        return torch.tensor(loss)

    search.step(closure)
    motion = throw.run(velocity.detach().numpy())
    distance = float(np.sqrt(((motion[-1] - throw.target) ** 2).sum(axis=1).mean()))
    print(f"{np.sqrt(losses[0]):.3f} m away at first, {1e3 * distance:.2f} mm after {len(losses)} gradients")
    assert distance < TOLERANCE, f"the cloth is {distance:.3f} m from its place"
    if page is not None:
        path, nothing = "/cloth", np.zeros((STEPS + 1, 0, 3))
        surface = SurfaceDrawable(path, throw.triangles, np.array([0.2, 0.4, 0.8]))
        times, turns = TIME_STEP * np.arange(STEPS + 1), np.zeros((STEPS + 1, 0, 4))
        takes = [
            Take("thrown", times, nothing, turns, points={path: motion}),
            Take("at first", times, nothing, turns, points={path: throw.run(first.copy())}, ghost=True),
        ]
        print(f"written to {write_page(page, Page('A cloth thrown onto a target', [], [surface], takes))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
