"""Muscles and weight compensation by actuators against MuJoCo, and their gradients against central differences."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import warp as wp

from contact_support import converging
from random_models import random_state
from rigid_support import evaluation, inputs_of, scene_of
from row_support import assert_gradients, assert_small, compare_rows, gradient_case
from warpsim.core.precision import real, vec2, vec5
from warpsim.rigid.dynamics.muscle import muscle_bias, muscle_gain, muscle_gain_slope, muscle_rate
from warpsim.sim.simulator import Simulator

PARAMETERS = (0.7, 1.1, 30.0, 200.0, 0.45, 1.7, 1.4, 1.2, 1.3)
LENGTHS = (0.2, 0.5)

MUSCLES = """
<mujoco>
  <option timestep="0.002" integrator="{integrator}"/>
  <worldbody>
    <site name="w0" pos="0 0 1.2"/><site name="w1" pos="0 0.05 0.9"/>
    <body name="a" pos="0 0 1" gravcomp="1.3">
      <joint name="h" axis="0 1 0" damping="0.1" limited="true" range="-90 90"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
      <geom name="ball" type="sphere" size="0.05" pos="0.3 0 0" contype="0" conaffinity="0"/>
      <site name="a0" pos="0.2 0 0.04"/><site name="a1" pos="0.15 0 -0.04"/>
      <body name="b" pos="0.3 0 0" gravcomp="0.6">
        <joint name="k" axis="0 1 0" damping="0.05" actuatorgravcomp="true" actuatorfrcrange="-0.4 0.9"/>
        <geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.03" contype="0" conaffinity="0"/>
        <site name="b0" pos="0.1 0 0.04"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="flexor"><site site="w0"/><site site="a0"/></spatial>
    <spatial name="extensor"><site site="w1"/><site site="a1"/></spatial>
    <spatial name="long"><site site="a0"/><geom geom="ball"/><site site="b0"/></spatial>
  </tendon>
  <actuator>
    <muscle name="m0" tendon="flexor" lengthrange="0.15 0.35" force="30" timeconst="0.01 0.05" forcelimited="true"
      forcerange="-8 0"/>
    <muscle name="m1" tendon="extensor" lengthrange="0.1 0.3" scale="50" tausmooth="0.3" range="0.8 1.2"/>
    <muscle name="m2" tendon="long" lengthrange="0.1 0.3" force="20" ctrllimited="true" ctrlrange="0 0.8"/>
    <muscle name="m3" joint="k" lengthrange="-1 1" force="2" gear="0.5"/>
    <motor name="plain" joint="k"/>
  </actuator>
</mujoco>
"""


def model(integrator: str) -> mujoco.MjModel:
    return converging(mujoco.MjModel.from_xml_string(MUSCLES.format(integrator=integrator)))


@wp.kernel(enable_backward=False)
def _curves(
    force: real,
    normal: vec2,
    over: vec2,
    curve: vec5,
    length: wp.array(dtype=real),
    rate: wp.array(dtype=real),
    out: wp.array2d(dtype=real),
):
    i = wp.tid()
    out[i, 0] = muscle_gain(force, normal, over, curve, length[i], rate[i])
    out[i, 1] = muscle_bias(force, normal, over, curve, length[i])
    out[i, 2] = muscle_rate(rate[i], length[i], real(0.01), real(0.04), real(0.0))
    out[i, 3] = muscle_rate(rate[i], length[i], real(0.01), real(0.04), real(0.3))
    out[i, 4] = muscle_gain_slope(force, normal, over, curve, length[i], rate[i])


def test_curves_equal_mujocos(rng):
    count, prm = 400, np.array(PARAMETERS)
    length, rate = rng.uniform(0.0, 1.1, count), rng.uniform(-1.5, 1.5, count)
    out = wp.full((count, 5), np.nan, dtype=real)
    inputs = [prm[2], vec2(*prm[:2]), vec2(*LENGTHS), vec5(*prm[4:])]
    arrays = [wp.array(x, dtype=real) for x in (length, rate)]
    wp.launch(_curves, dim=count, inputs=[*inputs, *arrays], outputs=[out])
    lengths = np.array(LENGTHS)

    def gain(x: float, v: float) -> float:
        return mujoco.mju_muscleGain(x, v, lengths, 1.0, prm)

    expected = [
        (
            gain(x, v),
            mujoco.mju_muscleBias(x, lengths, 1.0, prm),
            mujoco.mju_muscleDynamics(v, x, np.array([0.01, 0.04, 0.0])),
            mujoco.mju_muscleDynamics(v, x, np.array([0.01, 0.04, 0.3])),
        )
        for x, v in zip(length, rate, strict=True)
    ]
    assert np.abs(out.numpy()[:, :4] - expected).max() < 1e-11
    slope = [(gain(x, v + 1e-6) - gain(x, v - 1e-6)) / 2e-6 for x, v in zip(length, rate, strict=True)]
    assert np.abs(out.numpy()[:, 4] - slope).max() < 1e-3
    assert np.median(np.abs(out.numpy()[:, 4] - slope)) < 1e-7


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_accelerations_match_mujoco(integrator):
    mj, cut = model(integrator), 0
    for seed in range(8):
        state = random_state(mj, seed)
        state.act[:] = np.random.default_rng(seed).uniform(-0.1, 1.1, mj.na)
        assert_small(compare_rows(mj, state), f"seed {seed}")
        data = mujoco.MjData(mj)
        state.apply(data)
        mujoco.mj_forward(mj, data)
        e = evaluation(scene_of(mj), {"warm_start": 0.0, **inputs_of(state)})
        e.forward()
        assert e.work.activation_rate.numpy()[0] == pytest.approx(data.act_dot, abs=1e-10)
        assert e.work.actuator_force.numpy()[0] == pytest.approx(data.actuator_force, abs=1e-11)
        cut += int(np.isin(data.qfrc_actuator[1], (-0.4, 0.9)))
    assert 0 < cut < 8


@pytest.mark.parametrize("seed,integrator", [(0, "implicitfast"), (1, "Euler"), (3, "RK4")])
def test_gradients(seed, integrator):
    names = ("body.gravity_compensation", "body.mass", "site.position", "world.gravity")
    rollout, inputs = gradient_case(model(integrator), seed, 3, ("actuator",), names, spread=0.3)
    inputs["activation"] = np.full((1, 4), 0.4)
    # the ends of a muscle's range of controls are where its dynamics cuts them too
    inputs["actuator"] = 0.4 + 0.3 * np.sin(inputs["actuator"])
    assert_gradients(rollout, inputs, seed, most=0.3)


@pytest.mark.parametrize("seed", [0, 3])
def test_implicit_steps_are_mujocos_where_forces_reach_their_limit_too(seed):
    """A force at its limit does not change with the velocity, so it drops out of the implicit step."""
    mj = model("implicitfast")
    state, data = random_state(mj, seed), mujoco.MjData(mj)
    state.act[:] = 0.5
    data.qpos[:], data.qvel[:], data.act[:] = state.qpos, state.qvel, state.act
    controls = np.random.default_rng(seed).uniform(0.0, 1.0, (60, mj.nu))
    start = {"q": state.qpos, "qd": state.qvel, "activation": state.act}
    made = Simulator(scene_of(mj)).rollout(controls=controls, start=start)
    at_limit = 0
    for k, control in enumerate(controls, start=1):
        data.ctrl[:] = control
        mujoco.mj_step(mj, data)
        at_limit += data.actuator_force[0] in (-8.0, 0.0)
        np.testing.assert_allclose(made.q[k, 0].numpy(), data.qpos, rtol=0, atol=1e-9)
    assert at_limit > 0
