"""Joints: frames, directions, compounds, limits, drives, initial states, loops, against plain transforms."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Sdf, UsdGeom, UsdPhysics
from scipy.spatial.transform import Rotation

from scene_compare import body_poses, homogeneous
from warpsim.core.errors import SceneError
from warpsim.io.usd import author
from warpsim.io.usd.reader import read_usd
from warpsim.io.usd.units import DEGREE


def joint_frame(prim, index) -> np.ndarray:
    q = prim.GetAttribute(f"physics:localRot{index}").Get()
    return homogeneous(prim.GetAttribute(f"physics:localPos{index}").Get(), [q.GetReal(), *q.GetImaginary()])


def random_turn(rng):
    return Rotation.random(random_state=rng).as_quat(scalar_first=True)


def chain(rng, kind, *, swap=False, angle=0.0):
    """Two free-standing bodies at random poses, jointed; then body1 moved by the joint's coordinate."""
    stage = author.new_stage()
    world = author.world(stage)
    bodies = []
    for name in ("A", "B"):
        body = author.body(world, name, position=rng.normal(size=3), rotation=random_turn(rng))
        author.box(body, "Box", (0.1, 0.2, 0.3))
        bodies.append(body)
    first, second = bodies[::-1] if swap else bodies
    make = {"hinge": author.revolute, "slide": author.prismatic}[kind]
    joint = make(world, "Joint", first, second, rng.normal(size=3), anchor=rng.normal(size=3))
    UsdPhysics.ArticulationRootAPI.Apply(bodies[0])
    # T₁ = T₀ · frame0 · motion · frame1⁻¹, written out with 4×4 matrices
    cache = UsdGeom.XformCache()
    pose0 = np.array(cache.GetLocalToWorldTransform(first)).T
    motion = np.eye(4)
    if kind == "hinge":
        motion[:3, :3] = Rotation.from_rotvec([angle, 0, 0]).as_matrix()
    else:
        motion[0, 3] = angle
    pose1 = pose0 @ joint_frame(joint, 0) @ motion @ np.linalg.inv(joint_frame(joint, 1))
    place = Rotation.from_matrix(pose1[:3, :3]).as_quat(scalar_first=True)
    author.move(second, position=pose1[:3, 3], rotation=place)
    return stage


