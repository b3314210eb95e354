"""Handles on USD attributes: what they say, what they refuse and why, and how their values act."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics

import warpsim as ws
from warpsim.io.usd import author

CUBE = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
QUADS = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
FACES = np.array([half for a, b, c, d in QUADS for half in ((a, b, c), (a, c, d))])


def _stage() -> Usd.Stage:
    """A few bodies, each with something that cannot vary."""
    stage = author.new_stage(meters_per_unit=0.01)
    world = author.world(stage)
    author.physics_scene(stage, gravity=981, steps_per_second=500)
    ball = author.body(world, "Ball", position=(0, 0, 50), mass=2, center_of_mass=(0, 0, 1), inertia=(3, 4, 5))
    author.sphere(ball, "Shape", 5, density=0.002)
    UsdGeom.Xformable(stage.GetPrimAtPath("/World/Ball/Shape")).AddScaleOp().Set(Gf.Vec3f(1, 1, 1))
    free = author.body(world, "Free", position=(30, 0, 50), velocity=(10, 0, 0))
    author.box(free, "Shape", (5, 4, 3))
    off = author.body(world, "Off", position=(60, 0, 50))
    UsdPhysics.RigidBodyAPI(off).CreateRigidBodyEnabledAttr(False)
    still = author.sphere(off, "Shape", 5)
    still.GetAttribute("physics:collisionEnabled").Set(False)
    arm = author.body(world, "Arm", position=(0, 40, 50), mass=1, inertia=(10, 10, 10))
    author.revolute(arm, "Hinge", None, arm, "Y", limits=(-90, 90), drive={"stiffness": 50, "damping": 5, "target": 20})
    slider = author.body(world, "Slider", position=(0, 80, 50), mass=1, inertia=(10, 10, 10))
    author.prismatic(slider, "Slide", None, slider, "X", drive={"stiffness": 5, "damping": 1, "max_force": 100})
    lump = author.body(world, "Lump", position=(-40, 0, 50))
    author.mesh(lump, "Mesh", CUBE, FACES, scale=(4, 4, 4))
    author.material(world, "Lonely", friction=0.5)
    _instance(stage)
    return stage


def _instance(stage: Usd.Stage) -> None:
    source = author.body(author.frame(author.world(stage), "Prototype"), "Part", position=(0, -40, 50), mass=1)
    author.sphere(source, "Shape", 5)
    copy = stage.DefinePrim("/World/Copy", "Xform")
    copy.GetReferences().AddInternalReference("/World/Prototype")
    copy.SetInstanceable(True)
    copy.GetAttribute("xformOp:translate").Set(Gf.Vec3d(40, 0, 0))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("attributes") / "scene.usda"
    stage = _stage()  # its layer dies with it
    stage.GetRootLayer().Export(str(path))
    return path


@pytest.fixture(scope="module")
def sim(file):
    return ws.Simulator(file)


def test_a_handle_describes_its_attribute(sim):
    velocity = sim.attribute("/World/Free.physics:velocity")
    assert (velocity.path, velocity.prim_path, velocity.name) == (
        "/World/Free.physics:velocity",
        "/World/Free",
        "physics:velocity",
    )
    assert velocity.shape == (3,) and velocity.unit == "cm/s" and velocity.type_name == "vector3f"
    assert velocity.value.dtype == torch.float64 and velocity.value.tolist() == [10.0, 0.0, 0.0]
    assert velocity.reach == ("state.qd",)
    assert sim.attribute(velocity.path) == velocity and hash(velocity) == hash(sim.attribute(velocity.path))
    velocity.value.add_(1.0)
    assert velocity.value.tolist() == [10.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "path, unit",
    [
        ("/World/Arm/Hinge.drive:angular:physics:stiffness", "kg·cm²/s²/deg"),
        ("/World/Slider/Slide.drive:linear:physics:stiffness", "kg·cm/s²/cm"),
        ("/World/Slider/Slide.drive:linear:physics:targetPosition", "cm"),
        ("/World/Arm/Hinge.physics:lowerLimit", "deg"),
        ("/World/Free.physics:angularVelocity", "deg/s"),
        ("/World/Physics.physics:gravityMagnitude", "cm/s²"),
    ],
)
def test_units_are_the_stages_own(sim, path, unit):
    assert sim.attribute(path).unit == unit


@pytest.mark.parametrize(
    "path, reason",
    [
        ("/World/Ball/Shape.physics:density", "mass, center and inertia are authored"),
        ("/World/Ball/Shape.physics:mass", "0 means 'not set'"),
        ("/World/Ball/Shape.xformOp:scale", "kink"),
        ("/World/Arm/Hinge.physics:axis", "type token"),
        ("/World/Arm/Hinge.physics:collisionEnabled", "type bool"),
        ("/World/Physics.newton:timeStepsPerSecond", "type int"),
        ("/World/Arm/Hinge.physics:body1", "relationship"),
        ("/World/Arm/Hinge.drive:angular:physics:maxForce", "finite value"),
        ("/World/Arm/Hinge.physics:breakForce", "finite value"),
        ("/World/Arm.physics:velocity", "jointed"),
        ("/World/Off.physics:velocity", "body is disabled"),
        ("/World/Off/Shape.radius", "collider is disabled"),
        ("/World/Lonely.physics:dynamicFriction", "no collider is bound"),
        ("/World/Lump/Mesh.points", "its pose and a uniform scale do"),
        ("/World/Copy/Part.physics:mass", "instanceable=false"),
        ("/World/Free.physics:velocit", "did you mean 'physics:velocity'"),
        ("/World/Fre.physics:velocity", "did you mean '/World/Free'"),
        ("World/Free", "give '/prim.attribute'"),
    ],
)
def test_an_attribute_that_cannot_matter_says_why(sim, path, reason):
    with pytest.raises(ws.InputError, match=re.escape(reason)) as caught:
        sim.attribute(path)
    assert path.split(".")[0] in str(caught.value)


def test_meshes_vary_in_pose_and_uniform_scale(sim, file, tmp_path):
    scale = sim.attribute("/World/Lump/Mesh.xformOp:scale")
    assert scale.shape == () and scale.value == 4.0
    assert "shape.size" in scale.reach and "world.gravity" not in scale.reach
    stage = Usd.Stage.Open(Sdf.Layer.OpenAsAnonymous(str(file)))
    stage.GetAttributeAtPath("/World/Lump/Mesh.xformOp:scale").Set((4.0, 4.0, 5.0))
    stage.GetRootLayer().Export(str(tmp_path / "uneven.usda"))
    with pytest.raises(ws.InputError, match="a mesh's own geometry"):
        ws.Simulator(tmp_path / "uneven.usda").attribute("/World/Lump/Mesh.xformOp:scale")


def test_a_scene_without_usd_names_the_arrays(sim):
    with pytest.raises(ws.InputError, match="parameters={'body.mass'"):
        ws.Simulator(sim.scene).attribute("/World/Free.physics:velocity")


def test_a_file_that_changed_is_refused(file, tmp_path):
    copy = tmp_path / "scene.usda"
    copy.write_bytes(file.read_bytes())
    sim = ws.Simulator(copy)
    stage = Usd.Stage.Open(str(copy))
    stage.GetAttributeAtPath("/World/Free.physics:velocity").Set(Gf.Vec3f(1, 2, 3))
    stage.Save()
    with pytest.raises(ws.InputError, match="not what it was"):
        sim.attribute("/World/Free.physics:velocity")


def test_a_layer_that_is_edited_in_memory_is_refused(file, tmp_path):
    copy = tmp_path / "scene.usda"
    copy.write_bytes(file.read_bytes())
    sim = ws.Simulator(copy)
    sim.attribute("/World/Free.physics:velocity")
    stage = Usd.Stage.Open(str(copy))  # shares its layers with the simulator's
    stage.GetAttributeAtPath("/World/Ball.physics:mass").Set(3.0)
    with pytest.raises(ws.InputError, match="not what it was"):
        sim.attribute("/World/Ball.physics:mass")


@pytest.mark.parametrize(
    "given, message",
    [
        (lambda s: {"/World/Ball.physics:mass": -1.0}, "must be above 0"),
        (lambda s: {"/World/Ball.physics:mass": float("nan")}, "finite"),
        (lambda s: {"/World/Ball.physics:mass": [1.0, 2.0]}, r"needed: \(\) for all worlds"),
        (lambda s: {"/World/Ball.physics:mass": "heavy"}, "cannot be read"),
        (lambda s: {"/World/Ball.physics:mass": 1.0, s.attribute("/World/Ball.physics:mass"): 2.0}, "given twice"),
        (lambda s: {"/World/Ball.physics:mass": 1.0, "body.mass": s.parameter("body.mass")[0]}, "give one of them"),
        (lambda s: {"/World/Arm/Hinge.physics:localRot0": [0.0, 0.0, 0.0, 0.0]}, "no rotation"),
    ],
)
def test_values_that_make_no_sense_are_refused(sim, given, message):
    with pytest.raises(ws.InputError, match=message):
        sim.rollout(1, parameters=given(sim))


def test_what_is_given_outright_wins_over_attributes(sim):
    target = sim.attribute("/World/Arm/Hinge.drive:angular:physics:targetPosition")
    velocity = sim.attribute("/World/Free.physics:velocity")
    place = sim.attribute("/World/Free.xformOp:translate")
    controls = {"drive_target": torch.zeros(2, 1, sim.model.nd, dtype=torch.float64)}
    with pytest.raises(ws.InputError, match="the control 'drive_target' is given outright"):
        sim.rollout(controls=controls, parameters={target: 30.0})
    qd = torch.zeros(sim.nv, dtype=torch.float64)
    with pytest.raises(ws.InputError, match="the initial 'qd' is given outright"):
        sim.rollout(2, qd=qd, parameters={velocity: [1.0, 2.0, 3.0]})
    with pytest.raises(ws.InputError, match="given outright"):
        sim.rollout(2, start=sim.state, parameters={velocity: [1.0, 2.0, 3.0]})
    q = sim.state.q.clone()
    made = sim.rollout(2, q=q, parameters={place: [1.0, 2.0, 300.0]})
    assert torch.equal(made.q[0], q)


def test_handles_belong_to_one_file(sim, file, tmp_path):
    other = tmp_path / "other.usda"
    other.write_bytes(file.read_bytes())
    foreign = ws.Simulator(other).attribute("/World/Free.physics:velocity")
    assert foreign != sim.attribute("/World/Free.physics:velocity")
    with pytest.raises(ws.InputError, match="another file"):
        sim.rollout(1, parameters={foreign: [1.0, 0.0, 0.0]})


def test_values_on_the_stage_change_nothing(sim):
    paths = (
        "/World/Free.physics:velocity",
        "/World/Free.physics:angularVelocity",
        "/World/Free.xformOp:orient",
        "/World/Ball.physics:mass",
        "/World/Arm/Hinge.physics:localPos0",
        "/World/Arm/Hinge.drive:angular:physics:targetPosition",
    )
    handles = [sim.attribute(path) for path in paths]
    made = sim.rollout(20, parameters={handle: handle.value for handle in handles})
    assert torch.equal(made.q, sim.rollout(20).q)


def test_attributes_that_meet_in_a_product_are_read_together(sim, file, tmp_path):
    """A joint's frame turns its offset: neither value alone tells what both do."""
    joint = "/World/Arm/Hinge"
    values = {
        f"{joint}.physics:localPos1": [2.0, 3.0, -1.0],
        f"{joint}.physics:localRot1": [0.5, 0.5, -0.5, 0.5],
        f"{joint}.physics:localPos0": [0.0, 41.0, 50.0],
        "/World/Arm.physics:mass": 3.0,
    }
    stage = Usd.Stage.Open(Sdf.Layer.OpenAsAnonymous(str(file)))
    for path, value in values.items():
        attribute = stage.GetAttributeAtPath(path)
        attribute.Set(type(attribute.Get())(*value) if isinstance(value, list) else value)
    stage.GetRootLayer().Export(str(tmp_path / "moved.usda"))
    expected = ws.Simulator(tmp_path / "moved.usda").rollout(20)
    made = sim.rollout(20, parameters=values)
    torch.testing.assert_close(
        made.body_position("/World/Arm"), expected.body_position("/World/Arm"), rtol=1e-9, atol=0
    )

    def loss(parameters):
        return sim.rollout(20, parameters=parameters).body_position("/World/Arm")[-1].square().sum()

    leaves = {path: torch.tensor(value, dtype=torch.float64, requires_grad=True) for path, value in values.items()}
    loss(leaves).backward()
    for path, leaf in leaves.items():
        step = torch.zeros_like(leaf)
        step.view(-1)[-1] = 1e-5
        rise = float(loss({**values, path: leaf.detach() + step}) - loss({**values, path: leaf.detach() - step}))
        assert float(leaf.grad.view(-1)[-1]) == pytest.approx(rise / 2e-5, rel=1e-6, abs=1e-9)


