"""Steps and gradients of a cloth that hangs, of one that falls on a ball, and of a soft block, against MuJoCo's flex.

    python -m tools.bench.deformable [--repeats 5] [--duration 0.25]

Processor times of one run each in turn, the least of the repeats. Both sides have the same points, elements, material
and time step; MuJoCo (integrator "discrete") linearizes the elastic force once in a step and has no gradient, warpsim
solves to its default tolerance. A gradient is a forward and a backward pass. "States" are what a gradient stores of a
simulated second in full: places and velocities; the scratch of the solve comes once on top.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from tools.bench.timing import Workload, measure
from warpsim.deformable.description import Matter, Obstacle, Sheet, Volume
from warpsim.deformable.model import build
from warpsim.deformable.program import DeformableProgram
from warpsim.tape import CheckpointedTape

_FLEX = """
<mujoco>
  <option integrator="discrete" timestep="{step}" tolerance="1e-10" iterations="100"/>
  <worldbody>
    {ball}
    <flexcomp name="it" type="grid" dim="{dim}" count="{count}" spacing="{spacing}" mass="{mass}" radius="0.001"
              pos="0 0 1">
      <edge equality="false"/>
      <contact selfcollide="none" contype="{touches}" conaffinity="{touches}"/>
      <elasticity young="{young}" poisson="0.3" {more}/>
      {pinned}
    </flexcomp>
  </worldbody>
</mujoco>
"""


@dataclass(frozen=True)
class Case:
    """What both sides simulate.

    Attributes:
        title: For the table.
        dim: 2: a sheet, hanging by one edge; 3: a block, held by one side.
        count: Points along x, y, z.
        spacing: m.
        mass: kg.
        young: Pa.
        step: s.
        ball: Radius of a ball under the middle of a sheet, which is held by nothing then, m; 0: there is none.
    """

    title: str
    dim: int
    count: tuple[int, int, int]
    spacing: float
    mass: float
    young: float
    step: float
    ball: float = 0.0

    def flex(self) -> mujoco.MjModel:
        """MuJoCo's model."""
        x, y, z = self.count
        pins = " ".join(str(k) for k in range(y * z))
        return mujoco.MjModel.from_xml_string(
            _FLEX.format(
                step=self.step,
                dim=self.dim,
                count=f"{x} {y} {z}",
                spacing=f"{self.spacing} {self.spacing} {self.spacing}",
                mass=self.mass,
                young=self.young,
                more='thickness="0.001" elastic2d="stretch"' if self.dim == 2 else "",
                pinned="" if self.ball else f'<pin id="{pins}"/>',
                touches=1 if self.ball else 0,
                ball=f'<geom type="sphere" size="{self.ball}" pos="0 0 {self.center}"/>' if self.ball else "",
            )
        )

    @property
    def center(self) -> float:
        """Height of the ball's center, m: a centimeter below the sheet, which is at 1 m."""
        return 0.99 - self.ball

    def program(self, model: mujoco.MjModel) -> DeformableProgram:
        """The same points and elements here."""
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        points = data.flexvert_xpos.copy()
        elements = np.array(model.flex_elem).reshape(-1, self.dim + 1)
        held = range(0 if self.ball else self.count[1] * self.count[2])
        if self.dim == 2:
            volume = (self.count[0] - 1) * (self.count[1] - 1) * self.spacing**2 * 1e-3
            part = Sheet(elements, young=self.young, thickness=1e-3, density=self.mass / volume, bending=0.0)
            return self._program(points, part, held)
        edges = points[elements[:, 1:]] - points[elements[:, :1]]
        size = np.linalg.det(edges)
        elements[size < 0.0] = elements[size < 0.0][:, [0, 2, 1, 3]]
        solid = Volume(elements, young=self.young, density=self.mass / (np.abs(size).sum() / 6.0))
        return self._program(points, solid, held)

    def _program(self, points: np.ndarray, part: Sheet | Volume, held: range) -> DeformableProgram:
        touching: dict[str, Any] = {}
        if self.ball:
            ball = Obstacle("sphere", (self.ball, 0.0, 0.0), (0.0, 0.0, self.center), friction=1.0)
            touching = {"obstacles": [ball], "contact_stiffness": 500.0, "contact_damping": 1.0, "radius": 0.001}
        model = build(Matter(points, [part], fixed=held, **touching), time_step=self.step)
        return DeformableProgram(model, outputs=["solver_iterations", "solver_status"])


CASES = (
    Case("cloth 20², Et = 2.6 kN/m", 2, (20, 20, 1), 1.0 / 19, 0.3, 2.6e6, 5e-3),
    Case("cloth 20² falling on a ball", 2, (20, 20, 1), 1.0 / 19, 0.3, 2.6e6, 5e-3, ball=0.2),
    Case("block 6 × 6 × 6, E = 50 kPa", 3, (6, 6, 6), 0.04, 8.0, 5e4, 5e-3),
)


def _mujoco(case: Case, model: mujoco.MjModel, steps: int) -> Workload:
    data = mujoco.MjData(model)

    def run() -> None:
        mujoco.mj_resetData(model, data)
        for _ in range(steps):
            mujoco.mj_step(model, data)

    return Workload(f"{case.title} mujoco", run, lambda: data.flexvert_xpos.copy())


def _ours(case: Case, program: DeformableProgram, steps: int) -> tuple[list[Workload], Callable[[], np.ndarray]]:
    """Forward and gradient, and the iterations of the last forward run."""
    tape = CheckpointedTape(program, steps=steps)
    start = program.initial_state()
    seed = np.random.default_rng(0).standard_normal(start["x"].shape)
    kept: dict[str, np.ndarray] = {}

    def forward() -> None:
        run = tape.forward(start, keep_outputs=True, differentiate=False)
        kept["iterations"] = run.outputs["solver_iterations"].numpy()
        if run.outputs["solver_status"].numpy().any():
            raise RuntimeError(f"{case.title}: a step did not converge")

    def gradient() -> None:
        found = tape.backward(tape.forward(start), state_seeds={"x": {-1: seed}})
        kept["gradient"] = found.initial_state["x"].numpy()

    def iterations() -> np.ndarray:
        return kept["iterations"]

    runs = {"forward": forward, "gradient": gradient}
    return [Workload(f"{case.title} {name}", run, iterations) for name, run in runs.items()], iterations


def row(case: Case, duration: float, repeats: int) -> str:
    """One line of the table."""
    steps = round(duration / case.step)
    model = case.flex()
    own, iterations = _ours(case, case.program(model), steps)
    timings = measure([_mujoco(case, model, steps), *own], warmups=1, repeats=repeats)
    theirs, forward, gradient = (1e3 * timing.best / steps for timing in timings.values())
    states = 2 * 24 * case.count[0] * case.count[1] * case.count[2] / case.step / 1e6
    cells = [case.title, f"{1e3 * case.step:g}", f"{theirs:.2f}", f"{forward:.2f}", f"{forward / theirs:.2f}"]
    cells += [f"{gradient:.2f}", f"{gradient / theirs:.2f}", f"{iterations().mean():.1f}, {iterations().max()}"]
    return f"| {' | '.join([*cells, f'{states:.1f}'])} |"


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--duration", type=float, default=0.25, help="simulated, s")
    given = parser.parse_args()
    print(
        "| | h, ms | MuJoCo, ms a step | forward | ratio | gradient | ratio | iterations: mean, most | states, MB/s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for case in CASES:
        print(row(case, given.duration, given.repeats), flush=True)


if __name__ == "__main__":
    main()
