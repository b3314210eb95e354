"""The pair list against MuJoCo's own filters."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from collision_support import two_shape_scene
from warpsim.collision.pairs import collision_pairs
from warpsim.core.errors import UnknownNameError
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.scene.constraints import ContactOverride

TREE = """
<mujoco><worldbody>
  <geom name="floor" type="plane" size="1 1 1"/>
  <geom name="pillar" type="capsule" size=".1 .2"/>
  <body name="hip"><freejoint/>
    <geom name="hip" type="sphere" size=".1"/>
    <body name="shell"><geom name="shell" type="capsule" size=".1 .2"/></body>
    <body name="thigh"><joint/>
      <geom name="thigh" type="capsule" size=".1 .2"/>
      <body name="bracket"><geom name="bracket" type="sphere" size=".1"/>
        <body name="shin"><joint/>
          <geom name="shin" type="capsule" size=".1 .2"/>
          <geom name="foot" type="sphere" size=".1" contype="2" conaffinity="2"/>
        </body>
      </body>
    </body>
    <body name="arm"><joint/><geom name="arm" type="box" size=".1 .1 .1" contype="0" conaffinity="3"/></body>
  </body>
  <body name="turret"><joint/><geom name="turret" type="sphere" size=".1" contype="3"/></body>
</worldbody>
<contact><exclude body1="shin" body2="hip"/><exclude body1="world" body2="arm"/></contact>
</mujoco>
"""


def mujoco_pairs(model: mujoco.MjModel) -> set[frozenset[int]]:
    """The pairs MuJoCo collides: with a huge margin every pair that passes its filters makes a contact."""
    model.geom_margin[:] = 100.0
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE  # its boxes know no margin
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_collision(model, data)
    return {frozenset(map(int, pair)) for pair in data.contact.geom}


@pytest.mark.parametrize("filter_parent", [True, False])
def test_filters_are_mujocos(filter_parent):
    flag = "" if filter_parent else '<option><flag filterparent="disable"/></option>'
    model = mujoco.MjModel.from_xml_string(TREE.replace("<worldbody>", flag + "<worldbody>", 1))
    scene = scene_from_mjmodel(model)
    pairs = collision_pairs(scene)
    names = [frozenset(scene.shapes[i].name for i in pair) for pair in pairs]
    expected = {frozenset(model.geom(i).name for i in pair) for pair in mujoco_pairs(model)}
    assert len(names) == len(set(names))
    assert set(names) == expected


def test_humanoid_pairs_are_mujocos(assets_dir):
    spec = mujoco.MjSpec.from_file(str(assets_dir / "mujoco_humanoid" / "mjcf" / "humanoid.xml"))
    spec.memory = 1 << 28  # room for a contact of every pair
    model = spec.compile()
    scene = scene_from_mjmodel(model)
    pairs = {frozenset(scene.shapes[i].name for i in pair) for pair in collision_pairs(scene)}
    assert pairs == {frozenset(model.geom(i).name for i in pair) for pair in mujoco_pairs(model)}


def test_pair_order_and_overrides():
    scene = two_shape_scene("box", "sphere")
    np.testing.assert_array_equal(collision_pairs(scene), [[1, 0]])  # the sphere comes first, as in MuJoCo
    scene.excluded_pairs.add(frozenset(("a", "b")))
    assert len(collision_pairs(scene)) == 0
    scene.contact_overrides.append(ContactOverride("a", "b"))
    np.testing.assert_array_equal(collision_pairs(scene), [[1, 0]])
    scene.contact_overrides.append(ContactOverride("a", "c"))
    with pytest.raises(UnknownNameError, match="no shape 'c'"):
        collision_pairs(scene)


def test_two_that_cannot_move_never_collide():
    scene = two_shape_scene("box", "sphere")
    scene.bodies[0].kinematic = scene.bodies[1].kinematic = True
    assert len(collision_pairs(scene)) == 0