def test_each_world_can_have_its_own_value(file, sim):
    both = ws.Simulator(file, worlds=2)
    speed, mass = both.attribute("/World/Free.physics:velocity"), both.attribute("/World/Arm.physics:mass")
    turn = both.attribute("/World/Free.xformOp:orient")
    speeds = torch.tensor([[10.0, 0.0, 5.0], [-20.0, 3.0, 0.0]], dtype=torch.float64, requires_grad=True)
    turns = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.5, 0.5]], dtype=torch.float64, requires_grad=True)
    shared = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    made = both.rollout(15, parameters={speed: speeds, mass: shared, turn: turns})
    made.q[-1].square().sum().backward()
    total = 0.0
    for world in range(2):
        own = [leaf.detach().clone().requires_grad_() for leaf in (speeds[world], turns[world], shared)]
        single = sim.rollout(15, parameters=dict(zip((speed.path, turn.path, mass.path), own, strict=True)))
        torch.testing.assert_close(made.q[:, world], single.q[:, 0], rtol=1e-12, atol=1e-12)
        single.q[-1].square().sum().backward()
        torch.testing.assert_close(speeds.grad[world], own[0].grad)
        torch.testing.assert_close(turns.grad[world], own[1].grad)
        total += float(own[2].grad)
    assert float(shared.grad) == pytest.approx(total, rel=1e-9)