@pytest.mark.parametrize("kind", ["hinge", "slide"])
@pytest.mark.parametrize("swap", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("angle", [0.0, 0.7, -1.3, 3.0])
def test_coordinate_and_sign_from_poses(rng, kind, swap, angle):
    """The initial coordinate is the one the bodies were moved by, whichever of them is the root."""
    stage = chain(rng, kind, swap=swap, angle=angle)
    scene = read_usd(stage, strict=True)
    assert [(body.name, body.parent) for body in scene.bodies] == [("/World/A", None), ("/World/B", "/World/A")]
    joint = next(joint for joint in scene.joints if joint.kind == kind)
    found = 0.0 if joint.initial_q is None else joint.initial_q[0]
    assert found == pytest.approx(angle, abs=1e-6)
    cache = UsdGeom.XformCache()
    for name, pose in body_poses(scene).items():
        expected = np.array(cache.GetLocalToWorldTransform(stage.GetPrimAtPath(name))).T
        np.testing.assert_allclose(pose, expected, atol=2e-6)


@pytest.mark.parametrize("nested", [False, True], ids=["body", "prim of the body"])
def test_joint_positions_are_scaled_with_the_prim_they_are_on(rng, nested):
    """`localPos` is in the prim's own units: USD's world transform of it is where the joint sits."""
    stage = author.new_stage()
    world = author.world(stage)
    scaled = author.frame(world, "Scaled", position=rng.normal(size=3), rotation=random_turn(rng))
    UsdGeom.Xformable(scaled).AddScaleOp().Set(Gf.Vec3f(2.0, 3.0, 0.5))
    ends, bodies = [], []
    for name in ("A", "B"):
        body = author.body(scaled, name, position=rng.normal(size=3), mass=1)
        author.box(body, "Box", (0.1, 0.2, 0.3))
        end = body
        if nested:
            end = author.frame(body, "Flange", position=(0.1, 0.2, 0.3))
            UsdGeom.Xformable(end).AddScaleOp().Set(Gf.Vec3f(0.5, 1.5, 4.0))
        bodies.append(body)
        ends.append(end)
    joint = author.prismatic(world, "Slide", bodies[0], bodies[1], "X")
    UsdPhysics.ArticulationRootAPI.Apply(bodies[0])
    cache = UsdGeom.XformCache()
    places = []
    for index, end in enumerate(ends):
        place = Gf.Vec3f(*rng.normal(size=3))
        joint.GetRelationship(f"physics:body{index}").SetTargets([end.GetPath()])
        joint.GetAttribute(f"physics:localPos{index}").Set(place)
        places.append(np.array(cache.GetLocalToWorldTransform(end).Transform(Gf.Vec3d(place))))
    scene = read_usd(stage)
    (slide,) = (joint for joint in scene.joints if joint.kind == "slide")
    poses = {}  # at the reference configuration, where the two points coincide; from A, which stands as authored
    for body in scene.bodies:
        pose = homogeneous(body.position, body.rotation)
        poses[body.name] = pose if body.parent is None else poses[body.parent] @ pose
    found = poses["/World/Scaled/B"] @ np.append(slide.anchor, 1.0)
    np.testing.assert_allclose(found[:3], places[0], atol=1e-6)
    turn = np.array(cache.GetLocalToWorldTransform(bodies[1]).RemoveScaleShear()).T
    away = np.linalg.inv(turn) @ np.append(places[1], 1.0)
    np.testing.assert_allclose(slide.anchor, away[:3], atol=1e-6)


def test_one_sided_limits_and_huge_floats():
    stage = author.new_stage()
    world = author.world(stage)
    expected = {}
    for name, limits in {
        "both": (-30.0, 45.0),
        "low": (-30.0, float("inf")),
        "high": (float("-inf"), 45.0),
        "huge": (-3.4028235e38, 3.4028235e38),
        "none": None,
    }.items():
        body = author.body(world, name, mass=1)
        author.revolute(body, "Joint", None, body, "Z", limits=limits)
        low, high = limits or (-np.inf, np.inf)
        finite = [bound * DEGREE if abs(bound) < 1e38 else np.sign(bound) * np.inf for bound in (low, high)]
        expected[name] = None if np.isinf(finite).all() else pytest.approx(tuple(finite))
    for joint in read_usd(stage, strict=True).joints:
        assert joint.limit == expected[joint.body.rsplit("/", 1)[-1]]


def test_drive_in_degrees():
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body", mass=1)
    settings = {"stiffness": 2, "damping": 0.5, "target": 90, "target_velocity": 180, "max_force": 8}
    author.revolute(body, "Joint", None, body, "Z", drive=settings)
    (drive,) = read_usd(stage, strict=True).drives
    assert drive.stiffness == pytest.approx(2 * 180 / np.pi)
    assert drive.damping == pytest.approx(0.5 * 180 / np.pi)
    assert (drive.target, drive.target_velocity, drive.max_force) == pytest.approx((np.pi / 2, np.pi, 8))
    author.drive(stage.GetPrimAtPath("/World/Body/Joint"), "angular", {"type": "acceleration"})
    (drive,) = read_usd(stage, strict=True).drives
    assert drive.acceleration


def test_drive_without_gains_exists():
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body", mass=1)
    author.prismatic(body, "Joint", None, body, "Z", drive={})
    (drive,) = read_usd(stage, strict=True).drives
    assert (drive.stiffness, drive.damping, drive.max_force) == (0.0, 0.0, np.inf)


def test_compound_keeps_prim_order():
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body", mass=1)
    for axis in "YXZ":
        author.revolute(body, f"Turn{axis}", None, body, axis)
    scene = read_usd(stage, strict=True)
    assert [joint.name[-1] for joint in scene.joints] == ["Y", "X", "Z"]
    np.testing.assert_allclose([joint.axis for joint in scene.joints], [[0, 1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-7)


@pytest.mark.parametrize("angles", [(0.3, -0.4, 0.5), (1.2, 0.7, -1.0)])
def test_compound_coordinates_from_pose(angles):
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body", mass=1)
    for axis in "YXZ":
        author.revolute(body, f"Turn{axis}", None, body, axis, anchor=(0.1, 0.2, 0.3))
    turn = Rotation.from_euler("YXZ", angles)
    place = np.array([0.1, 0.2, 0.3]) - turn.apply([0.1, 0.2, 0.3])
    author.move(body, position=place, rotation=turn.as_quat(scalar_first=True))
    scene = read_usd(stage, strict=True)
    np.testing.assert_allclose([joint.initial_q[0] for joint in scene.joints], angles, atol=1e-6)


@pytest.mark.parametrize("generic", [False, True])
def test_compound_traversed_backwards(rng, generic):
    """The root is body1: J₁J₂ becomes J₂⁻¹J₁⁻¹, and the coordinates keep their names and signs."""
    stage = author.new_stage()
    world = author.world(stage)
    child, root = (author.body(world, name, mass=1, position=rng.normal(size=3)) for name in ("Child", "Root"))
    UsdPhysics.ArticulationRootAPI.Apply(root)
    locked = dict.fromkeys(("transX", "transY", "transZ", "rotX"))
    if generic:
        first = author.generic(
            world, "Joint", child, root, limits={**locked, "rotY": (-180, 180)}, anchor=(0.1, 0.2, 0)
        )
        names = ["/World/Joint:rotY", "/World/Joint:rotZ"]
    else:
        first = author.revolute(world, "TurnY", child, root, "Y", anchor=(0.1, 0.2, 0))
        author.revolute(world, "TurnZ", child, root, "Z", anchor=(0.1, 0.2, 0))
        names = ["/World/TurnY", "/World/TurnZ"]
    angles = (0.4, -0.9)
    motion = np.eye(4)
    motion[:3, :3] = Rotation.from_euler("YZ", angles).as_matrix()
    root_pose = np.array(UsdGeom.XformCache().GetLocalToWorldTransform(root)).T
    pose = root_pose @ joint_frame(first, 1) @ np.linalg.inv(motion) @ np.linalg.inv(joint_frame(first, 0))
    turn = Rotation.from_matrix(pose[:3, :3]).as_quat(scalar_first=True)
    author.move(child, position=pose[:3, 3], rotation=turn)
    scene = read_usd(stage, strict=True)
    found = {joint.name: joint.initial_q for joint in scene.joints if joint.kind == "hinge"}
    np.testing.assert_allclose([found[name][0] for name in names], angles, atol=1e-6)
    np.testing.assert_allclose(body_poses(scene)["/World/Child"], pose, atol=1e-6)


def test_generic_joint():
    """Locked axes vanish, limited and free ones become slides and hinges in the order the ledger tells."""
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body", mass=1)
    limits = {"transX": (-1, 2), "transY": None, "transZ": None, "rotX": None, "rotZ": (-90, 90)}
    author.generic(body, "Joint", None, body, limits=limits, drives={"rotZ": {"stiffness": 1}})
    scene = read_usd(stage, strict=True)
    assert [(j.name.split(":")[-1], j.kind, j.limit) for j in scene.joints] == [
        ("transX", "slide", (-1.0, 2.0)),
        ("rotY", "hinge", None),
        ("rotZ", "hinge", pytest.approx((-np.pi / 2, np.pi / 2))),
    ]
    assert [drive.joint for drive in scene.drives] == ["/World/Body/Joint:rotZ"]
    notes = [entry.reason for entry in scene.ledger if entry.attribute == "PhysicsJoint"]
    assert notes == ["degrees of freedom in this order: transX, rotY, rotZ"]


def test_generic_joint_as_ball_fixed_and_free():
    locked = dict.fromkeys(("transX", "transY", "transZ"))
    for limits, kinds in (
        (locked, ["ball"]),
        ({**locked, **dict.fromkeys(("rotX", "rotY", "rotZ"))}, []),
        ({}, ["free"]),
    ):
        stage = author.new_stage()
        body = author.body(author.world(stage), "Body", mass=1)
        author.generic(body, "Joint", None, body, limits=limits)
        assert [joint.kind for joint in read_usd(stage, strict=True).joints] == kinds


def test_ball_joint_from_pose(rng):
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body", mass=1, position=(1, 2, 3))
    author.spherical(body, "Joint", None, body)
    turn = random_turn(rng)
    author.move(body, rotation=turn)
    (joint,) = read_usd(stage, strict=True).joints
    assert abs(joint.initial_q @ turn) == pytest.approx(1, abs=1e-12)


def test_pose_off_the_joint_is_reported():
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body", mass=1)
    author.revolute(body, "Joint", None, body, "Z")
    author.move(body, position=(0, 0, 0.5))
    scene = read_usd(stage)
    np.testing.assert_allclose(scene.bodies[0].position, 0, atol=1e-12)
    assert any(entry.path == "/World/Body" and "0.5 m" in entry.reason for entry in scene.ledger)


@pytest.mark.parametrize(("kind", "swap"), [("hinge", False), ("hinge", True), ("slide", False)])
def test_reference_is_the_coordinate_at_which_the_frames_coincide(rng, kind, swap):
    """`mjc:ref` renames coordinates: the same poses, limits and springs in terms of the new ones."""
    plain = read_usd(chain(rng, kind, swap=swap, angle=0.3))
    stage = chain(np.random.default_rng(0), kind, swap=swap, angle=0.3)
    prim = stage.GetPrimAtPath("/World/Joint")
    prim.CreateAttribute("mjc:ref", Sdf.ValueTypeNames.Double).Set(-0.8)
    scene = read_usd(stage, strict=True)
    (joint,) = (joint for joint in scene.joints if joint.kind == kind)
    assert joint.reference == -0.8
    assert joint.initial_q == pytest.approx([-0.5], abs=1e-6)
    assert next(joint for joint in plain.joints if joint.kind == kind).reference == 0.0
    poses = body_poses(scene)
    cache = UsdGeom.XformCache()
    for name, pose in poses.items():
        there = np.array(cache.GetLocalToWorldTransform(stage.GetPrimAtPath(name))).T
        assert np.abs(pose - there).max() < 1e-5


def test_joint_state_wins_over_pose():
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body", mass=1)
    attributes = {"state:angular:physics:position": 90, "state:angular:physics:velocity": -180}
    author.revolute(body, "Joint", None, body, "Z", attributes=attributes)
    (joint,) = read_usd(stage, strict=True).joints
    assert joint.initial_q[0] == pytest.approx(np.pi / 2)
    assert joint.initial_qd[0] == pytest.approx(-np.pi)


def test_initial_velocity_is_in_the_bodys_frame():
    """A quarter turn about z: the body's x axis is the world's y."""
    stage = author.new_stage()
    turn = (np.sqrt(0.5), 0, 0, np.sqrt(0.5))
    author.body(author.world(stage), "Body", mass=1, rotation=turn, velocity=(2, 0, 0), angular_velocity=(90, 0, 0))
    (joint,) = read_usd(stage, strict=True).joints
    np.testing.assert_allclose(joint.initial_qd, [0, 2, 0, np.pi / 2, 0, 0], atol=1e-12)


def test_static_prims_and_colliders_as_joint_ends():
    """body0 may be any prim: one without a body is the world, one inside a body is that body."""
    stage = author.new_stage()
    world = author.world(stage)
    post = author.frame(world, "Post", position=(0, 0, 2), rotation=(np.sqrt(0.5), np.sqrt(0.5), 0, 0))
    arm = author.body(world, "Arm", position=(0, 0, 2), mass=1)
    ball = author.sphere(arm, "Ball", 0.1, position=(1, 0, 0))
    author.revolute(world, "Shoulder", post, arm, "Y")
    hand = author.body(world, "Hand", position=(2, 0, 2), mass=1)
    author.revolute(world, "Elbow", ball, hand, "Y", anchor=(1.5, 0, 2))
    scene = read_usd(stage, strict=True)
    assert [(body.name, body.parent) for body in scene.bodies] == [("/World/Arm", None), ("/World/Hand", "/World/Arm")]
    np.testing.assert_allclose(scene.bodies[1].position, [2, 0, 0], atol=1e-7)
    assert all(joint.initial_q is None for joint in scene.joints)


def test_mimic():
    stage = author.new_stage()
    world = author.world(stage)
    joints = []
    for name in ("Leader", "Follower"):
        body = author.body(world, name, mass=1)
        joints.append(author.revolute(body, "Joint", None, body, "Z"))
    author.mimic(joints[1], joints[0], offset=90, ratio=-2)
    (equality,) = read_usd(stage, strict=True).equalities
    assert (equality.a, equality.b) == ("/World/Follower/Joint", "/World/Leader/Joint")
    np.testing.assert_allclose(equality.polynomial, [np.pi / 2, -2, 0, 0, 0], rtol=1e-6)


def test_disabled_joint_and_body():
    stage = author.new_stage()
    world = author.world(stage)
    body = author.body(world, "Body", mass=1)
    author.revolute(body, "Joint", None, body, "Z", attributes={"physics:jointEnabled": False})
    off = author.body(world, "Off", position=(0, 0, 1), attributes={"physics:rigidBodyEnabled": False})
    author.sphere(off, "Ball", 0.1)
    scene = read_usd(stage, strict=True)
    assert [joint.kind for joint in scene.joints] == ["free"]
    assert [(shape.body, shape.position[2]) for shape in scene.shapes] == [(None, 1.0)]


def test_kinematic_body_roots_its_chain():
    stage = author.new_stage()
    world = author.world(stage)
    arm = author.body(world, "Arm", mass=1)
    mover = author.body(world, "Mover", mass=1, kinematic=True, velocity=(1, 0, 0))
    author.revolute(world, "Joint", arm, mover, "Z")
    scene = read_usd(stage, strict=True)
    assert [(b.name, b.parent, b.kinematic) for b in scene.bodies] == [
        ("/World/Mover", None, True),
        ("/World/Arm", "/World/Mover", False),
    ]


def test_bad_joint_ends_are_refused():
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body", mass=1)
    joint = author.revolute(body, "Joint", None, body, "Z")
    UsdPhysics.Joint(joint).GetBody1Rel().SetTargets(["/World/Nobody"])
    with pytest.raises(SceneError, match="/World/Nobody"):
        read_usd(stage)
    UsdPhysics.Joint(joint).GetBody1Rel().SetTargets(["/World/Body"])
    joint.GetAttribute("physics:localRot1").Set(Gf.Quatf(0, 0, 0, 0))
    with pytest.raises(SceneError, match="localRot1"):
        read_usd(stage)


def test_a_connect_equality_is_read():
    """The API schema says nothing more than the ball joint that closes the loop."""
    stage = author.new_stage()
    world = author.world(stage)
    bodies = [author.body(world, name, position=(0, 0, z)) for name, z in (("A", 0.0), ("B", 1.0))]
    for body in bodies:
        author.box(body, "Box", (0.1, 0.1, 0.1))
    joint = author.spherical(world, "Ball", bodies[0], bodies[1])
    joint.CreateAttribute("physics:excludeFromArticulation", Sdf.ValueTypeNames.Bool).Set(True)
    joint.AddAppliedSchema("MjcEqualityConnectAPI")
    scene = read_usd(stage, strict=True)
    assert [equality.kind for equality in scene.equalities] == ["connect"]
