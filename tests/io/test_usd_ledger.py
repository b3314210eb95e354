"""The ledger: every authored physics attribute has an entry, and strict reading refuses what is not modeled."""

from __future__ import annotations

import pytest
from pxr import Sdf, Tf, Usd, UsdGeom, UsdPhysics

from warpsim.core.errors import SceneError, UnsupportedError
from warpsim.io.usd import author
from warpsim.io.usd.reader import read_usd

PREFIXES = ("physics:", "newton:", "mjc:", "physx", "drive:", "limit:", "state:", "collection:colliders:")


def pendulum():
    stage = author.new_stage()
    author.physics_scene(stage, gravity=9.81)
    body = author.body(author.world(stage), "Body", mass=1)
    author.revolute(body, "Joint", None, body, "Y", drive={"stiffness": 1})
    return stage, body


def entry(scene, path, attribute):
    (found,) = [item for item in scene.ledger if item.path == path and item.attribute == attribute]
    return found


def authored(stage) -> set[tuple[str, str]]:
    return {
        (str(prim.GetPath()), item.GetName())
        for prim in stage.TraverseAll()
        for item in prim.GetAuthoredProperties()
        if item.GetName().startswith(PREFIXES)
    }


def test_every_attribute_has_one_entry(assets_dir):
    for path in sorted(assets_dir.glob("*/usd/*.usda")) + sorted((assets_dir / "newton").glob("*.usda")):
        from_stage = read_usd(path)
        listed = [(item.path, item.attribute) for item in from_stage.ledger]
        assert len(listed) == len(set(listed))
        stage = Usd.Stage.Open(str(path))
        assert authored(stage) <= set(listed), path


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("physx:whatever", Sdf.ValueTypeNames.Float, 1.0),
        ("newton:notYetInvented", Sdf.ValueTypeNames.Float, 1.0),
        ("mjc:unknown", Sdf.ValueTypeNames.Token, "x"),
        ("physics:linearVelocity", Sdf.ValueTypeNames.Vector3f, (1, 2, 3)),
        ("physxRigidBody:angularDamping", Sdf.ValueTypeNames.Float, 0.5),
    ],
)
def test_unknown_attributes_are_unsupported(name, kind, value):
    stage, body = pendulum()
    body.CreateAttribute(name, kind).Set(value)
    assert entry(read_usd(stage), "/World/Body", name).status == "unsupported"
    with pytest.raises(UnsupportedError, match=name):
        read_usd(stage, strict=True)


def test_harmless_values_are_ignored_with_a_reason():
    stage, body = pendulum()
    joint = stage.GetPrimAtPath("/World/Body/Joint")
    UsdPhysics.Joint(joint).CreateBreakForceAttr(3.4028235e38)
    body.CreateAttribute("physxRigidBody:angularDamping", Sdf.ValueTypeNames.Float).Set(0.0)
    UsdPhysics.RigidBodyAPI(body).CreateStartsAsleepAttr(True)
    scene = read_usd(stage, strict=True)
    for path, name in (
        ("/World/Body/Joint", "physics:breakForce"),
        ("/World/Body", "physxRigidBody:angularDamping"),
        ("/World/Body", "physics:startsAsleep"),
    ):
        found = entry(scene, path, name)
        assert found.status == "ignored"
        assert found.reason
    UsdPhysics.Joint(joint).GetBreakForceAttr().Set(10.0)
    assert entry(read_usd(stage), "/World/Body/Joint", "physics:breakForce").status == "unsupported"


def test_unknown_schemas_and_prims_are_unsupported():
    stage, body = pendulum()
    body.AddAppliedSchema("PhysxVehicleAPI")
    stage.DefinePrim("/World/Cloth", "PhysxDeformableBody")
    UsdGeom.PointInstancer.Define(stage, "/World/Rocks")
    scene = read_usd(stage)
    for path, attribute in (
        ("/World/Body", "PhysxVehicleAPI"),
        ("/World/Cloth", "PhysxDeformableBody"),
        ("/World/Rocks", "prototypes"),
    ):
        assert entry(scene, path, attribute).status == "unsupported"


def registered_schemas(of_physics: bool) -> list[str]:
    """Names of USD's own applied API schemas and concrete prim types."""
    registry = Usd.SchemaRegistry()
    kinds = Tf.Type(Usd.SchemaBase).GetAllDerivedTypes()
    names = {str(registry.GetSchemaTypeName(kind)) for kind in kinds} - {""}
    physics = {name for name in names if name.startswith("Physics")}
    return sorted(physics if of_physics else names - physics)


def misspelled(name: str) -> list[str]:
    """The last letter in the other case, one letter missing, one doubled, two exchanged, the prefix forgotten."""
    return [
        name[:-1] + name[-1].swapcase(),
        name[:9] + name[10:],
        name[:9] + name[8:],
        name[:7] + name[8] + name[7] + name[9:],
        name.removeprefix("Physics"),
    ]