def test_python_numbers_keep_their_digits(sim):
    """A number, a list and a tensor of the same value do the same."""
    path = "/World/Free.physics:velocity"
    given = [10.1, 0.3, 1.0 / 3.0]
    made = [sim.rollout(3, parameters={path: value}).q for value in (given, np.array(given))]
    assert torch.equal(made[0], made[1])
    first = sim.rollout(3, parameters={path: given}).qd[0, 0].numpy()
    assert np.abs(first[:, None] - 0.01 * np.array(given)).min(0).max() < 1e-16


def test_a_shared_value_beside_one_of_each_world_gathers_from_all(file):
    """Its derivative is the sum over worlds, here of worlds that answer differently."""
    both = ws.Simulator(file, worlds=2)
    hinge = "/World/Arm/Hinge.drive:angular:physics"
    targets = torch.tensor([40.0, -70.0], dtype=torch.float64, requires_grad=True)
    stiffness = torch.tensor(60.0, dtype=torch.float64, requires_grad=True)

    def losses(stiffness, targets=targets) -> torch.Tensor:
        made = both.rollout(15, parameters={f"{hinge}:targetPosition": targets, f"{hinge}:stiffness": stiffness})
        return (made.joint_position("/World/Arm/Hinge")[-1] + 1.0).square().flatten()

    losses(stiffness).sum().backward()
    with torch.no_grad():
        rises = (losses(60.01) - losses(59.99)) / 0.02
        assert (rises.abs() > 1e-7).all() and abs(float(rises[0] / rises[1]) - 1) > 0.1
        assert float(stiffness.grad) == pytest.approx(float(rises.sum()), rel=1e-6)
        for world in range(2):
            step = torch.zeros(2, dtype=torch.float64)
            step[world] = 1e-2
            rise = losses(60.0, targets + step) - losses(60.0, targets - step)
            assert float(targets.grad[world]) == pytest.approx(float(rise.sum()) / 2e-2, rel=1e-6)
        alone = both.rollout(15, parameters={f"{hinge}:stiffness": 60.0, f"{hinge}:targetPosition": float(targets[1])})
        last = alone.joint_position("/World/Arm/Hinge")[-1].flatten()
        assert float((last[1] + 1.0).square()) == pytest.approx(float(losses(60.0)[1]), rel=1e-12)


