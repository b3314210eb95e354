"""Slider-cranks, motors, dampers and cylinders, and what actuators weigh, against MuJoCo and central differences."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from contact_support import ContactRollout, converging
from random_models import RandomState
from rigid_support import evaluation, inputs_of, scene_of
from warpsim.core.errors import SceneError
from warpsim.io.usd.export import export_scene
from warpsim.io.usd.reader import read_usd
from warpsim.scene import Scene, validate
from warpsim.sim.mjcf_export import scene_to_mjcf
from warpsim.sim.simulator import Simulator

ENGINE = """
<mujoco>
  <option timestep="0.002" integrator="{integrator}"/>
  <worldbody>
    <site name="bore" pos="0.4 0.02 0.9" quat="1 0.1 0.8 0.05"/>
    <body name="frame" pos="0 0 1"><freejoint/>
      <geom type="box" size="0.2 0.1 0.05" mass="4"/>
      <site name="barrel" pos="0.3 0.01 -0.02" quat="1 0.05 -0.7 0.1"/>
      <body name="wheel"><joint name="turn" axis="0 1 0.1" damping="0.05" armature="0.01"/>
        <geom type="cylinder" size="0.1 0.02" euler="90 0 0" mass="1"/><site name="pin" pos="0.07 0.02 0.03"/></body>
      <body name="arm" pos="-0.25 0 0"><joint name="swing" axis="0 1 0" damping="0.02"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02" mass="0.6"/><site name="tip" pos="0.01 0 -0.3"/>
        <body name="piston" pos="0 0 -0.3"><joint name="slide" type="slide" axis="0 0.1 1"/>
          <geom size="0.05" mass="0.4"/></body></body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="belt"><joint joint="turn" coef="0.5"/><joint joint="swing" coef="-0.3"/></fixed>
    <spatial name="cord"><site site="bore"/><site site="tip"/></spatial>
  </tendon>
  <actuator>
    <motor name="drive" slidersite="barrel" cranksite="pin" cranklength="0.4" gear="1.5"/>
    <general name="brake" slidersite="bore" cranksite="tip" cranklength="{rod}" gainprm="2" biastype="affine"
      biasprm="0.3 -4 -1.5" gear="-0.7"/>
    <damper name="damper" joint="turn" kv="0.3" ctrlrange="0 2"/>
    <cylinder name="cylinder" joint="slide" timeconst="0.1" area="2" bias="1 -2 -3"/>
    <dcmotor name="plain" joint="turn" motorconst="0.5" resistance="2" cogging="0.1 5 0.3" gear="2" saturation="0.6"/>
    <dcmotor name="lagging" joint="swing" motorconst="0.5 0.4" resistance="1.5" inductance="0.015"
      cogging="0.05 4 0"/>
    <dcmotor name="pulling" tendon="belt" motorconst="0.3" resistance="2" inductance="0.01" armature="0.02"
      damping="0.03"/>
    <dcmotor name="cranking" slidersite="barrel" cranksite="pin" cranklength="0.4" motorconst="2" resistance="3"/>
    <general name="geared" joint="slide" gear="3" armature="0.02" damping="0.1"/>
    <motor name="reel" tendon="cord" armature="0.3" damping="0.2"/>
  </actuator>
