"""Sensors against MuJoCo's `sensordata`, and their gradients against central differences."""

import mujoco
import numpy as np
import pytest
import torch

from finite_differences import directional_difference, relative_error
from warpsim.core.errors import UnsupportedError
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.io.usd import author
from warpsim.io.usd.reader import read_usd
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation
from warpsim.rigid.model.sensor_kinds import KINDS
from warpsim.rigid.sensors.layout import sensor_layout
from warpsim.rigid.sensors.noise import normal_numbers
from warpsim.rigid.step.program import RigidProgram
from warpsim.scene import Sensor
from warpsim.scene.description import SENSOR_KINDS
from warpsim.scene.ledger import unsupported
from warpsim.sim.simulator import Simulator
from warpsim.tape import CheckpointedTape, Memory

_XML = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" friction="1.1"/>
    <geom name="roof" type="ellipsoid" size="3 3 .5" pos="0 0 2"/>
    <body name="base" pos="0 0 .095">
      <freejoint name="root"/>
      <geom name="ball" type="sphere" size=".1" density="500"/>
      <site name="imu" pos=".03 .01 .02" euler="20 30 40"/>
      <site name="down" pos="0 .2 .1" euler="170 5 0"/>
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
    <rangefinder name="range0" site="tip"/><rangefinder name="range1" site="imu"/>
    <rangefinder name="range2" site="down"/><rangefinder name="range3" site="down" cutoff=".05"/>
    <gyro name="gyro0" site="tip" cutoff=".2"/><jointpos joint="elbow" cutoff=".01"/>
    <framepos objtype="body" objname="arm"/><framequat objtype="body" objname="hand"/>
    <framelinvel objtype="body" objname="arm" reftype="body" refname="hand"/>
    <frameangvel objtype="body" objname="hand"/>
    <framexaxis objtype="body" objname="hand" reftype="body" refname="arm"/>
    <framelinacc objtype="body" objname="hand"/><frameangacc objtype="body" objname="arm"/>
    <velocimeter site="tip"/><gyro site="imu"/><accelerometer site="imu"/><accelerometer site="tip"/>
    <subtreecom body="arm"/><subtreelinvel body="hand"/><subtreelinvel body="base"/><subtreecom body="world"/>
    <subtreeangmom body="base"/><subtreeangmom body="arm"/>
  </sensor>