def test_parameters_in_force_start_resets_steps_and_rollouts(file):
    sim = ws.Simulator(file)
    velocity = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    target = torch.tensor(45.0, dtype=torch.float64, requires_grad=True)
    sim.set_parameters(
        {"/World/Free.physics:velocity": velocity, "/World/Arm/Hinge.drive:angular:physics:targetPosition": target}
    )
    rolled = sim.rollout(5)
    first = sim.reset()
    torch.testing.assert_close(first.joint_velocity("/World/Free:free")[0, :3], 0.01 * velocity)
    for _ in range(5):
        last = sim.step()
    assert torch.equal(last.q, rolled.q[-1])
    by_step = torch.autograd.grad(last.q.square().sum(), (velocity, target))
    by_rollout = torch.autograd.grad(rolled.q[-1].square().sum(), (velocity, target))
    for a, b in zip(by_step, by_rollout, strict=True):
        torch.testing.assert_close(a, b)
    combined = sim.rollout(5, parameters={"/World/Physics.physics:gravityMagnitude": 500.0})
    assert not torch.equal(combined.q[-1], rolled.q[-1]) and torch.equal(combined.qd[0], rolled.qd[0])
    sim.set_parameters(None)
    assert torch.equal(sim.rollout(5).q, ws.Simulator(file).rollout(5).q)


