"""A swinging sheet against MuJoCo's flex under its discrete integrator, at the same time step.

MuJoCo linearizes the elastic force once in a step, this package solves to convergence, so the two differ by O(h) in a
large motion. What has to agree is where both go as h falls.
"""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.deformable.description import Matter, Sheet
from warpsim.deformable.model import build
from warpsim.deformable.program import DeformableProgram
from warpsim.tape import CheckpointedTape

mujoco = pytest.importorskip("mujoco")

YOUNG, POISSON, THICKNESS = 1e5, 0.2, 2e-3
SIZE, DURATION = 0.25, 0.6
SHEET = """
<mujoco>
  <option integrator="discrete" timestep="{time_step}" gravity="0 0 -9.81" tolerance="1e-12" iterations="200"/>
  <worldbody>
    <flexcomp name="sheet" type="grid" dim="2" count="6 6 1" spacing="0.05 0.05 0.05" mass="0.05" radius="0.001"
              pos="0 0 1">
      <edge equality="false"/>
      <contact selfcollide="none" contype="0" conaffinity="0"/>
      <elasticity young="{young}" poisson="{poisson}" thickness="{thickness}" elastic2d="stretch"/>
      <pin id="0 1 2 3 4 5"/>
    </flexcomp>
  </worldbody>
</mujoco>
"""


def distance(time_step: float) -> float:
    """Largest distance of a vertex from MuJoCo's over the whole motion, m."""
    text = SHEET.format(time_step=time_step, young=YOUNG, poisson=POISSON, thickness=THICKNESS)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    start, triangles = data.flexvert_xpos.copy(), model.flex_elem.reshape(-1, 3)
    steps = round(DURATION / time_step)
    path = np.full((steps, *start.shape), np.nan)
    for row in path:
        mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
        row[:] = data.flexvert_xpos
    sheet = Sheet(triangles, young=YOUNG, poisson=POISSON, thickness=THICKNESS, bending=0.0)
    ours = build(Matter(start, [sheet], fixed=range(6)), time_step=time_step)
    ours.physical["mass"].assign(np.full((1, len(start)), 0.05 / len(start)))  # as flex shares it out
    program = DeformableProgram(ours, outputs=["solver_status"])
    tape = CheckpointedTape(program, steps=steps)
    run = tape.forward(program.initial_state(), keep_states=["x"], keep_outputs=True, differentiate=False)
    assert not run.outputs["solver_status"].numpy().any()
    assert np.linalg.norm(path - start, axis=2).max() > 0.4
    return float(np.linalg.norm(run.states["x"].numpy()[1:, 0] - path, axis=2).max())


@pytest.mark.long
def test_swinging_sheet_meets_mujoco_flex_as_the_step_falls():
    coarse, fine = distance(4e-3), distance(2.5e-4)
    assert fine <= 0.01 * SIZE
    assert coarse >= 4.0 * fine
