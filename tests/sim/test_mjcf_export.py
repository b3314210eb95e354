"""Scenes written as MJCF, compiled and stepped by MuJoCo itself."""

import mujoco
import numpy as np

import warpsim as ws
from warpsim.cli.main import main
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.sim.mjcf_export import scene_to_mjcf

_XML = """
<mujoco model="everything">
  <compiler angle="radian"/>
  <option timestep="0.003" cone="elliptic" impratio="2" density="1.2" viscosity=".01" wind="1 0 0"/>
  <asset><mesh name="wedge" vertex="0 0 0  .2 0 0  0 .1 0  0 0 .1  .2 0 .1"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" friction="1.1 .02 .01" condim="4"/>
    <site name="post" pos="0 .3 .5"/>
    <body name="base" pos="0 0 .1" euler=".1 .2 .3">
      <freejoint name="root"/>
      <geom name="ball" size=".1" density="500" solref=".01 .7" solimp=".8 .9 .002 .4 3"/>
      <body name="arm" pos=".1 0 .05">
        <joint name="elbow" axis="0 1 .3" damping=".1" range="-.2 .1" ref=".05" stiffness="2" springref=".2"
          armature=".01" frictionloss=".02" limited="true" actuatorfrcrange="-.9 .9" actuatorfrclimited="true"/>
        <geom name="rod" type="capsule" size=".02 .1" pos=".1 0 0" quat="1 0 1 0"/>
        <geom name="bead" type="sphere" size=".03" pos=".05 0 .02" contype="0" conaffinity="0"/>
        <site name="mid" pos=".1 0 .03"/>
        <body name="hand" pos=".2 0 0" gravcomp=".5">
          <joint name="wrist" type="ball" damping=".05"/>
          <geom name="palm" type="mesh" mesh="wedge" friction=".4"/>
          <site name="grip" pos=".03 0 0" euler=".1 0 .5" type="box" size=".1 .1 .1"/>
        </body>
      </body>
    </body>
    <body name="slider" pos=".5 0 .3"><joint name="rail" type="slide" axis="1 0 0"/>
      <geom name="sled" size=".05"/></body>
    <body name="hung" pos="-.5 0 1"><freejoint/><geom name="bob" type="box" size=".1 .05 .02"/></body>
  </worldbody>
  <contact><exclude body1="base" body2="slider"/>
    <pair geom1="sled" geom2="bob" friction=".3 .3 .01 .001 .001"/></contact>
  <equality>
    <connect body1="hung" anchor="0 0 .1"/><joint joint1="rail" joint2="elbow" polycoef="0 .5 .1 0 0"/>
  </equality>
  <tendon>
    <spatial name="cord" stiffness="5" damping=".2" springlength="0 .3"><site site="post"/><geom geom="bead"/>
      <site site="grip"/></spatial>
    <fixed name="belt" range="-.1 .2" limited="true"><joint joint="elbow" coef="1.5"/>
      <joint joint="rail" coef="-2"/></fixed>
  </tendon>
  <actuator>
    <motor name="motor" joint="elbow" gear="2" ctrlrange="-1 1" ctrllimited="true"/>
    <position name="servo" joint="rail" kp="30" kv="2" forcerange="-4 4" forcelimited="true"/>
    <position name="ratio" joint="rail" kp="10" dampratio=".7"/>
    <general name="jet" site="mid" gear="0 0 1 0 .1 0" dyntype="filter" dynprm=".05"/>
    <muscle name="biceps" tendon="cord" lengthrange=".2 .6" force="20"/>
  </actuator>
  <sensor>
    <gyro name="gyro" site="grip" noise=".1"/><touch site="grip"/><jointactuatorfrc joint="elbow"/>
    <framepos objtype="geom" objname="rod" reftype="site" refname="post"/><subtreecom body="arm"/>
    <contact name="feel" geom1="ball" data="found force" num="2" reduce="maxforce"/><tendonpos tendon="cord"/>
  </sensor>
</mujoco>
"""


def _tight(model):
    model.opt.tolerance, model.opt.iterations, model.opt.ls_tolerance = 1e-14, 200, 1e-10
    return model


def _states(model, count, spread=0.2):
    rng = np.random.default_rng(1)
    for _ in range(count):
        data = mujoco.MjData(model)
        mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), spread)
        yield data.qpos.copy(), rng.normal(size=model.nv), rng.uniform(0, 1, model.nu), rng.uniform(0, 1, model.na)


def _acceleration(model, state):
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:], data.act[:] = state
    mujoco.mj_forward(model, data)
    return data.qacc.copy(), data.sensordata.copy(), data.ncon


def test_written_model_moves_as_the_source():
    """Through a Scene and out again, MuJoCo's accelerations and sensors are those of the file it began with."""
    source = _tight(mujoco.MjModel.from_xml_string(_XML))
    text, notes = scene_to_mjcf(scene_from_mjmodel(source))
    assert not notes
    written = _tight(mujoco.MjModel.from_xml_string(text))
    touched = 0
    for state in _states(source, 20):
        (qacc, sensors, contacts), (made, made_sensors, _) = (_acceleration(m, state) for m in (source, written))
        np.testing.assert_allclose(made, qacc, atol=1e-9 * max(1.0, np.abs(qacc).max()))
        np.testing.assert_allclose(made_sensors, sensors, atol=1e-9 * max(1.0, np.abs(sensors).max()))
        touched += contacts > 0
    assert touched > 5


def test_stage_gives_the_same_motion_in_mujoco(tmp_path):
    scene = ws.load_scene(ws.example_scene("quadruped"))
    scene.drives = []
    text, notes = scene_to_mjcf(scene)
    assert not notes
    model = _tight(mujoco.MjModel.from_xml_string(text))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    sim = ws.Simulator(scene)
    np.testing.assert_allclose(data.qpos, np.asarray(sim.rollout(steps=1).numpy("q"))[0].reshape(-1), atol=1e-12)
    data.ctrl[:] = 0
    motion = sim.rollout(steps=40)
    touched = 0
    for _ in range(40):
        mujoco.mj_step(model, data)
        touched += data.ncon > 0
    assert touched > 10
    np.testing.assert_allclose(motion.numpy("q")[-1].reshape(-1), data.qpos, atol=1e-8)


def test_command_writes_a_file_that_mujoco_compiles(tmp_path, capsys):
    target = tmp_path / "arm.xml"
    scene = ws.example_scene("arm")
    assert main(["convert", str(scene), str(target)]) == 0
    assert "wrote" in capsys.readouterr().out
    model = mujoco.MjModel.from_xml_path(str(target))
    read = ws.load_scene(scene)
    assert model.nbody == len(read.bodies) + 1 and model.njnt == len(read.joints)
    assert main(["convert", str(scene), str(target)]) == 0  # its own file, replaced


def test_what_is_lost_is_said():
    scene = scene_from_mjmodel(mujoco.MjModel.from_xml_string(_XML))
    scene.options.contact_softening = 0.01
    scene.shapes[1].kind = "cone"
    scene.shapes[1].size = np.array([0.1, 0.1, 0.0])
    _, notes = scene_to_mjcf(scene)
    assert {note.attribute for note in notes} == {"contact_softening", "kind cone"}
