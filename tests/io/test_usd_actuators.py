"""Sites, tendons, actuators and key frames of MuJoCo's schemas, and materials' contact values."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from pxr import Sdf

from mujoco_oracle import to_mujoco
from warpsim.core.errors import SceneError
from warpsim.io.mjcf import scene_from_mjmodel
from warpsim.io.usd import author
from warpsim.io.usd.export import export_scene
from warpsim.io.usd.reader import read_usd
from warpsim.rigid.compile.compile import compile_model
from warpsim.sim.mjcf_export import scene_to_mjcf


def arm(**options):
    """Two hinged bodies; returns the stage and the hinges."""
    stage = author.new_stage(**options)
    joints = []
    for name in ("A", "B"):
        body = author.body(author.world(stage), name, mass=1, inertia=(1, 1, 1))
        joints.append(author.revolute(body, "Joint", None, body, "Z", limits=(-90, 45)))
    return stage, joints


def tendon(stage, joints, **attributes):
    prim = stage.DefinePrim("/World/Tendon", "MjcTendon")
    prim.CreateRelationship("mjc:path").SetTargets([joint.GetPath() for joint in joints])
    author.set_attributes(prim, {"mjc:type": "fixed", "mjc:path:indices": range(len(joints)), **attributes})
    return prim


def test_damping_ratios_become_damping(rng):
    """A servo's positive biasPrm[2] is a share of the critical damping, as MuJoCo compiles it."""
    stage = author.new_stage()
    world = author.world(stage)
    parent, joints = None, []
    for place in range(3):
        body = author.body(world, f"Link{place}", position=(0.3 * place, 0, 0))
        author.box(body, "Box", rng.uniform(0.05, 0.2, 3), position=(0.1, 0, 0))
        make = author.prismatic if place == 1 else author.revolute
        joints.append(make(world, f"Joint{place}", parent, body, "Z", attributes={"newton:armature": 0.1 * place}))
        parent = body
    for place, (joint, ratio) in enumerate(zip(joints, (0.5, 1.0, 2.0), strict=True)):
        gear = (1.5 + place, 0, 0, 0, 0, 0)
        author.actuator(world, f"Servo{place}", joint, gear=gear, gain=(80.0,), bias=(0.0, -80.0, ratio))
    tendon(stage, [joints[0], joints[2]], **{"mjc:path:coef": (1.0, -0.5)})
    author.actuator(world, "Reel", stage.GetPrimAtPath("/World/Tendon"), gain=(80.0,), bias=(0.0, -80.0, 1.0))
    author.actuator(world, "Plain", joints[0], gain=(80.0,), bias=(0.0, -70.0, 1.0))
    scene = read_usd(stage, strict=True)
    assert [actuator.damping_ratio for actuator in scene.actuators] == [0.5, 1.0, 2.0, 1.0, 0.0]
    expected = to_mujoco(scene, approximate=True).actuator_biasprm[:, :3]
    assert (expected[:4, 2] < -1).all() and expected[4, 2] == 1.0
    np.testing.assert_allclose(compile_model(scene).authored["actuator.bias"].numpy()[0], expected, rtol=1e-9)
    again = read_usd(export_scene(scene)[0], strict=True)
    assert [actuator.damping_ratio for actuator in again.actuators] == [0.5, 1.0, 2.0, 1.0, 0.0]


def test_position_servo():
    stage, (joint, _) = arm()
    author.actuator(
        author.world(stage),
        "Servo",
        joint,
        gain=(50,),
        bias=(0, -50, -5),
        control_range=(-1, 2),
        force_range=(-10, 10),
        attributes={"mjc:dynType": "filter", "mjc:dynPrm": (0.25, 0, 0), "mjc:actRange:min": -1, "mjc:actRange:max": 1},
    )
    (servo,) = read_usd(stage, strict=True).actuators
    np.testing.assert_array_equal(servo.gain, [50, 0, 0])
    np.testing.assert_array_equal(servo.bias, [0, -50, -5])
    assert (servo.control_range, servo.force_range, servo.activation_range) == ((-1, 2), (-10, 10), (-1, 1))
    assert (servo.dynamics, servo.time_constant) == ("filter", 0.25)


def test_ranges_follow_their_flags():
    stage, (joint, _) = arm()
    motor = author.actuator(author.world(stage), "Motor", joint, control_range=(-1, 1))
    author.set_attribute(motor, "mjc:ctrlLimited", "false")
    assert read_usd(stage, strict=True).actuators[0].control_range is None


def test_inherited_range():
    stage, (joint, _) = arm()
    motor = author.actuator(author.world(stage), "Servo", joint)
    motor.CreateAttribute("mjc:inheritRange", Sdf.ValueTypeNames.Double).Set(0.5)
    low, high = read_usd(stage, strict=True).actuators[0].control_range
    assert (low, high) == pytest.approx(np.radians([-22.5 - 33.75, -22.5 + 33.75]))


