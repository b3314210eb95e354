"""Frames that MuJoCo takes for one: shapes and sites stand where it places them, not where the numbers say."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from warpsim.io.mjcf import scene_from_mjmodel

OFF = 3e-7
"""Less than what MuJoCo's compiler tells apart, more than what contacts forgive."""
NEARLY = f"""
<mujoco><worldbody><body pos="0.1 0.2 0.3" quat="0.5 0.5 -0.5 0.5"><freejoint/>
  <inertial pos="0.05 0 {OFF}" quat="0.8 0.6 0 {OFF}" mass="1" diaginertia="0.03 0.02 0.01"/>
  <geom name="inertial" type="box" size=".1 .2 .3" pos="0.05 {OFF} 0" quat="0.8 0.6 {OFF} 0"/>
  <geom name="turned" type="box" size=".1 .2 .3" pos="0.3 0 0" quat="0.8 0.6 {OFF} 0"/>
  <geom name="body" type="box" size=".1 .2 .3" pos="{OFF} 0 0" quat="1 0 0 {OFF}"/>
  <geom name="apart" type="box" size=".1 .2 .3" pos="0.01 0 0" quat="1 0.1 0 0"/>
  <site name="inertial" pos="0.05 0 0" quat="0.8 0.6 0 {-OFF}"/>
</body></worldbody></mujoco>
"""


def test_shapes_and_sites_stand_where_mujoco_places_them():
    model = mujoco.MjModel.from_xml_string(NEARLY)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    scene, center, turn = scene_from_mjmodel(model), data.xpos[1], data.xmat[1].reshape(3, 3)
    kinds = {mujoco.mjtSameFrame(x).name.removeprefix("mjSAMEFRAME_") for x in model.geom_sameframe}
    assert kinds == {"INERTIA", "INERTIAROT", "BODY", "NONE"}
    places = [(item, data.geom(item.name)) for item in scene.shapes] + [(scene.sites[0], data.site(0))]
    for item, placed in places:
        flat = np.empty(9)
        mujoco.mju_quat2Mat(flat, item.rotation)
        assert center + turn @ item.position == pytest.approx(placed.xpos, abs=1e-15)
        assert (turn @ flat.reshape(3, 3)).ravel() == pytest.approx(placed.xmat, abs=1e-15)
