"""Sensors against MuJoCo's `sensordata`, and their gradients against central differences."""

import mujoco
import numpy as np
import pytest

from finite_differences import directional_difference, relative_error
from warpsim.errors import UnsupportedError
from warpsim.mjcf import scene_from_mjmodel
from warpsim.model.compile import compile_model
from warpsim.model.derive import Derivation
from warpsim.program import RigidProgram
from warpsim.scene import Sensor
from warpsim.sensors.layout import sensor_layout
from warpsim.tape import CheckpointedTape

_XML = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="base" pos="0 0 .095">
      <freejoint name="root"/>
      <geom name="ball" type="sphere" size=".1" density="500"/>
      <site name="imu" pos=".03 .01 .02" euler="20 30 40"/>
      <body name="arm" pos=".1 0 .05">
        <joint name="elbow" axis="0 1 .3" damping=".1"/>
        <geom name="rod" type="capsule" size=".02 .1" pos=".1 0 0" euler="0 90 0"/>
        <body name="hand" pos=".2 0 0">
          <joint name="wrist" type="ball"/>
          <geom name="palm" type="box" size=".03 .02 .01"/>
          <site name="tip" pos=".03 0 0" euler="10 0 50"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="cable"><joint joint="elbow" coef="1.5"/></fixed></tendon>
  <actuator><motor name="motor" joint="elbow" gear="2"/></actuator>
  <sensor>
    <jointpos joint="elbow"/><jointvel joint="elbow"/><ballquat joint="wrist"/><ballangvel joint="wrist"/>
    <tendonpos tendon="cable"/><tendonvel tendon="cable"/><actuatorfrc actuator="motor"/>
    <framepos objtype="site" objname="tip"/><framepos objtype="site" objname="tip" reftype="site" refname="imu"/>
    <framequat objtype="site" objname="tip" reftype="xbody" refname="base"/><framexaxis objtype="geom" objname="rod"/>
    <frameyaxis objtype="site" objname="tip"/><framezaxis objtype="xbody" objname="hand" reftype="site" refname="imu"/>
    <framelinvel objtype="site" objname="tip"/><framelinvel objtype="site" objname="tip" reftype="site" refname="imu"/>
    <frameangvel objtype="site" objname="tip" reftype="site" refname="imu"/>
    <frameangvel objtype="xbody" objname="hand"/>
    <framelinacc objtype="site" objname="tip"/><frameangacc objtype="site" objname="tip"/>
    <velocimeter site="tip"/><gyro site="imu"/><accelerometer site="imu"/><accelerometer site="tip"/>
  </sensor>
</mujoco>
"""


def _program(steps, parameters=()):
    model = mujoco.MjModel.from_xml_string(_XML)
    model.opt.tolerance, model.opt.iterations, model.opt.ls_tolerance = 1e-14, 200, 1e-10
    scene = scene_from_mjmodel(model)
    scene.options.solver_tolerance = 1e-13
    scene.sensors.append(Sensor("push", "contactforce", "ball", target_kind="shape"))
    compiled = compile_model(scene)
    compiled.require_gradients(list(parameters))
    derivation = Derivation(compiled)
    derivation.run(record=True)
    program = RigidProgram(compiled, controls=("actuator",), outputs=("sensors",))
    return model, compiled, derivation, program, CheckpointedTape(program, steps=steps)


def _start(model):
    data = mujoco.MjData(model)
    rng = np.random.default_rng(3)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv) * [0, 0, 0, 1, 1, 1, 1, 1, 1, 1], 0.3)
    data.qvel[:] = 0.3 * rng.normal(size=model.nv)
    return data


def test_equal_to_mujoco():
    model, compiled, _, program, tape = _program(20)
    data = _start(model)
    controls = np.random.default_rng(4).normal(size=(20, 1, 1))
    state = {"q": data.qpos[None].copy(), "qd": data.qvel[None].copy(), "warm_start": np.zeros((1, model.nv))}
    run = tape.forward(state, {"actuator": controls}, keep_outputs=["sensors"])
    measured = run.outputs["sensors"].numpy()[:, 0]
    touched = 0
    place = sensor_layout(compiled).place("push")
    for step in range(20):
        data.ctrl[:] = controls[step, 0]
        mujoco.mj_step(model, data)
        scale = np.maximum(np.abs(data.sensordata), 1.0)
        np.testing.assert_allclose(measured[step, : model.nsensordata] / scale, data.sensordata / scale, atol=2e-8)
        force = np.zeros(3)
        for k in range(data.ncon):
            local = np.zeros(6)
            mujoco.mj_contactForce(model, data, k, local)
            if model.geom("ball").id in data.contact[k].geom:
                sign = 1.0 if data.contact[k].geom[1] == model.geom("ball").id else -1.0
                force += sign * data.contact[k].frame.reshape(3, 3).T @ local[:3]
        touched += data.ncon > 0
        np.testing.assert_allclose(measured[step, place], force, atol=1e-6 * max(1.0, np.abs(force).max()))
    assert touched > 5


@pytest.mark.parametrize(
    "name", ["q", "qd", "actuator", "site.position", "site.rotation", "body.mass", "shape.friction"]
)
def test_gradients(name):
    parameters = [name] if "." in name else []
    model, compiled, derivation, program, tape = _program(5, parameters)
    data = _start(model)
    inputs = {
        "q": data.qpos[None].copy(),
        "qd": data.qvel[None].copy(),
        "actuator": np.random.default_rng(5).normal(size=(5, 1, 1)),
        **{n: compiled.authored[n].numpy().copy() for n in parameters},
    }
    weights = np.random.default_rng(6).normal(size=(5, 1, program.outputs[0].shape[1]))

    def run(values):
        for n in parameters:
            compiled.authored[n].assign(values[n])
        derivation.run(record=True)
        state = {"q": values["q"], "qd": values["qd"], "warm_start": np.zeros((1, model.nv))}
        return tape.forward(state, {"actuator": values["actuator"]}, keep_outputs=["sensors"])

    def loss(value):
        made = run({**inputs, name: value})
        total = float((weights * made.outputs["sensors"].numpy()).sum())
        made.release()
        return total

    gradients = tape.backward(run(inputs), output_seeds={"sensors": weights})
    derivation.backward()
    found = {**gradients.initial_state, **gradients.inputs, **{n: compiled.authored[n].grad for n in parameters}}
    direction = np.random.default_rng(7).normal(size=inputs[name].shape)
    expected = directional_difference(loss, inputs[name], direction, (1e-5, 1e-6, 1e-7))
    assert relative_error(float((found[name].numpy() * direction).sum()), expected) < 1e-5


def test_unknown_kind_says_which_are_known():
    model = mujoco.MjModel.from_xml_string(_XML)
    scene = scene_from_mjmodel(model)
    scene.sensors.append(Sensor("odd", "smell", "tip"))
    with pytest.raises(UnsupportedError, match="odd.*smell.*gyro"):
        RigidProgram(compile_model(scene), controls=("actuator",), outputs=("sensors",))