def test_laws_that_are_not_modeled_leave_the_actuator_out():
    stage, (joint, _) = arm()
    muscle = author.actuator(author.world(stage), "Muscle", joint, attributes={"mjc:gainType": "muscle"})
    lost = author.actuator(author.world(stage), "Lost", muscle)
    scene = read_usd(stage)
    assert scene.actuators == []
    found = {(e.path, e.attribute) for e in scene.ledger if e.status == "unsupported"}
    assert {(str(muscle.GetPath()), "mjc:gainType"), (str(lost.GetPath()), "mjc:target")} <= found


def test_fixed_tendon_and_its_actuator():
    stage, joints = arm()
    prim = tendon(stage, joints, **{"mjc:path:coef": (1, -0.5), "mjc:range:min": -1, "mjc:range:max": 2})
    author.set_attributes(prim, {"mjc:stiffness": 3, "mjc:damping": 0.5, "mjc:springlength": (0.1, 0.2)})
    author.actuator(author.world(stage), "Pull", prim)
    scene = read_usd(stage, strict=True)
    (read,) = scene.tendons
    assert read.joints == [str(joint.GetPath()) for joint in joints]
    np.testing.assert_array_equal(read.coefficients, [1, -0.5])
    assert (read.limit, read.spring_range, read.stiffness, read.damping) == ((-1, 2), (0.1, 0.2), 3, 0.5)
    assert (scene.actuators[0].transmission, scene.actuators[0].target) == ("tendon", "/World/Tendon")


def test_spatial_tendon_over_joints_is_unsupported():
    stage, joints = arm()
    author.set_attribute(tendon(stage, joints, **{"mjc:path:coef": (1, 1)}), "mjc:type", "spatial")
    scene = read_usd(stage)
    assert scene.tendons == []
    assert any(e.path == "/World/Tendon" and e.status == "unsupported" for e in scene.ledger)


def test_tendon_that_does_not_fit_is_refused():
    stage, joints = arm()
    tendon(stage, joints, **{"mjc:path:coef": (1, 1, 1)})
    with pytest.raises(SceneError, match="/World/Tendon"):
        read_usd(stage)


def test_key_frame():
    stage, _ = arm()
    frame = stage.DefinePrim("/World/Home", "MjcKeyframe")
    frame.CreateAttribute("mjc:qpos", Sdf.ValueTypeNames.DoubleArray).Set([0.1, -0.2])
    frame.CreateAttribute("mjc:qvel", Sdf.ValueTypeNames.DoubleArray).Set([1.0, 2.0])
    scene = read_usd(stage, strict=True)
    assert [joint.initial_q[0] for joint in scene.joints] == [0.1, -0.2]
    assert [joint.initial_qd[0] for joint in scene.joints] == [1.0, 2.0]
    frame.GetAttribute("mjc:qpos").Set([0.1])
    with pytest.raises(SceneError, match="/World/Home"):
        read_usd(stage)


def test_contact_values_of_material_and_collider():
    """Newton's material wins, unless MuJoCo's collider says the same: then MuJoCo's form is kept."""
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body")
    attributes = {"newton:contactStiffness": 2500, "newton:contactDamping": 100}
    material = author.material(author.world(stage), "Material", friction=0.5, attributes=attributes)
    ball = author.sphere(body, "Ball", 0.1, material=material)
    np.testing.assert_array_equal(read_usd(stage, strict=True).shapes[0].solref, [-2500, -100])
    author.set_attribute(ball, "mjc:solref", (0.02, 1.0))
    np.testing.assert_array_equal(read_usd(stage, strict=True).shapes[0].solref, [0.02, 1.0])
    author.set_attribute(ball, "mjc:solref", (0.05, 1.0))
    np.testing.assert_array_equal(read_usd(stage, strict=True).shapes[0].solref, [-2500, -100])


def test_friction_kinds_and_combination():
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body")
    attributes = {"newton:torsionalFriction": 0.01}
    material = author.material(author.world(stage), "Material", friction=0.5, attributes=attributes)
    author.sphere(body, "Ball", 0.1, material=material)
    shape = read_usd(stage, strict=True).shapes[0]
    assert (shape.condim, shape.friction_combine) == (4, "average")
    author.set_attribute(material, "physxMaterial:frictionCombineMode", "multiply")
    assert read_usd(stage, strict=True).shapes[0].friction_combine == "multiply"
    author.set_attribute(stage.GetPrimAtPath("/World/Body/Ball"), "mjc:condim", 6)
    assert read_usd(stage, strict=True).shapes[0].condim == 6


def test_gravity_compensation():
    stage = author.new_stage()
    author.body(author.world(stage), "A", mass=1, attributes={"physxRigidBody:disableGravity": True})
    author.body(author.world(stage), "B", mass=1, attributes={"mjc:gravcomp": 0.25})
    assert [body.gravity_compensation for body in read_usd(stage, strict=True).bodies] == [1.0, 0.25]


