"""Stages as tools other than ours write them: what they plainly mean is done, and the ledger says so."""

import numpy as np
import pytest
from pxr import Sdf, Usd, UsdGeom, UsdPhysics

import warpsim as ws
from warpsim.io.usd.reader import read_usd
from warpsim.rigid.compile.compile import compile_model
from warpsim.rigid.compile.derive import Derivation

_CORNERS = [(x, y, z) for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)]
_SIDES = [0, 2, 3, 1, 4, 5, 7, 6, 0, 1, 5, 4, 1, 3, 7, 5, 3, 2, 6, 7, 2, 0, 4, 6]


def _stage():
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageUpAxis(stage, "Z")
    UsdGeom.SetStageMetersPerUnit(stage, 1)
    UsdPhysics.Scene.Define(stage, "/Scene")
    return stage


def _cube(stage, path, size, *, position=(0, 0, 0), body=False, collider=True):
    cube = UsdGeom.Cube.Define(stage, path)
    cube.GetSizeAttr().Set(size)
    cube.AddTranslateOp().Set(position)
    if body:
        UsdPhysics.RigidBodyAPI.Apply(cube.GetPrim())
    if collider:
        UsdPhysics.CollisionAPI.Apply(cube.GetPrim())
    return cube


def _body(stage, path, position=(0, 0, 0)):
    body = UsdGeom.Xform.Define(stage, path)
    body.AddTranslateOp().Set(position)
    UsdPhysics.RigidBodyAPI.Apply(body.GetPrim())
    return body


def _hinge(stage, path, a, b, position):
    joint = UsdPhysics.RevoluteJoint.Define(stage, path)
    joint.GetBody0Rel().SetTargets([a])
    joint.GetBody1Rel().SetTargets([b])
    joint.GetLocalPos0Attr().Set(position)
    joint.GetAxisAttr().Set("Y")
    return joint.GetPrim()


def _assumed(scene, path, attribute):
    return [e for e in scene.ledger if (e.path, e.attribute, e.status) == (path, attribute, "assumed")]


@pytest.mark.parametrize("group", ["Xform", "Scope"])
@pytest.mark.parametrize("geometry", ["Cube", "Mesh"])
def test_ground_on_a_group_carries(group, geometry):
    stage = _stage()
    ground = stage.DefinePrim("/Ground", group)
    UsdPhysics.CollisionAPI.Apply(ground)
    if geometry == "Cube":
        cube = _cube(stage, "/Ground/Box", 2, position=(0, 0, -1), collider=False)
        cube.AddScaleOp().Set((5, 5, 1))
    else:
        mesh = UsdGeom.Mesh.Define(stage, "/Ground/Sheet")
        mesh.GetPointsAttr().Set([(-5, -5, 0), (5, -5, 0), (5, 5, 0), (-5, 5, 0)])
        mesh.GetFaceVertexCountsAttr().Set([4])
        mesh.GetFaceVertexIndicesAttr().Set([0, 1, 2, 3])
    _cube(stage, "/Box", 0.4, position=(0, 0, 0.25), body=True)
    scene = read_usd(stage)
    assert _assumed(scene, "/Ground", "PhysicsCollisionAPI")
    motion = ws.Simulator(scene).rollout(steps=300)
    assert abs(motion.numpy("q")[-1].reshape(-1)[2] - 0.2) < 2e-3  # 5 cm lower, and it stays there


def test_empty_group_stays_unsupported():
    stage = _stage()
    UsdPhysics.CollisionAPI.Apply(stage.DefinePrim("/Ground", "Xform"))
    _cube(stage, "/Box", 0.4, body=True)
    assert [e.path for e in read_usd(stage).ledger if e.status == "unsupported"] == ["/Ground"]


def test_massless_body_that_moves_weighs_one_kilogram():
    stage = _stage()
    _body(stage, "/Base")
    _cube(stage, "/Arm", 0.2, position=(1, 0, 0), body=True)
    _hinge(stage, "/Hinge", "/Base", "/Arm", (1, 0, 0))
    scene = read_usd(stage)
    base = next(body for body in scene.bodies if body.name == "/Base")
    assert base.mass == 1.0 and base.inertia is not None and _assumed(scene, "/Base", "physics:mass")


def test_massless_body_fixed_to_another_stays_massless():
    stage = _stage()
    _cube(stage, "/Arm", 0.2, body=True)
    _body(stage, "/Tool")
    joint = UsdPhysics.FixedJoint.Define(stage, "/Weld")
    joint.GetBody0Rel().SetTargets(["/Arm"])
    joint.GetBody1Rel().SetTargets(["/Tool"])
    tool = next(body for body in read_usd(stage).bodies if body.name == "/Tool")
    assert tool.mass is None


def _mesh(stage, *, order=1, handed="rightHanded", faces=6):
    mesh = UsdGeom.Mesh.Define(stage, "/Mesh")
    mesh.GetPointsAttr().Set(_CORNERS)
    mesh.GetFaceVertexCountsAttr().Set([4] * faces)
    mesh.GetFaceVertexIndicesAttr().Set([i for k in range(faces) for i in _SIDES[4 * k : 4 * k + 4][::order]])
    mesh.GetOrientationAttr().Set(handed)
    UsdPhysics.RigidBodyAPI.Apply(mesh.GetPrim())
    UsdPhysics.CollisionAPI.Apply(mesh.GetPrim())
    return mesh


