"""Sensors of touch, force, torque, contacts, limits and transmissions against MuJoCo, and their gradients."""

import mujoco
import numpy as np
import pytest

from finite_differences import directional_difference, relative_error
from warpsim.core.errors import UnsupportedError
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.sensors.layout import sensor_layout
from warpsim.rigid.step.program import RigidProgram
from warpsim.tape import CheckpointedTape

_EVERYTHING = "found force torque dist pos normal tangent"
_XML = f"""
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" friction="1.1 .02 .01" condim="6"/>
    <body name="base" pos="0 0 .098">
      <freejoint name="root"/>
      <geom name="ball" type="sphere" size=".1" density="500" condim="6"/>
      <site name="sole" type="box" size=".03 .03 .02" pos="0 0 -.1"/>
      <site name="side" type="sphere" size=".02" pos=".2 0 0"/>
      <site name="below" type="capsule" size=".03 .05" pos="0 0 -.05"/>
      <site name="round" type="ellipsoid" size=".06 .05 .04" pos="0 .01 -.12" euler="20 30 10"/>
      <site name="can" type="cylinder" size=".05 .04" pos="0 0 -.13" euler="20 0 0"/>
      <site name="heart" type="sphere" size=".04" pos="0 0 .03"/>
      <site name="under" type="box" size=".04 .04 .03" pos="0 0 -.25"/>
      <body name="arm" pos=".1 0 .05">
        <joint name="elbow" axis="0 1 .3" damping=".1" range="-20 5" limited="true" actuatorfrcrange="-.9 .9"/>
        <geom name="rod" type="capsule" size=".02 .1" pos=".1 0 0" euler="0 90 0"/>
        <site name="shoulder" pos=".01 0 .02" euler="20 30 40"/>
        <body name="hand" pos=".2 0 0">
          <joint name="wrist" type="ball" range="0 10" limited="true"/>
          <geom name="palm" type="box" size=".03 .02 .01"/>
          <site name="grip" pos=".03 0 0" euler="10 0 50"/>
        </body>
      </body>
    </body>
    <body name="crate" pos=".6 0 .049">
      <freejoint/><geom name="crate" type="box" size=".06 .05 .05" condim="4"/><site name="lid" pos="0 0 .04"/>
    </body>
  </worldbody>
  <tendon><fixed name="cable" range="-.1 .01" limited="true"><joint joint="elbow" coef="1.5"/></fixed></tendon>
  <actuator><motor name="motor" joint="elbow" gear="2"/><motor name="pull" tendon="cable" gear=".7"/></actuator>
  <sensor>
    <touch name="sole" site="sole"/><touch site="side"/><touch name="below" site="below"/>
    <touch name="round" site="round"/><touch name="can" site="can"/>
    <touch name="heart" site="heart"/><touch name="under" site="under"/>
    <force site="shoulder"/><torque site="shoulder"/><force site="grip"/><torque site="grip"/>
    <force site="sole"/><torque site="lid"/>
    <jointactuatorfrc joint="elbow"/><actuatorpos actuator="motor"/><actuatorvel actuator="motor"/>
    <actuatorpos actuator="pull"/><actuatorvel actuator="pull"/><tendonactuatorfrc tendon="cable"/>
    <jointlimitpos name="bent" joint="elbow"/><jointlimitvel joint="elbow"/><jointlimitfrc joint="elbow"/>
    <jointlimitpos name="twisted" joint="wrist"/><jointlimitvel joint="wrist"/><jointlimitfrc joint="wrist"/>
    <tendonlimitpos name="taut" tendon="cable"/><tendonlimitvel tendon="cable"/><tendonlimitfrc tendon="cable"/>
    <contact name="stand" geom1="ball" geom2="floor" data="{_EVERYTHING}"/>
    <contact geom1="floor" geom2="ball" data="{_EVERYTHING}"/>
    <contact body1="crate" data="{_EVERYTHING}" num="3" reduce="mindist"/>
    <contact body2="crate" data="force pos" num="2" reduce="maxforce"/>
    <contact subtree1="base" subtree2="world" data="{_EVERYTHING}" reduce="netforce"/>
    <contact subtree1="crate" data="{_EVERYTHING}" reduce="netforce" num="2"/>
    <contact site="sole" data="found dist"/><contact site="side" data="found dist pos"/>
    <contact name="all" data="found"/>
  </sensor>
</mujoco>
"""