def test_solver_settings():
    stage = author.new_stage()
    attributes = {
        "mjc:option:timestep": 0.004,
        "mjc:option:integrator": "implicitfast",
        "mjc:option:cone": "pyramidal",
        "mjc:option:impratio": 10,
        "mjc:option:iterations": 7,
        "mjc:option:tolerance": 1e-7,
        "mjc:option:wind": (1, 2, 3),
    }
    scene_prim = author.physics_scene(stage, attributes=attributes)
    scene = read_usd(stage, strict=True)
    options = scene.options
    assert (options.timestep, options.integrator, options.cone) == (0.004, "implicitfast", "pyramidal")
    assert (options.impratio, options.solver_iterations, options.solver_tolerance) == (10, 7, 1e-7)
    np.testing.assert_array_equal(scene.medium.wind, [1, 2, 3])
    author.set_attribute(scene_prim, "newton:timeStepsPerSecond", 200)
    assert read_usd(stage, strict=True).options.timestep == 0.005


def test_newton_actuator():
    stage, joints = arm()
    prim = stage.DefinePrim("/World/Servo", "NewtonActuator")
    prim.CreateRelationship("newton:targets").SetTargets([joints[0].GetPath()])
    for name, value in (("kp", 120.0), ("kd", 4.0), ("maxEffort", 30.0)):
        prim.CreateAttribute(f"newton:{name}", Sdf.ValueTypeNames.Float).Set(value)
    (servo,) = read_usd(stage, strict=True).actuators
    np.testing.assert_array_equal(servo.gain, [120, 0, 0])
    np.testing.assert_array_equal(servo.bias, [0, -120, -4])
    assert servo.force_range == (-30, 30)


def test_infinite_newton_values_are_left_to_the_engine():
    stage, (joint, _) = arm()
    ball = author.sphere(stage.GetPrimAtPath("/World/A"), "Ball", 0.1)
    ball.CreateAttribute("newton:contactGap", Sdf.ValueTypeNames.Float).Set(float("-inf"))
    for name in ("limitStiffness", "limitDamping", "velocityLimit"):
        joint.CreateAttribute(f"newton:{name}", Sdf.ValueTypeNames.Float).Set(float("inf"))
    scene = read_usd(stage, strict=True)
    assert scene.shapes[0].gap == 0
    joint.GetAttribute("newton:limitStiffness").Set(10.0)
    found = [e for e in read_usd(stage).ledger if e.attribute == "newton:limitStiffness"]
    assert [e.status for e in found] == ["unsupported"]


def test_gravity_switch():
    stage, _ = arm()
    scene = author.physics_scene(stage, gravity=9.81)
    scene.CreateAttribute("newton:gravityEnabled", Sdf.ValueTypeNames.Bool).Set(False)
    np.testing.assert_array_equal(read_usd(stage, strict=True).options.gravity, 0)


_SINEWS = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <site name="root" pos="0 0 .6"/><site name="anchor" pos=".2 .1 .6"/><site name="beside" pos=".16 0 .5"/>
    <geom name="drum" type="sphere" size=".05" pos=".1 0 .5" contype="0" conaffinity="0"/>
    <body name="upper" pos="0 0 .5"><joint name="shoulder" axis="0 1 0" damping=".1"/>
      <geom name="rod" type="capsule" fromto="0 0 0 .2 0 0" size=".02" contype="0" conaffinity="0"/>
      <site name="end" pos=".2 0 .03"/>
      <body name="lower" pos=".2 0 0"><joint name="elbow" axis="0 1 0"/>
        <geom name="fore" type="capsule" fromto="0 0 0 .2 0 0" size=".02" contype="0" conaffinity="0"/>
        <site name="tip" pos=".1 0 .03"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="sinew" stiffness="3" damping=".2" springlength=".1 .2" range="0 .5" limited="true">
      <site site="root"/><geom geom="drum" sidesite="beside"/><site site="end"/><pulley divisor="2"/>
      <site site="anchor"/><site site="tip"/><pulley divisor="2"/><site site="root"/><site site="tip"/>
    </spatial>
  </tendon>
  <actuator>
    <muscle name="biceps" tendon="sinew" lengthrange=".2 .7" force="30" timeconst=".02 .05"/>
    <muscle name="turner" joint="elbow" lengthrange="-1 1" force="5" gear=".5"/>
  </actuator>
</mujoco>
"""


def test_spatial_tendons_and_muscles_survive_usd():
    """Through USD and out again, MuJoCo's accelerations are those of the file, to the precision of float32 poses."""
    source = mujoco.MjModel.from_xml_string(_SINEWS)
    stage, notes = export_scene(scene_from_mjmodel(source))
    assert not notes
    scene = read_usd(stage, strict=True)
    assert [point.kind for point in scene.tendons[0].path].count("pulley") == 2
    text, notes = scene_to_mjcf(scene)
    assert not notes
    written, rng = mujoco.MjModel.from_xml_string(text), np.random.default_rng(0)
    for _ in range(10):
        state, found = (rng.normal(size=2), rng.normal(size=2), rng.uniform(0, 1, 2)), []
        for model in (source, written):
            data = mujoco.MjData(model)
            data.qpos[:], data.qvel[:], data.act[:] = state
            mujoco.mj_forward(model, data)
            found.append((data.qacc.copy(), data.ten_length.copy(), data.act_dot.copy()))
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(b, a, rtol=2e-5, atol=1e-6)
