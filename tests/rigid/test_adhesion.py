"""Adhesive actuators against MuJoCo, and their gradients against central differences."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from contact_support import ContactRollout, converging
from random_models import RandomState
from rigid_support import evaluation, inputs_of, scene_of
from warpsim.core.errors import SceneError, SimulationError
from warpsim.io.mjcf import read_mjcf
from warpsim.io.usd.export import export_scene
from warpsim.io.usd.reader import read_usd
from warpsim.sim.mjcf_export import scene_to_mjcf
from warpsim.sim.simulator import Simulator

GLUE = """
<mujoco>
  <option timestep="0.002" integrator="{integrator}" cone="{cone}"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 .1" margin="0.001" gap="0.005"/>
    <body name="post" pos="0.35 0 0.0997"><joint type="slide" axis="0 0 1" damping="1"/>
      <geom type="sphere" size="0.1" mass="1" gap="0.003"/></body>
    <body name="sticky" pos="0 0 {height}"><freejoint/>
      <geom type="box" size="0.1 0.1 0.1" mass="1" gap="0.002"/>
      <geom type="sphere" size="0.1" pos="0.15 0 0" mass="0.5" gap="0.002"/>
      <body name="arm" pos="-0.2 0 0"><joint name="elbow" axis="0 1 0" actuatorfrcrange="-0.4 0.3"/>
        <geom type="capsule" fromto="-0.05 0 -0.05 -0.2 0 -0.05" size="0.05" mass="0.2" gap="0.01"/></body>
    </body>
  </worldbody>
  <contact><exclude body1="sticky" body2="arm"/></contact>
  <actuator>
    <adhesion name="hold" body="sticky" gain="2" ctrlrange="0 10" forcelimited="true" forcerange="0 30"/>
    <general name="slow" body="arm" gainprm="3" biastype="affine" biasprm="0.4" dyntype="filter" dynprm="0.02"
      gear="7"/>
    <motor name="bend" joint="elbow"/>
    <adhesion name="grip" body="post" ctrlrange="0 1"/>
  </actuator>
</mujoco>
"""
HEIGHTS = (0.0995, 0.1005, 0.102, 0.106, 0.2)
"""m: in contact, within the margin, in the gap, at its end, away from everything."""
TILT = np.array([1.0, 0.004, -0.006, 0.02])


def model(integrator: str = "Euler", cone: str = "elliptic", height: float = 0.1) -> mujoco.MjModel:
    return converging(mujoco.MjModel.from_xml_string(GLUE.format(integrator=integrator, cone=cone, height=height)))


def state_of(mj: mujoco.MjModel, seed: int) -> RandomState:
    rng, data = np.random.default_rng(seed), mujoco.MjData(mj)
    qpos = data.qpos.copy()
    qpos[4:8] = TILT / np.linalg.norm(TILT)
    qpos[8] = 0.05 * rng.normal()
    qvel, ctrl, act = 0.1 * rng.normal(size=mj.nv), np.array([4.0, 0.0, 0.1, 0.7]), np.array([0.6])
    return RandomState(qpos, qvel, act, ctrl, np.zeros(mj.nv), np.zeros((mj.nbody, 6)))


@pytest.mark.parametrize("height", HEIGHTS)
@pytest.mark.parametrize("integrator,cone", [("Euler", "elliptic"), ("implicitfast", "pyramidal")])
def test_forces_and_accelerations_are_mujocos(height, integrator, cone):
    mj = model(integrator, cone, height)
    state, data = state_of(mj, 0), mujoco.MjData(mj)
    state.apply(data)
    mujoco.mj_forward(mj, data)
    e = evaluation(scene_of(mj), {"warm_start": 0.0, **inputs_of(state)})
    e.forward()
    assert e.work.actuator_force.numpy()[0] == pytest.approx(data.actuator_force, abs=1e-12)
    held = e.work.dof_actuation.numpy()[0]
    held[-1] = np.clip(held[-1], -0.4, 0.3)
    np.testing.assert_allclose(held, data.qfrc_actuator, rtol=0, atol=1e-9)
    assert e.work.constraint.qdd.numpy()[0] == pytest.approx(data.qacc, rel=1e-9, abs=1e-8)
    if height in (0.102, 0.106):
        assert any(contact.exclude == 1 for contact in data.contact)


def test_motions_are_mujocos():
    """Let go, held at the gap's end, pulled to the floor and let go again."""
    mj = model(height=0.103)
    state, data = state_of(mj, 1), mujoco.MjData(mj)
    data.qpos[:], data.qvel[:], data.act[:] = state.qpos, state.qvel, state.act
    controls = np.tile(state.ctrl, (200, 1))
    controls[:100, 0], controls[100:150, 0] = np.linspace(0.0, 10.0, 100), 20.0
    start = {"q": state.qpos, "qd": state.qvel, "activation": state.act}
    made = Simulator(scene_of(mj)).rollout(controls=controls, start=start)
    for k, control in enumerate(controls, start=1):
        data.ctrl[:] = control
        mujoco.mj_step(mj, data)
        np.testing.assert_allclose(made.q[k, 0].numpy(), data.qpos, rtol=0, atol=1e-8)