def test_drive_targets_are_parameters_by_name(sim):
    """Held for all steps, they do what the same control given at each step does."""
    target = sim.parameter("drive.target")[0].requires_grad_()
    held = sim.rollout(10, parameters={"drive.target": target})
    control = target.detach().expand(10, 1, -1).clone().requires_grad_()
    given = sim.rollout(controls={"drive_target": control})
    assert torch.equal(held.q, given.q)
    held.q[-1].square().sum().backward()
    given.q[-1].square().sum().backward()
    torch.testing.assert_close(target.grad, control.grad.sum(dim=(0, 1)), rtol=1e-12, atol=1e-15)


def test_rounding_keeps_what_the_type_keeps(sim):
    mass, place = sim.attribute("/World/Ball.physics:mass"), sim.attribute("/World/Free.xformOp:translate")
    assert mass.rounded(0.1) == np.float64(np.float32(0.1)) != 0.1
    assert place.rounded(torch.tensor([0.1, 0.2, 0.3])).tolist() == torch.tensor([0.1, 0.2, 0.3]).double().tolist()
    assert place.rounded([0.1, 0.2, 0.3]).tolist() == [0.1, 0.2, 0.3]


def test_the_source_is_never_touched(file, sim):
    layer = Sdf.Layer.FindOrOpen(str(file))
    assert not layer.dirty
    assert not Usd.Stage.Open(layer).GetAttributeAtPath("/World/Free.physics:angularVelocity").HasAuthoredValue()
