"""Inertia along tendons, and equalities between spatial ones: against MuJoCo, energy, and central differences."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from contact_support import converging
from random_models import random_state
from rigid_support import scene_of
from row_support import assert_gradients, assert_small, compare_rows, gradient_case, path_ratio
from warpsim.core.errors import SceneError
from warpsim.io.usd.export import export_scene
from warpsim.io.usd.reader import read_usd
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.query import kinetic_energy, mass_matrix
from warpsim.rigid.query.joint_space import bias_force
from warpsim.rigid.query.motion import make_state
from warpsim.scene.validate import validate
from warpsim.sim.mjcf_export import scene_to_mjcf

BRANCHES = """
<mujoco>
  <option timestep="0.002" integrator="{integrator}"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <site name="wall" pos="0 0 1"/>
    <body name="upper" pos="0 0 0.4">
      <joint name="shoulder" axis="0 1 0" limited="true" range="-0.1 0.1"/>
      <geom size="0.1" pos="0.3 0 0" mass="1"/>
      <site name="elbow" pos="0.5 0 0.1"/>
      <body name="left" pos="0.5 0 0">
        <joint name="left" axis="0 1 0" damping="0.1"/>
        <geom size="0.1" pos="0.3 0 0" mass="1"/>
        <site name="left" pos="0.3 0.1 0.1"/>
      </body>
      <body name="right" pos="0.5 0 0">
        <joint name="right" axis="1 0.2 0"/>
        <geom size="0.1" pos="0.3 0.1 0" mass="1"/>
        <site name="right" pos="0.3 0.2 0.1"/>
      </body>
    </body>
    <body name="free" pos="0 2 0">
      <freejoint/>
      <geom type="box" size="0.1 0.06 0.03" pos="0.02 0 0.01" mass="1"/>
      <site name="free" pos="0.1 0.1 0"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="joints" armature="0.7" stiffness="2">
      <joint joint="shoulder" coef="1"/><joint joint="left" coef="0.5"/><joint joint="right" coef="-0.4"/>
    </fixed>
    <spatial name="rope" armature="2" damping="0.3" limited="true" range="0 0.9">
      <site site="wall"/><site site="elbow"/><site site="left"/>
    </spatial>
    <spatial name="across" armature="1.1"><site site="right"/><site site="left"/></spatial>
    <spatial name="trees" armature="0.4"><site site="free"/><site site="left"/></spatial>
    <spatial name="pulley" armature="0.9">
      <site site="wall"/><site site="left"/><pulley divisor="2"/><site site="wall"/><site site="elbow"/>
    </spatial>
    <spatial name="light"><site site="free"/><site site="right"/></spatial>
  </tendon>
  <equality>
    <tendon tendon1="rope" tendon2="across" polycoef="0.01 0.6 0.1 0 0" solref="0.05 1"/>
    <tendon tendon1="light" polycoef="-0.02 1 0 0 0" solref="0.04 0.8" solimp="0.6 0.9 0.1 0.5 2"/>
  </equality>
</mujoco>
"""


def branches(integrator: str = "Euler") -> mujoco.MjModel:
    return converging(mujoco.MjModel.from_xml_string(BRANCHES.format(integrator=integrator)))


def test_rows_weights_and_accelerations_match_mujoco():
    mj = branches()
    for seed in range(6):
        assert_small(compare_rows(mj, random_state(mj, seed)), f"seed {seed}")


def test_mass_matrix_bias_and_energy_match_mujoco():
    mj = branches()
    mj.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    state, data = random_state(mj, 3), mujoco.MjData(mj)
    state.apply(data)
    mujoco.mj_forward(mj, data)
    full = np.zeros((mj.nv, mj.nv))
    mujoco.mj_fullM(mj, data, full)
    m = compile_model(scene_of(mj))
    Derivation(m).run()
    here = make_state(m, {"q": data.qpos, "qd": data.qvel})
    np.testing.assert_allclose(mass_matrix(m, here).numpy()[0], full, rtol=0, atol=1e-11 * np.abs(full).max())
    bias = data.qfrc_bias
    np.testing.assert_allclose(bias_force(m, here).numpy()[0], bias, rtol=0, atol=1e-11 * np.abs(bias).max())
    assert kinetic_energy(m, here).numpy()[0] == pytest.approx(data.energy[1], rel=1e-11)


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_motion_matches_mujoco(integrator):
    mj = branches(integrator)
    assert path_ratio(mj, mj.qpos0.copy(), random_state(mj, 2, speed=0.5).qvel, 60) < 1e4


@pytest.mark.parametrize(
    ("seed", "integrator"),
    [(0, "Euler"), *(pytest.param(n, i, marks=pytest.mark.long) for n in (1, 2) for i in ("implicitfast", "RK4"))],
)
def test_gradients_match_differences(seed, integrator):
    names = ("site.position", "joint.anchor", "joint.axis", "body.mass", "body.inertia")
    groups = ("tendon", "tendon_limit", "equality")
    rollout, inputs = gradient_case(branches(integrator), seed, 3, groups, names, spread=0.2)
    assert "tendon.armature" in inputs
    assert_gradients(rollout, inputs, seed, most=0.2)


def test_inertia_along_a_wrapped_tendon_is_refused():
    scene = scene_of(branches())
    scene.tendons[1].path[1].kind = "shape"
    scene.tendons[1].path[1].name = scene.shapes[0].name
    scene.shapes[0].kind = "sphere"
    with pytest.raises(SceneError, match="wraps around a shape"):
        validate(scene)


@pytest.mark.parametrize("through_usd", [False, True])
def test_inertia_along_tendons_survives_files(through_usd):
    """MuJoCo's mass matrix of the scene, written as MJCF, is that of the file it came from."""
    source = branches()
    scene = scene_of(source)
    if through_usd:
        stage, notes = export_scene(scene)
        assert not [entry for entry in notes if "armature" in entry.attribute]
        scene = read_usd(stage)
    text, notes = scene_to_mjcf(scene)
    assert not [entry for entry in notes if "tendon" in entry.path]
    written, found = mujoco.MjModel.from_xml_string(text), []
    for mj in (source, written):
        data, full = mujoco.MjData(mj), np.zeros((mj.nv, mj.nv))
        random_state(source, 3).apply(data)
        mujoco.mj_forward(mj, data)
        mujoco.mj_fullM(mj, data, full)
        found.append(full)
    assert written.tendon_armature == pytest.approx(source.tendon_armature, rel=1e-12)
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=(1e-5 if through_usd else 1e-11) * found[0].max())