</mujoco>
"""


def _program(steps, parameters=()):
    model = mujoco.MjModel.from_xml_string(_XML)
    model.opt.tolerance, model.opt.iterations, model.opt.ls_tolerance = 1e-14, 200, 1e-10
    scene = scene_from_mjmodel(model)
    scene.options.solver_tolerance = 1e-13
    scene.sensors.append(Sensor("push", "contactforce", "ball", target_kind="shape"))
    scene.sensors.append(Sensor("bend", "jointacc", "elbow", target_kind="joint"))
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
    place, bend = (sensor_layout(compiled).place(name) for name in ("push", "bend"))
    for step in range(20):
        data.ctrl[:] = controls[step, 0]
        mujoco.mj_step(model, data)
        scale = np.maximum(np.abs(data.sensordata), 1.0)
        np.testing.assert_allclose(measured[step, : model.nsensordata] / scale, data.sensordata / scale, atol=2e-8)
        np.testing.assert_allclose(measured[step, bend], data.joint("elbow").qacc, rtol=2e-8)
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


def test_ranges_see_what_rays_meet():
    """The scene of the other tests has rays that meet the floor, the roof and a limb, and one that is cut off."""
    model, compiled, _, _, tape = _program(1)
    data = _start(model)
    mujoco.mj_forward(model, data)
    found = data.sensordata[[model.sensor(f"range{k}").adr[0] for k in range(4)]]
    assert (found > 0).all() and found[3] == 0.05 < found[2]
    model.geom_pos[model.geom("roof").id, 2] = -9.0
    mujoco.mj_forward(model, data)
    assert data.sensor("range1").data[0] == -1.0  # so that one met the roof


@pytest.mark.parametrize(
    "name", ["q", "qd", "actuator", "site.position", "site.rotation", "body.mass", "shape.friction", "shape.size"]
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
    for seed in (7, 8):
        # Signs alone: of a normal direction the one component that matters (the floor's sliding friction, of fifteen)
        # may be so small that rounding of the loss hides it.
        direction = np.random.default_rng(seed).choice([-1.0, 1.0], size=inputs[name].shape)
        expected = directional_difference(loss, inputs[name], direction, (1e-4, 1e-5, 1e-6))
        assert relative_error(float((found[name].numpy() * direction).sum()), expected) < 1e-6


def _noisy(worlds, **options):
    model = mujoco.MjModel.from_xml_string(_XML)
    scene = scene_from_mjmodel(model)
    for k, sensor in enumerate(scene.sensors):
        sensor.noise = 0.01 * k
    return Simulator(scene, worlds=worlds, outputs=("sensors",), **options)


def test_noise_depends_on_seed_world_and_step_alone():
    exact = _noisy(3).rollout(steps=40).numpy("sensors")
    sim = _noisy(3, sensor_seed=5)
    noise = sim.rollout(steps=40).numpy("sensors") - exact
    again = (
        _noisy(2, sensor_seed=5).rollout(steps=40, memory=Memory(segment=7), threads=2).numpy("sensors") - exact[:, :2]
    )
    np.testing.assert_allclose(again, noise[:, :2], atol=1e-12)
    kept = sim.rollout(steps=40, keep_every=8).numpy("sensors") - exact[::8]
    np.testing.assert_allclose(kept, noise[::8], atol=1e-12)
    stepped = np.array([sim.step().numpy("sensors") for _ in range(3)]) - exact[1:4]
    np.testing.assert_allclose(stepped, noise[1:4], atol=1e-12)
    looped = sim.rollout_policy(lambda seen: seen.sensors[:, :1] * 0, 40, hold=4).numpy("sensors") - exact
    np.testing.assert_allclose(looped, noise, atol=1e-12)
    other = _noisy(3, sensor_seed=6).rollout(steps=40).numpy("sensors") - exact
    assert np.abs(other - noise)[1:, :, 1:].min() > 0
    assert not noise[0].any()  # nothing is measured before the first step


def test_noise_has_the_scenes_deviation_and_no_correlation():
    numbers = normal_numbers(11, np.arange(400), 8, 16)
    assert abs(numbers.mean()) < 0.02 and abs(numbers.std() - 1) < 0.02
    assert abs((numbers**4).mean() - 3) < 0.15
    flat = numbers.reshape(400, -1)
    correlation = np.corrcoef(flat.T) - np.eye(flat.shape[1])
    assert np.abs(correlation).max() < 0.3  # 6 standard deviations of 1/√400
    assert abs(np.mean(flat[1:] * flat[:-1])) < 0.02


def test_gradient_passes_noise_unchanged():
    found = []
    for seed in (None, 3):
        sim = _noisy(1, sensor_seed=seed)
        qd = torch.zeros(sim.nv, dtype=sim.torch_dtype, requires_grad=True)
        sim.rollout(steps=5, qd=qd).sensor("gyro0").sum().backward()
        found.append(qd.grad)
    assert torch.equal(*found)
    assert found[0].abs().max() > 0


def test_every_kind_of_a_scene_is_measured():
    assert set(KINDS) == set(SENSOR_KINDS)
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body", mass=1)
    author.sensor(author.world(stage), "Nose", "smell", author.site(body, "Tip"))
    (entry,) = unsupported(read_usd(stage).ledger)
    assert entry.path == "/World/Nose" and "gyro" in entry.reason


def test_unknown_kind_says_which_are_known():
    model = mujoco.MjModel.from_xml_string(_XML)
    scene = scene_from_mjmodel(model)
    scene.sensors.append(Sensor("odd", "smell", "tip"))
    with pytest.raises(UnsupportedError, match="odd.*smell.*gyro"):
        RigidProgram(compile_model(scene), controls=("actuator",), outputs=("sensors",))
    scene.sensors[-1] = Sensor("cut", "framequat", "tip", cutoff=0.5)
    with pytest.raises(UnsupportedError, match="cut.*cutoff"):
        RigidProgram(compile_model(scene), controls=("actuator",), outputs=("sensors",))
