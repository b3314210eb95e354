"""Observed outputs against MuJoCo's own, on random models; their derivatives against central differences."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

from random_models import random_mjcf, random_state
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.sim.simulator import Simulator

OUTPUTS = (
    "body_position",
    "body_rotation",
    "body_velocity",
    "com",
    "linear_momentum",
    "angular_momentum",
    "potential_energy",
    "kinetic_energy",
)


def expected(model: mujoco.MjModel, data: mujoco.MjData) -> dict[str, np.ndarray]:
    mujoco.mj_forward(model, data)
    mujoco.mj_subtreeVel(model, data)
    mujoco.mj_energyPos(model, data)
    mujoco.mj_energyVel(model, data)
    velocity = np.zeros((model.nbody, 6))
    for body in range(1, model.nbody):
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity[body], 0)
    mass = model.body_subtreemass[0]
    return {
        "body_position": data.xpos,
        "body_rotation": data.xquat,
        "body_velocity": velocity,
        "com": data.subtree_com[0],
        "linear_momentum": mass * data.subtree_linvel[0],
        "angular_momentum": data.subtree_angmom[0],
        "potential_energy": data.energy[0],
        "kinetic_energy": data.energy[1],
    }


@pytest.mark.parametrize("seed", range(4))
def test_outputs_are_mujocos(seed):
    model = mujoco.MjModel.from_xml_string(random_mjcf(seed))
    data = mujoco.MjData(model)
    state = random_state(model, seed)
    state.apply(data)
    sim = Simulator(scene_from_mjmodel(model), outputs=OUTPUTS)
    observed = sim.reset(q=state.qpos, qd=state.qvel)
    for name, value in expected(model, data).items():
        np.testing.assert_allclose(observed.numpy(name)[0], value, rtol=1e-10, atol=1e-10, err_msg=name)


def test_a_trajectory_observes_the_state_of_its_own_row():
    model = mujoco.MjModel.from_xml_string(random_mjcf(3))
    state = random_state(model, 3)
    sim = Simulator(scene_from_mjmodel(model), outputs=OUTPUTS)
    trajectory = sim.rollout(steps=5, q=state.qpos, qd=state.qvel)
    for row in range(6):
        again = sim.reset(q=trajectory.q[row], qd=trajectory.qd[row])
        for name in OUTPUTS:
            assert torch.equal(again[name], trajectory[name][row]), (name, row)


def test_derivatives_of_an_observed_state():
    model = mujoco.MjModel.from_xml_string(random_mjcf(1))
    state = random_state(model, 1)
    sim = Simulator(scene_from_mjmodel(model), outputs=OUTPUTS)

    mass, stiffness = (sim.parameter(name)[0] for name in ("body.mass", "joint.stiffness"))

    def observe(q, qd, heavier, com, stiffer):
        # some bodies have no mass and some joints no spring, and may not have less
        given = {"body.mass": heavier * mass, "body.com": com, "joint.stiffness": stiffer * stiffness}
        sim.set_parameters(given)
        observed = sim.reset(q=q, qd=qd)
        return tuple(observed[name] for name in OUTPUTS)

    inputs = (
        torch.tensor(state.qpos, requires_grad=True),
        torch.tensor(state.qvel, requires_grad=True),
        torch.ones_like(mass, requires_grad=True),
        sim.parameter("body.com")[0].requires_grad_(),
        torch.ones_like(stiffness, requires_grad=True),
    )
    assert torch.autograd.gradcheck(observe, inputs, fast_mode=True, eps=1e-6, atol=1e-5, rtol=1e-6)


def test_saturation_names_the_range_that_cuts():
    xml = """<mujoco><option><flag constraint="disable"/></option><worldbody>
      <body><joint name="a"/><geom size=".1"/></body><body pos="1 0 0"><joint name="b"/><geom size=".1"/></body>
    </worldbody><actuator>
      <motor joint="a" ctrlrange="-1 1" ctrllimited="true"/><motor joint="b" forcerange="-1 2" forcelimited="true"/>
    </actuator></mujoco>"""
    sim = Simulator(scene_from_mjmodel(mujoco.MjModel.from_xml_string(xml)), outputs=("saturated",))
    controls = np.array([[0.5, 0.5], [3.0, 0.5], [-3.0, 3.0], [0.0, -3.0]])
    trajectory = sim.rollout(controls=torch.tensor(controls))
    np.testing.assert_array_equal(trajectory.numpy("saturated")[:, 0], [[0, 0], [0, 0], [1, 0], [-1, 1], [0, -1]])