@pytest.mark.parametrize("approximation", ["none", "convexHull", "sdf"])
@pytest.mark.parametrize(
    ("order", "handed", "turned"), [(1, "rightHanded", 0), (-1, "rightHanded", 1), (1, "leftHanded", 1)]
)
def test_mesh_turned_inside_out_is_turned_back(approximation, order, handed, turned):
    stage = _stage()
    mesh = _mesh(stage, order=order, handed=handed)
    UsdPhysics.MeshCollisionAPI.Apply(mesh.GetPrim()).GetApproximationAttr().Set(approximation)
    scene = read_usd(stage)
    model = compile_model(scene)
    Derivation(model).run()
    np.testing.assert_allclose(model.body.mass.numpy()[0, 1], 8000.0)
    assert len(_assumed(scene, "/Mesh", "faceVertexIndices")) == turned


def test_open_mesh_is_not_turned():
    stage = _stage()
    _mesh(stage, order=-1, faces=5)
    assert not _assumed(read_usd(stage), "/Mesh", "faceVertexIndices")


def _robot():
    """As Isaac exports: root on a link, a body nested in another, PhysX joint settings, a mimic joint."""
    stage = _stage()
    base = _body(stage, "/R/base")
    UsdPhysics.ArticulationRootAPI.Apply(base.GetPrim())
    _body(stage, "/R/base/upper", (1, 0, 0))
    _body(stage, "/R/lower", (2, 0, 0))
    for path in ("/R/base", "/R/base/upper", "/R/lower"):
        _cube(stage, f"{path}/hull", 0.2)
    upper = _hinge(stage, "/R/joints/upper", "/R/base", "/R/base/upper", (1, 0, 0))
    upper.AddAppliedSchema("PhysxJointAPI")
    for name, value in (("armature", 0.1), ("jointFriction", 0.2), ("maxJointVelocity", 100.0)):
        upper.CreateAttribute(f"physxJoint:{name}", Sdf.ValueTypeNames.Float).Set(value)
    lower = _hinge(stage, "/R/joints/lower", "/R/base/upper", "/R/lower", (1, 0, 0))
    lower.AddAppliedSchema("PhysxMimicJointAPI:rotY")
    stem = "physxMimicJoint:rotY:"
    lower.CreateRelationship(f"{stem}referenceJoint").SetTargets(["/R/joints/upper"])
    lower.CreateAttribute(f"{stem}referenceJointAxis", Sdf.ValueTypeNames.Token).Set("rotY")
    lower.CreateAttribute(f"{stem}gearing", Sdf.ValueTypeNames.Float).Set(-2.0)
    lower.CreateAttribute(f"{stem}offset", Sdf.ValueTypeNames.Float).Set(10.0)
    return stage


def test_isaac_robot_is_read_whole():
    scene = read_usd(_robot(), strict=True)
    assert {body.name: body.parent for body in scene.bodies} == {
        "/R/base": None,
        "/R/base/upper": "/R/base",
        "/R/lower": "/R/base/upper",
    }
    upper = next(joint for joint in scene.joints if joint.name == "/R/joints/upper")
    assert upper.armature == pytest.approx(0.1) and upper.friction_loss == pytest.approx(0.2)
    (mimic,) = scene.equalities
    assert (mimic.a, mimic.b) == ("/R/joints/lower", "/R/joints/upper")
    np.testing.assert_allclose(mimic.polynomial, [np.radians(-10), 2, 0, 0, 0], atol=1e-12)


def test_mimic_joint_follows_its_leader():
    scene = read_usd(_robot())
    scene.options.gravity = np.zeros(3)
    q = ws.Simulator(scene).rollout(steps=400).numpy("q")[-1].reshape(-1)
    assert abs(q[7]) > 1e-3  # the offset pulls both
    assert q[8] == pytest.approx(2 * q[7] - np.radians(10), abs=2e-3)


def test_instances_collide_where_they_stand():
    stage = _stage()
    stage.CreateClassPrim("/_Part")
    _cube(stage, "/_Part/Box", 0.4)
    for k in range(2):
        _body(stage, f"/Link{k}", (2 * k, 0, 0))
        part = stage.DefinePrim(f"/Link{k}/collisions")
        part.GetReferences().AddInternalReference("/_Part")
        part.SetInstanceable(True)
    scene = read_usd(stage, strict=True)
    assert [(shape.name, shape.body) for shape in scene.shapes] == [
        (f"/Link{k}/collisions/Box", f"/Link{k}") for k in range(2)
    ]
    np.testing.assert_allclose(scene.bodies[1].position, [2, 0, 0])


def test_xform_with_collision_api_within_an_instance():
    stage = _stage()
    stage.CreateClassPrim("/_Part")
    UsdPhysics.CollisionAPI.Apply(UsdGeom.Xform.Define(stage, "/_Part/Group").GetPrim())
    _cube(stage, "/_Part/Group/Box", 0.4, collider=False)
    _body(stage, "/Link")
    part = stage.DefinePrim("/Link/collisions")
    part.GetReferences().AddInternalReference("/_Part")
    part.SetInstanceable(True)
    (shape,) = read_usd(stage).shapes
    assert (shape.name, shape.body) == ("/Link/collisions/Group/Box", "/Link")