</mujoco>
"""
RODS = {"long": 0.9, "short": 0.05}
"""The second rod reaches its pin, or does not."""
LAWS = ("actuator.resistance", "actuator.motor_constant", "actuator.cogging", "actuator.time_constant", "tendon.rod")


def engine(integrator: str = "Euler", rod: str = "long") -> mujoco.MjModel:
    return converging(mujoco.MjModel.from_xml_string(ENGINE.format(integrator=integrator, rod=RODS[rod])))


def state_of(mj: mujoco.MjModel, seed: int) -> RandomState:
    rng, data = np.random.default_rng(seed), mujoco.MjData(mj)
    qpos = data.qpos.copy()
    mujoco.mj_integratePos(mj, qpos, 0.3 * rng.normal(size=mj.nv), 1.0)
    ctrl = rng.uniform(0.2, 1.0, size=mj.nu)
    act = 0.2 * rng.normal(size=mj.na)
    return RandomState(qpos, 0.8 * rng.normal(size=mj.nv), act, ctrl, np.zeros(mj.nv), np.zeros((mj.nbody, 6)))


@pytest.mark.parametrize("rod", RODS)
@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_forces_and_accelerations_are_mujocos(integrator, rod, early):
    mj = engine(integrator, rod)
    if not early:  # currents of the step's start, which do not follow the rate within the step
        assert mj.actuator_actearly.any()
        mj.actuator_actearly[:] = 0
    for seed in range(4):
        state, data = state_of(mj, seed), mujoco.MjData(mj)
        state.apply(data)
        mujoco.mj_forward(mj, data)
        e = evaluation(scene_of(mj), {"warm_start": 0.0, **inputs_of(state)})
        e.forward()
        assert e.work.actuator_force.numpy()[0] == pytest.approx(data.actuator_force, rel=1e-11, abs=1e-12)
        assert e.work.activation_rate.numpy()[0] == pytest.approx(data.act_dot, rel=1e-11, abs=1e-12)
        wanted = data.qacc.copy()
        if integrator != "RK4":  # whose step takes several of them
            mujoco.mj_step(mj, data)
            wanted = (data.qvel - state.qvel) / mj.opt.timestep
        assert e.work.qdd.numpy()[0] == pytest.approx(wanted, rel=1e-10, abs=1e-9)
    reach = mj.actuator("brake").cranklength[0] > 0.3
    assert reach == (rod == "long")


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_motions_are_mujocos(integrator):
    mj = engine(integrator)
    state, data = state_of(mj, 1), mujoco.MjData(mj)
    data.qpos[:], data.qvel[:], data.act[:] = state.qpos, state.qvel, state.act
    controls = state.ctrl * (1.0 + np.sin(0.05 * np.arange(200))[:, None])
    start = {"q": state.qpos, "qd": state.qvel, "activation": state.act}
    made = Simulator(scene_of(mj)).rollout(controls=controls, start=start)
    for k, control in enumerate(controls, start=1):
        data.ctrl[:] = control
        mujoco.mj_step(mj, data)
        np.testing.assert_allclose(made.q[k, 0].numpy(), data.qpos, rtol=0, atol=1e-9)
        np.testing.assert_allclose(made.activation[k, 0].numpy(), data.act, rtol=0, atol=1e-9)
    assert np.abs(data.qpos[7:]).max() > 0.3


@pytest.mark.parametrize(("seed", "integrator"), [(0, "Euler"), (1, "implicitfast")])
def test_gradients(seed, integrator):
    mj = engine(integrator)
    state = state_of(mj, seed)
    rollout = ContactRollout(scene_of(mj), 4, ("actuator",), seed=seed)
    rollout.base |= {"q": state.qpos, "qd": state.qvel, "activation": state.act}
    rollout.base["actuator"] = state.ctrl + 0.05 * rollout.base["actuator"]
    found = {c.name: c for c in rollout.compare((1e-5, 3e-6, 1e-6)) if not c.switching(1e-6)}
    assert {"actuator", "q", "qd", "activation", "site.position", "site.rotation", *LAWS} <= set(found)
    assert max(c.deviation for c in found.values()) < 1e-6, sorted((c.deviation, n) for n, c in found.items())[-3:]


def compared(scene: Scene, source: mujoco.MjModel, tolerance: float) -> None:
    """MuJoCo's accelerations and rates of the scene, written as MJCF, are those of the file it came from."""
    written = converging(mujoco.MjModel.from_xml_string(scene_to_mjcf(scene)[0]))
    found = []
    for mj in (source, written):
        data = mujoco.MjData(mj)
        state_of(source, 2).apply(data)
        mujoco.mj_forward(mj, data)
        found.append((data.actuator_force.copy(), data.act_dot.copy(), data.qacc.copy()))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)


def test_all_survive_mjcf():
    source = engine()
    scene = scene_of(source)
    assert not [entry for entry in scene_to_mjcf(scene)[1] if "actuator" in entry.path or "tendon" in entry.path]
    compared(scene, source, 1e-10)


def test_all_survive_usd_and_mjcf():
    source = engine()
    stage, notes = export_scene(scene_of(source))
    assert not [entry for entry in notes if "actuator" in entry.path or "tendon" in entry.path]
    scene = read_usd(stage, strict=True)
    assert [a.dynamics for a in scene.actuators] == [a.dynamics for a in scene_of(source).actuators]
    assert sorted(t.rod for t in scene.tendons) == pytest.approx([0.0, 0.0, 0.4, 0.4, 0.9])
    compared(scene, source, 2e-4)


def test_what_makes_no_sense_is_refused():
    def refused(words: str, **changes: object) -> None:
        scene = scene_of(engine())
        actuator = next(a for a in scene.actuators if a.name == "lagging")
        for name, value in changes.items():
            setattr(actuator, name, value)
        with pytest.raises(SceneError, match=words):
            validate(scene)

    refused("a current flows in a motor", motor=None)
    refused('"none" or "current"', dynamics="filter")
    refused("a motor turns a joint", transmission="site", target="pin")
    scene = scene_of(engine())
    scene.tendons[-1].path = scene.tendons[-1].path[:1] * 3
    with pytest.raises(SceneError, match="slider-crank: its path"):
        validate(scene)