def _program(steps, parameters=()):
    model = mujoco.MjModel.from_xml_string(_XML)
    model.opt.tolerance, model.opt.iterations, model.opt.ls_tolerance = 1e-14, 200, 1e-10
    scene = scene_from_mjmodel(model)
    scene.options.solver_tolerance = 1e-13
    compiled = compile_model(scene)
    compiled.require_gradients(list(parameters))
    derivation = Derivation(compiled)
    derivation.run(record=True)
    program = RigidProgram(compiled, controls=("actuator", "wrench"), outputs=("sensors",))
    return model, compiled, derivation, program, CheckpointedTape(program, steps=steps)


def _start(model):
    data = mujoco.MjData(model)
    rng = np.random.default_rng(3)
    turn = np.zeros(model.nv)
    turn[3:10] = rng.normal(size=7) * [0.2, 0.2, 0.2, 0, 1, 1, 1]
    turn[6] = 0.5  # beyond the elbow's limit
    turn[13:] = [0.02, 0.03, 0.4]  # the crate's corners at distances of their own
    mujoco.mj_integratePos(model, data.qpos, turn, 0.3)
    data.qvel[:] = 0.3 * rng.normal(size=model.nv)
    data.qvel[2] = -0.1  # onto the floor
    return data


def _inputs(model, steps):
    rng = np.random.default_rng(4)
    return {
        "actuator": rng.normal(size=(steps, 1, model.nu)),
        "wrench": 0.2 * rng.normal(size=(steps, 1, model.nbody, 6)),
    }


def test_equal_to_mujoco():
    model, _, _, _, tape = _program(30)
    data = _start(model)
    inputs = _inputs(model, 30)
    state = {"q": data.qpos[None].copy(), "qd": data.qvel[None].copy(), "warm_start": np.zeros((1, model.nv))}
    run = tape.forward(state, inputs, keep_outputs=["sensors"])
    measured = run.outputs["sensors"].numpy()[:, 0]
    seen = dict.fromkeys(("sole", "below", "round", "can", "bent", "twisted", "taut", "stand", "all"), 0)
    for step in range(30):
        data.ctrl[:] = inputs["actuator"][step, 0]
        data.xfrc_applied[:] = inputs["wrench"][step, 0]
        mujoco.mj_step(model, data)
        for k in range(model.nsensor):
            at = slice(model.sensor_adr[k], model.sensor_adr[k] + model.sensor_dim[k])
            expected = data.sensordata[at]
            scale = np.maximum(np.abs(expected), 1.0)
            np.testing.assert_allclose(
                measured[step, at] / scale, expected / scale, atol=1e-7, err_msg=f"step {step}, sensor {k}"
            )
        for name in seen:
            seen[name] += bool(data.sensor(name).data[0])
    assert all(seen.values()), seen


@pytest.mark.parametrize("name", ["q", "qd", "actuator", "wrench", "site.position", "body.mass", "shape.friction"])
def test_gradients(name):
    parameters = [name] if "." in name else []
    model, compiled, derivation, program, tape = _program(3, parameters)
    data = _start(model)
    inputs = {
        "q": data.qpos[None].copy(),
        "qd": data.qvel[None].copy(),
        **_inputs(model, 3),
        **{n: compiled.authored[n].numpy().copy() for n in parameters},
    }
    weights = np.random.default_rng(6).normal(size=(3, 1, program.outputs[0].shape[1]))

    def run(values):
        for n in parameters:
            compiled.authored[n].assign(values[n])
        derivation.run(record=True)
        state = {"q": values["q"], "qd": values["qd"], "warm_start": np.zeros((1, model.nv))}
        controls = {n: values[n] for n in ("actuator", "wrench")}
        return tape.forward(state, controls, keep_outputs=["sensors"])

    def loss(value):
        made = run({**inputs, name: value})
        total = float((weights * made.outputs["sensors"].numpy()).sum())
        made.release()
        return total

    gradients = tape.backward(run(inputs), output_seeds={"sensors": weights})
    derivation.backward()
    found = {**gradients.initial_state, **gradients.inputs, **{n: compiled.authored[n].grad for n in parameters}}
    direction = np.random.default_rng(7).choice([-1.0, 1.0], size=inputs[name].shape)
    expected = directional_difference(loss, inputs[name], direction, (1e-5, 1e-6, 1e-7))
    assert relative_error(float((found[name].numpy() * direction).sum()), expected) < 2e-6


def test_force_sensor_beside_a_weld_is_refused():
    scene = scene_from_mjmodel(
        mujoco.MjModel.from_xml_string(
            _XML.replace("</tendon>", "</tendon><equality><weld body1='hand' body2='crate'/></equality>")
        )
    )
    with pytest.raises(UnsupportedError, match="force.*weld"):
        sensor_layout(compile_model(scene))
