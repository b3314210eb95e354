"""Joints that close loops: as equalities with limits and drives; the mechanism moves alike wherever it is cut."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from attribute_stages import derivative_through_files, loss_of
from loop_support import crank_stage
from mujoco_oracle import to_mujoco
from scene_compare import body_poses
from warpsim.io.usd import author
from warpsim.io.usd.reader import read_usd
from warpsim.scene import Scene
from warpsim.scene.ledger import unsupported
from warpsim.sim.simulator import Simulator


def test_loops_become_equalities():
    """A square of four bars: three hinges in the tree, the fourth held at two points of its axis."""
    stage = author.new_stage()
    world = author.world(stage)
    bars = [author.body(world, f"Bar{i}", mass=1, position=(i, 0, 0)) for i in range(4)]
    for i, bar in enumerate(bars):
        author.revolute(world, f"Joint{i}", bar, bars[(i + 1) % 4], "Z", anchor=(i + 0.5, 0.5, 0))
    scene = read_usd(stage, strict=True)
    assert sorted(joint.kind for joint in scene.joints) == ["free", "hinge", "hinge", "hinge"]
    near, far = scene.equalities
    assert near.kind == far.kind == "connect"
    poses = body_poses(scene)
    for item in (near, far):
        a = (poses[item.a] @ [*item.anchor, 1])[:3]
        b = (poses[item.b] @ [*item.anchor_b, 1])[:3]
        np.testing.assert_allclose(a, b, atol=1e-6)
    np.testing.assert_allclose(far.anchor - near.anchor, [0, 0, 0.1], atol=1e-7)


def test_excluded_joints_close_loops():
    stage = author.new_stage()
    world = author.world(stage)
    a, b = (author.body(world, name, mass=1, position=(x, 0, 0)) for name, x in (("A", 0), ("B", 1)))
    author.fixed(world, "Weld", a, b, closes_loop=True)
    author.distance(world, "Rope", a, b, maximum=2)
    scene = read_usd(stage, strict=True)
    assert [joint.kind for joint in scene.joints] == ["free", "free"]
    weld, rope = sorted(scene.equalities, key=lambda item: item.kind, reverse=True)
    np.testing.assert_allclose(weld.relative_pose, [1, 0, 0, 1, 0, 0, 0], atol=1e-7)
    assert (rope.kind, rope.distance_range) == ("distance", (0.0, 2.0))


def crank(*args, **kwargs) -> Scene:
    return read_usd(crank_stage(*args, **kwargs), strict=True)


def motor_path(scene: Scene) -> np.ndarray:
    """Angle of the motor over half a second."""
    sim = Simulator(scene)
    return sim.rollout(steps=1000).numpy("q")[:, 0, sim.joint("/World/Motor").q][:, 0]


def mujocos_motor_path(scene: Scene) -> np.ndarray:
    model = to_mujoco(scene, approximate=True)
    model.opt.tolerance, model.opt.iterations = 1e-14, 200
    data, angles = mujoco.MjData(model), []
    for _ in range(1001):
        angles.append(data.joint("/World/Motor").qpos[0])
        mujoco.mj_step(model, data)
    return np.array(angles)


def test_a_slide_closes_a_loop_as_a_hinge_would():
    """Wherever the loop is cut, the crank swings alike, and the slider is at r cos θ + √(l² − r² sin² θ)."""
    paths = {}
    for loop, kinds in (("Rail", ["axes"]), ("Pin", ["connect", "connect"])):
        scene = crank(loop)
        assert [equality.kind for equality in scene.equalities] == kinds
        sim = Simulator(scene)
        trajectory = sim.rollout(steps=1000, outputs=("body_position", "constraint_error"))
        assert 0.0 < trajectory.numpy("constraint_error").max() < 1e-7  # what float32 frames leave at the start
        theta = np.radians(60.0) - trajectory.numpy("q")[:, 0, sim.joint("/World/Motor").q][:, 0]
        place = trajectory.numpy("body_position")[:, 0, sim.body("/World/Slider").index]
        expected = 0.2 * np.cos(theta) + np.sqrt(0.6**2 - (0.2 * np.sin(theta)) ** 2)
        assert np.abs(place[:, 0] - expected).max() < 1e-6
        assert np.abs(place[:, 1:]).max() < 1e-6
        paths[loop] = theta
    assert np.ptp(paths["Rail"]) > 2.0, "it swings"
    assert np.abs(paths["Rail"] - paths["Pin"]).max() < 1e-5


def test_a_hinge_that_closes_a_loop_stops_where_mujocos_tree_joint_does():
    """The engines scale softness differently, so their motions meet as constraints become hard."""
    limits, errors = {"Wrist": (-25.0, 25.0)}, []
    for hardness in (0.999, 0.9999):
        path = motor_path(crank("Wrist", limits, hardness=hardness))
        errors.append(np.abs(path - mujocos_motor_path(crank("Pin", limits, hardness=hardness))).max())
    assert errors[0] < 1e-3
    assert errors[1] < 0.2 * errors[0], errors
    assert np.abs(path - motor_path(crank("Pin"))).max() > 1.0, "the limit acted"


def test_a_slide_that_closes_a_loop_stops_where_mujocos_tree_joint_does():
    limits = {"Rail": (-0.3, 0.05)}
    path, truth = motor_path(crank("Rail", limits)), mujocos_motor_path(crank("Pin", limits))
    assert np.abs(path - truth).max() < 1e-4
    assert np.ptp(truth) < 1.0, "the limit acted"


@pytest.mark.parametrize("joint", ["Wrist", "Rail"])
def test_a_drive_on_the_joint_that_closes_a_loop_is_one_on_a_tree_joint(joint):
    """MuJoCo's twin has the drive as an actuator of a tree joint; both engines' fourth-order rules are explicit."""
    settings = {
        "Wrist": {"stiffness": 0.3, "damping": 0.002, "target": 10.0},
        "Rail": {"stiffness": 200.0, "damping": 2.0, "target": 0.05},
    }
    drives = {joint: settings[joint]}
    path, truth = motor_path(crank(joint, drives=drives)), mujocos_motor_path(crank("Pin", drives=drives))
    assert np.abs(path - truth).max() < 1e-4
    assert np.abs(path - motor_path(crank("Pin"))).max() > 0.1, "the drive acted"


@pytest.mark.parametrize(
    "name",
    [
        "physics:upperLimit",
        pytest.param("drive:angular:physics:stiffness", marks=pytest.mark.long),
        pytest.param("physics:localRot0", marks=pytest.mark.long),
    ],
)
def test_attributes_of_a_joint_that_closes_a_loop_have_gradients(name, tmp_path):
    """Against differences through the file, while the limit acts."""
    stage = crank_stage("Wrist", {"Wrist": (-90, -2.0)}, {"Wrist": {"stiffness": 0.25}}, hardness=0.9)
    path = f"/World/Wrist.{name}"
    direction = {"physics:localRot0": np.array([0.0, 0.0, 2.0**-12, 0.0])}.get(name, np.array(2.0**-8))
    stage.GetRootLayer().Export(str(tmp_path / "crank.usda"))
    sim = Simulator(tmp_path / "crank.usda")
    handle = sim.attribute(path)
    value = handle.value.requires_grad_()
    loss_of(sim, 40, {handle: value}).backward()
    truth = derivative_through_files(stage, path, direction, tmp_path, 40)
    assert abs(truth) > 1e-6
    assert float((value.grad.numpy() * direction).sum()) == pytest.approx(truth, rel=1e-5)


def two_bodies():
    stage = author.new_stage()
    world = author.world(stage)
    a, b = (author.body(world, name, mass=1, position=(x, 0, 0)) for name, x in (("A", 0), ("B", 1)))
    return stage, world, a, b


def test_generic_joints_close_loops():
    """What the limits leave free is free within them; drives come along, and each value knows its attribute."""
    stage, world, a, b = two_bodies()
    limits = {"transX": (-1, 1), "transY": None, "transZ": None, "rotX": (-30, 400), "rotY": None, "rotZ": None}
    prim = author.generic(world, "Guide", a, b, limits=limits, closes_loop=True)
    author.drive(prim, "rotX", {"stiffness": 2.0, "damping": 0.1, "target": 20.0, "max_force": 3.0})
    scene = read_usd(stage)
    (guide,) = scene.equalities
    assert (guide.kind, guide.a, guide.b) == ("axes", "/World/A", "/World/B")
    assert guide.locked == (False, True, True, False, True, True)
    np.testing.assert_allclose(guide.relative_pose, [1, 0, 0, 1, 0, 0, 0], atol=1e-7)
    np.testing.assert_allclose(guide.limits[0], [-1, 1])
    np.testing.assert_allclose(guide.limits[3], [np.radians(-30), np.inf])
    (drive,) = scene.drives
    assert (drive.name, drive.joint, drive.axis) == ("/World/Guide:rotX", "/World/Guide", 3)
    np.testing.assert_allclose([drive.stiffness, drive.target], [2 * 180 / np.pi, np.radians(20)], rtol=1e-6)
    refused = {(entry.path, entry.attribute) for entry in unsupported(scene.ledger)}
    assert refused == {("/World/Guide", "limit:rotX:physics:high")}, "such an angle cannot be told from 40°"


def test_an_acceleration_drive_on_a_loop_is_reported():
    stage, world, a, b = two_bodies()
    prim = author.revolute(world, "Pin", a, b, "X", closes_loop=True)
    author.drive(prim, "angular", {"stiffness": 2.0, "type": "acceleration"})
    scene = read_usd(stage)
    assert scene.drives == []
    assert [entry.attribute for entry in unsupported(scene.ledger)] == ["PhysicsDriveAPI:angular"]


def test_a_cone_on_a_loop_is_read():
    stage, world, a, b = two_bodies()
    angles = {"physics:coneAngle0Limit": 40.0, "physics:coneAngle1Limit": 30.0}
    author.spherical(world, "Socket", a, b, closes_loop=True, attributes=angles)
    (socket,) = read_usd(stage).equalities
    assert socket.kind == "axes"
    np.testing.assert_allclose(socket.turn_limit, np.radians(30))


def test_joints_of_one_pair_close_a_loop_as_a_compound():
    """A slide and two hinges; the last turn is about −z, so it runs against the coordinate made of it."""
    stage, world, a, b = two_bodies()
    author.prismatic(world, "First", a, b, "Z", closes_loop=True, limits=(-0.1, 0.2))
    author.revolute(world, "Second", a, b, "X", closes_loop=True, drive={"stiffness": 1.0})
    author.revolute(world, "Third", a, b, (0, 0, -1), closes_loop=True, limits=(-10, 20))
    scene = read_usd(stage, strict=True)
    (joint,) = scene.equalities
    assert (joint.name, joint.kind) == ("/World/First", "axes")
    assert joint.locked == (True, False, True, False, False, True)
    np.testing.assert_allclose(joint.limits[1], [-0.2, 0.1], rtol=1e-6)
    np.testing.assert_allclose(joint.limits[4], np.radians([-10, 20]), rtol=1e-6)
    assert (scene.drives[0].joint, scene.drives[0].axis) == ("/World/First", 3)


def test_a_compound_that_closes_a_loop_moves_as_one_in_the_tree():
    """A body on a slide and two hinges of a free one: all three in the tree, and all three as a loop."""

    def motion(closes_loop: bool) -> np.ndarray:
        stage, world, a, b = two_bodies()
        author.physics_scene(stage, steps_per_second=2000, attributes={"mjc:option:integrator": "rk4"})
        for body, shift in ((a, (0, 0.1, 0)), (b, (0.2, 0.1, 0.3))):
            author.box(body, "Shape", (0.5, 0.3, 0.2), position=shift, mass=1.0)
        author.filter_pairs(a, b)
        author.set_attributes(a, {"physics:angularVelocity": (40.0, 90.0, -70.0)})
        hard = {"mjc:solref": (0.001, 1.0), "mjc:solimp": (0.9999, 0.9999, 0.001, 0.5, 2.0)}
        options = {"anchor": (0.5, 0, 0), "closes_loop": closes_loop, "attributes": hard if closes_loop else None}
        for name, make, axis in (("1", "prismatic", "Z"), ("2", "revolute", "Y"), ("3", "revolute", "X")):
            getattr(author, make)(world, f"Joint{name}", a, b, axis, **options)
        scene = read_usd(stage)
        for joint in scene.joints:
            if joint.name == "/World/B:free":  # carried along by A at the start
                spin = np.radians([40.0, 90.0, -70.0])
                joint.initial_qd = np.concatenate([np.cross(spin, [1.0, 0, 0]), spin])
        sim = Simulator(scene)
        places = sim.rollout(steps=600, outputs=("body_position",)).numpy("body_position")[:, 0]
        return places[:, [sim.body(name).index for name in ("/World/A", "/World/B")]]

    tree, loop = motion(False), motion(True)
    assert np.abs(tree - loop).max() < 1e-5
    assert np.abs(tree[-1] - tree[0] - (tree[-1, :1] - tree[0, :1])).max() > 0.1, "they move apart"


def test_joints_that_make_no_compound_are_reported():
    """Two hinges about different points: each holds on its own."""
    stage, world, a, b = two_bodies()
    for name, axis, place in (("First", "X", 0.0), ("Second", "Y", 0.5)):
        author.revolute(world, name, a, b, axis, anchor=(place, 0, 0), closes_loop=True)
    paths = {entry.path for entry in unsupported(read_usd(stage).ledger)}
    assert paths == {"/World/First", "/World/Second"}
