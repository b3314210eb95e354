"""Fitted values in MJCF, read back by MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np

from warpsim.identification.writing import FittedValue, write_mjcf
from warpsim.io.load import load_scene

ROBOT = """<mujoco>
  <worldbody>
    <body name="ball" pos="0 0 1"><freejoint name="free"/><geom name="b" size=".1"/></body>
    <body name="arm"><joint name="first" axis="0 1 0" damping=".1"/><geom name="g" size=".1" mass="1"/>
      <body name="hand" pos="1 0 0"><joint name="second" axis="0 1 0" damping=".2"/><geom name="h" size=".1"/></body>
    </body>
  </worldbody>
</mujoco>"""


def test_values_go_to_the_joints_bodies_and_shapes_they_belong_to(tmp_path):
    source = tmp_path / "robot.xml"
    source.write_text(ROBOT)
    scene = load_scene(source)
    given = {("joint.damping", 6): 0.7, ("joint.damping", 7): 0.9, ("body.mass", 3): 2.5, ("shape.friction", 1): 0.4}
    values = [
        FittedValue(name, None, (place,), np.array([x] if name != "shape.friction" else [x, 0.005, 0.0001]))
        for (name, place), x in given.items()
    ]
    model = mujoco.MjModel.from_xml_path(str(write_mjcf(tmp_path / "fitted.xml", source, scene, values, 0.004)))
    assert np.allclose(model.dof_damping, [0, 0, 0, 0, 0, 0, 0.7, 0.9])
    before = mujoco.MjModel.from_xml_path(str(source))
    assert np.allclose(model.body_inertia, before.body_inertia) and np.allclose(model.body_ipos, before.body_ipos)
    assert np.isclose(model.body("hand").mass[0], 2.5) and np.isclose(model.body("arm").mass[0], 1.0)
    assert np.isclose(model.geom("g").friction[0], 0.4) and np.isclose(model.geom("h").friction[0], 1.0)
    assert model.opt.timestep == 0.004