@pytest.mark.parametrize("name", [n for n in registered_schemas(True) if n.endswith("API")])
def test_misspelled_api_schemas_are_listed_with_the_right_name(name):
    """USD drops them, so nothing else would say that they are there."""
    for wrong in misspelled(name):
        stage, body = pendulum()
        body.AddAppliedSchema(wrong)
        assert wrong not in body.GetAppliedSchemas()
        found = entry(read_usd(stage), "/World/Body", wrong)
        assert found.status == "unsupported"
        assert found.reason == f"this API schema is not read; the nearest one that is: {name}", wrong


def test_misspelled_prim_types_are_listed_with_the_right_name():
    for wrong in misspelled("PhysicsRevoluteJoint"):
        stage, _ = pendulum()
        stage.DefinePrim("/World/Hinge", wrong)
        found = entry(read_usd(stage), "/World/Hinge", wrong)
        assert found.status == "unsupported" and found.reason.endswith(": PhysicsRevoluteJoint")


def test_a_name_without_the_body_it_should_have_made(tmp_path):
    """In a referenced file, where apiSchemas of both layers count."""
    part, over = author.new_stage(), author.new_stage()
    wheel = author.frame(author.world(part), "Wheel")
    wheel.AddAppliedSchema("PhysicsRigidBodyAPi")
    author.save(part, tmp_path / "part.usda")
    author.reference(author.world(over), "Part", tmp_path / "part.usda")
    over.GetPrimAtPath("/World/Part/Wheel").AddAppliedSchema("NewtonFooAPI")
    scene = read_usd(over)
    assert scene.bodies == []
    for name in ("PhysicsRigidBodyAPi", "NewtonFooAPI"):
        assert entry(scene, "/World/Part/Wheel", name).status == "unsupported"


def test_schemas_that_are_not_of_physics_are_no_matter():
    """All that USD ships, and names made by others from physics schemas."""
    stage, body = pendulum()
    others = ["TensorPhysicsArticulationRootAPI", "IsaacJointAPI", "SemanticsAPI:label"]
    for name in (*registered_schemas(False), *others):
        body.AddAppliedSchema(name)
        stage.DefinePrim(f"/World/Of/{name.split(':')[0]}", name.split(":")[0])
    scene = read_usd(stage)
    listed = [item for item in scene.ledger if item.status == "unsupported"]
    assert [item for item in listed if item.attribute != "prototypes"] == []


@pytest.mark.parametrize(
    ("name", "reason"), [("PhysicsDriveAPI", "needs an instance"), ("PhysicsMassAPI:a", "takes no")]
)
def test_instance_names_where_they_belong(name, reason):
    stage, _ = pendulum()
    prim = author.frame(author.world(stage), "Other")
    prim.AddAppliedSchema(name)
    assert name not in prim.GetAppliedSchemas()
    assert reason in entry(read_usd(stage), "/World/Other", name).reason


def test_colliders_that_are_no_shapes_are_unsupported():
    stage, body = pendulum()
    curve = UsdGeom.BasisCurves.Define(stage, "/World/Body/Curve").GetPrim()
    UsdPhysics.CollisionAPI.Apply(curve)
    assert entry(read_usd(stage), "/World/Body/Curve", "PhysicsCollisionAPI").status == "unsupported"


def test_extension_order():
    """newton: before mjc: before physx; what is passed over says so."""
    stage, _ = pendulum()
    joint = stage.GetPrimAtPath("/World/Body/Joint")
    for name, value in (("physxJoint:armature", 3.0), ("mjc:armature", 2.0), ("newton:armature", 1.0)):
        joint.CreateAttribute(name, Sdf.ValueTypeNames.Float).Set(value)
        scene = read_usd(stage, strict=True)
        assert scene.joints[0].armature == value
        assert entry(scene, "/World/Body/Joint", name).status == "used"
    assert entry(scene, "/World/Body/Joint", "mjc:armature").reason == "newton:armature is used"


def test_static_friction_that_differs_is_reported():
    stage, body = pendulum()
    material = author.material(author.world(stage), "Ice", friction=0.5)
    author.sphere(body, "Ball", 0.1, material=material)
    assert entry(read_usd(stage, strict=True), "/World/Ice", "physics:staticFriction").status == "used"
    author.set_attribute(material, "physics:staticFriction", 0.9)
    scene = read_usd(stage)
    assert scene.shapes[0].friction[0] == 0.5
    assert entry(scene, "/World/Ice", "physics:staticFriction").status == "unsupported"


def test_missing_files_and_other_text_are_refused(tmp_path):
    with pytest.raises(SceneError, match="nothing.usda"):
        read_usd(tmp_path / "nothing.usda")
    (tmp_path / "bad.usda").write_text("not a stage")
    with pytest.raises(SceneError, match="bad.usda"):
        read_usd(tmp_path / "bad.usda")