@pytest.mark.parametrize("height,seed", [(0.0995, 0), (0.102, 1)])
def test_gradients(height, seed):
    """By everything, in contact and in the gap: where the pull acts moves with the bodies, so `q` counts among it."""
    mj = model(height=height)
    state, scene = state_of(mj, seed), scene_of(mj)
    rollout = ContactRollout(scene, 4, ("actuator",), seed=seed)
    rollout.base |= {"q": state.qpos, "qd": state.qvel, "activation": state.act}
    rollout.base["actuator"] = state.ctrl + 0.05 * rollout.base["actuator"]
    found = {c.name: c for c in rollout.compare((1e-5, 3e-6, 1e-6)) if not c.switching(1e-6)}
    assert {"actuator", "actuator.gain", "actuator.bias", "q", "qd", "body.mass"} <= set(found)
    assert max(c.deviation for c in found.values()) < 1e-6, sorted((c.deviation, n) for n, c in found.items())[-3:]


def tower(floors: int) -> str:
    """Boxes above each other, each turned a little; all are within each other's gap, none touches."""
    boxes = "".join(
        f'<body name="floor{k}" pos="0 0 {0.105 + 0.205 * k}" euler="0 0 {3 * k}"><freejoint/>'
        '<geom type="box" size="0.1 0.1 0.1" mass="1" gap="0.02"/></body>'
        for k in range(floors)
    )
    return f"""<mujoco><option timestep="0.002" cone="elliptic"/><worldbody><geom type="plane" size="1 1 .1"/>{boxes}
      </worldbody><actuator><adhesion name="hold" body="floor1" gain="3" ctrlrange="0 9"/></actuator></mujoco>"""


def test_places_for_what_is_held_grow_like_those_for_contacts():
    """With the bits of motion and gradient that there are with room from the start."""
    found = []
    for room in ({}, {"max_contacts": 300}):
        sim = Simulator(read_mjcf(tower(5)), **room)
        places, control = sim.model.max_contacts, torch.full((5, 1, 1), 4.0, dtype=torch.float64, requires_grad=True)
        made = sim.rollout(controls=control)
        (gradient,) = torch.autograd.grad((made.q**2).sum(), control)
        found.append((made.q.detach(), gradient, sim.model.max_contacts > places))
    assert [grew for _, _, grew in found] == [True, False]
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    assert float(found[0][1].abs().min()) > 0


def test_too_few_places_for_what_is_held_are_named():
    """A robot whose contacts fit, but not all that is within the gap of what it holds."""
    sim = Simulator(read_mjcf(tower(5)), max_contacts=10)
    with pytest.raises(SimulationError, match=r"step 1, world 0: \d+ contacts but only 10 places"):
        sim.rollout(controls=np.full((5, 1), 4.0))


def test_a_robot_without_anything_to_touch_loads():
    xml = GLUE.format(integrator="Euler", cone="elliptic", height=1.0).replace('gap="0', 'contype="0" gap="0')
    sim = Simulator(read_mjcf(xml))
    made = sim.rollout(controls=np.tile([9.0, 1.0, 0.0, 1.0], (5, 1)))
    assert made.q[-1, 0, 3].item() == pytest.approx(1.0 - 9.81 * 0.002**2 * 15, abs=1e-12)


def test_adhesion_survives_usd_and_mjcf():
    """Out to USD, in again and out to MJCF: MuJoCo's accelerations are those of the file, to float32 poses."""
    source = model(height=0.102)
    stage, _ = export_scene(scene_of(source))
    scene = read_usd(stage, strict=True)
    assert [a.transmission for a in scene.actuators] == ["body", "body", "joint", "body"]
    written = converging(mujoco.MjModel.from_xml_string(scene_to_mjcf(scene)[0]))
    found = []
    for mj in (source, written):
        data = mujoco.MjData(mj)
        state_of(source, 2).apply(data)
        mujoco.mj_forward(mj, data)
        found.append((data.qfrc_actuator.copy(), data.actuator_force.copy()))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=2e-5, atol=1e-6)


def test_what_it_does_not_model_is_refused():
    scene = scene_of(model())
    scene.actuators[0].gain[2] = 1.0
    with pytest.raises(SceneError, match="hold.*neither length nor velocity"):
        Simulator(scene)
    scene = scene_of(model())
    scene.options.impacts = True
    with pytest.raises(SceneError, match=r"adhesion is not modeled together with Options\.impacts"):
        Simulator(scene)
