"""What USD composes: references, payloads, variants, instances, time samples; and odd geometry."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade

from shape_mass import solid
from warpsim.core.errors import SceneError
from warpsim.io.usd import author
from warpsim.io.usd.reader import read_usd


@pytest.fixture
def part(tmp_path):
    """A file with one jointed robot."""
    stage = author.new_stage()
    base = author.body(author.world(stage), "Base", mass=1, articulation_root=True)
    arm = author.body(base, "Arm", position=(0, 0, 1))
    author.sphere(arm, "Ball", 0.25)
    author.revolute(arm, "Joint", base, arm, "Y")
    path = tmp_path / "part.usda"
    author.save(stage, path)
    return path


def assembly(tmp_path, build):
    path = tmp_path / "assembly.usda"
    author.save(author.new_stage(), path)
    stage = Usd.Stage.Open(str(path))
    build(author.world(stage))
    stage.GetRootLayer().Save()
    return path


@pytest.mark.parametrize("instanceable", [False, True])
def test_referenced_robots(tmp_path, part, instanceable):
    def build(world):
        for name, x in (("Left", -1), ("Right", 1)):
            author.reference(world, name, "./part.usda", position=(x, 0, 0), instanceable=instanceable)

    scene = read_usd(assembly(tmp_path, build), strict=True)
    assert [body.name for body in scene.bodies] == [
        f"/World/{side}/{name}" for side in ("Left", "Right") for name in ("Base", "Base/Arm")
    ]
    np.testing.assert_allclose(scene.bodies[2].position, [1, 0, 0])
    assert scene.joints[3].name == "/World/Right/Base/Arm/Joint"


def test_payload(tmp_path, part):
    def build(world):
        prim = author.frame(world, "Robot")
        prim.GetPayloads().AddPayload("./part.usda")

    assert len(read_usd(assembly(tmp_path, build), strict=True).bodies) == 2


def test_missing_files_and_unloaded_payloads_are_reported(tmp_path, part):
    def build(world):
        author.reference(world, "Gone", "./gone.usda")
        author.frame(world, "Robot").GetPayloads().AddPayload("./part.usda")

    path = assembly(tmp_path, build)
    scene = read_usd(path)
    assert any("gone.usda" in entry.reason and entry.status == "unsupported" for entry in scene.ledger)
    stage = Usd.Stage.Open(str(path), Usd.Stage.LoadNone)
    assert any(entry.path == "/World/Robot" and entry.attribute == "payload" for entry in read_usd(stage).ledger)


def test_variants_choose():
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body")
    ball = author.sphere(body, "Ball", 0.25)
    variants = body.GetVariantSets().AddVariantSet("load")
    for name, mass in (("light", 1.0), ("heavy", 8.0)):
        variants.AddVariant(name)
        variants.SetVariantSelection(name)
        with variants.GetVariantEditContext():
            UsdPhysics.MassAPI.Apply(ball).CreateMassAttr(mass)
    for name, mass in (("light", 1.0), ("heavy", 8.0)):
        variants.SetVariantSelection(name)
        assert read_usd(stage, strict=True).shapes[0].mass == mass


def test_inactive_prims_and_overs_are_not_read():
    stage = author.new_stage()
    author.body(author.world(stage), "Kept", mass=1)
    author.body(author.world(stage), "Gone", mass=1).SetActive(False)
    stage.OverridePrim("/World/Ghost")
    assert [body.name for body in read_usd(stage, strict=True).bodies] == ["/World/Kept"]


def test_time_samples():
    """Only samples: the earliest, or the time asked for; a default beside samples wins when no time is asked for."""
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body", mass=1)
    velocity = UsdPhysics.RigidBodyAPI(body).CreateVelocityAttr()
    translate = body.GetAttribute("xformOp:translate")
    translate.Clear()
    for time, x in ((1.0, 2.0), (3.0, 6.0)):
        velocity.Set(Gf.Vec3f(x, 0, 0), time)
        translate.Set(Gf.Vec3d(10 * x, 0, 0), time)
    for time, x in ((None, 2.0), (1.0, 2.0), (2.0, 4.0), (3.0, 6.0)):
        scene = read_usd(stage, strict=True, time=time)
        assert scene.joints[0].initial_qd[0] == x
        assert scene.bodies[0].position[0] == 10 * x
    translate.Set(Gf.Vec3d(-1, 0, 0))
    assert read_usd(stage, strict=True).bodies[0].position[0] == -1


def test_inherited_material():
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body")
    author.bind(body, author.material(author.world(stage), "Ice", friction=0.05))
    author.sphere(body, "Ball", 0.25)
    assert read_usd(stage, strict=True).shapes[0].friction[0] == pytest.approx(0.05)


def test_visual_material_is_not_physics():
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body")
    ball = author.sphere(body, "Ball", 0.25)
    look = UsdShade.Material.Define(stage, "/World/Look")
    UsdShade.MaterialBindingAPI.Apply(ball).Bind(look)
    assert read_usd(stage, strict=True).shapes[0].friction[0] == 1.0


def tetrahedron(parent, **options):
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    return author.mesh(parent, "Mesh", points, faces, **options)


def signed_volume(scene):
    mesh = next(iter(scene.meshes.values()))
    return solid("mesh", (1, 1, 1), mesh.vertices, mesh.faces)[0]


@pytest.mark.parametrize("scale", [(1, 1, 1), (2, 3, 0.5), (-1, 1, 1), (-1, -2, -1)])
@pytest.mark.parametrize("orientation", ["rightHanded", "leftHanded"])
def test_mirrored_and_scaled_meshes_face_outwards(scale, orientation):
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body")
    prim = tetrahedron(body, scale=scale, approximation="none")
    UsdGeom.Mesh(prim).CreateOrientationAttr(orientation)
    if orientation == "leftHanded":
        indices = np.array(UsdGeom.Mesh(prim).GetFaceVertexIndicesAttr().Get()).reshape(-1, 3)[:, ::-1]
        UsdGeom.Mesh(prim).GetFaceVertexIndicesAttr().Set(indices.ravel().tolist())
    scene = read_usd(stage, strict=True)
    shape, mesh = scene.shapes[0], next(iter(scene.meshes.values()))
    assert signed_volume(scene) == pytest.approx(abs(np.prod(scale)) / 6)
    world = UsdGeom.XformCache().GetLocalToWorldTransform(prim)
    turn = Gf.Rotation(Gf.Quatd(*map(float, shape.rotation)))
    for point, vertex in zip(UsdGeom.Mesh(prim).GetPointsAttr().Get(), mesh.vertices, strict=True):
        found = np.array(turn.TransformDir(Gf.Vec3d(*vertex))) + shape.position
        np.testing.assert_allclose(found, np.array(world.Transform(Gf.Vec3d(point))), atol=1e-6)


def test_quads_and_polygons_are_triangulated():
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body", mass=1, inertia=(1, 1, 1))
    mesh = UsdGeom.Mesh.Define(stage, body.GetPath().AppendChild("Mesh"))
    mesh.CreatePointsAttr([(0, 0, 0), (1, 0, 0), (2, 1, 0), (1, 2, 0), (0, 1, 0), (0, 0, 1)])
    mesh.CreateFaceVertexCountsAttr([5, 4, 3])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3, 4, 0, 1, 2, 5, 3, 4, 5])
    UsdPhysics.CollisionAPI.Apply(mesh.GetPrim())
    faces = next(iter(read_usd(stage).meshes.values())).faces
    assert faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 1, 2], [0, 2, 5], [3, 4, 5]]


@pytest.mark.parametrize(
    ("approximation", "kind", "status"),
    [
        ("none", "mesh", "used"),
        ("sdf", "mesh", "used"),
        ("convexHull", "hull", "used"),
        ("meshSimplification", "mesh", "used"),
        ("boundingCube", "box", "used"),
        ("boundingSphere", "sphere", "used"),
        ("convexDecomposition", "mesh", "used"),
        ("nonsense", "mesh", "unsupported"),
    ],
)
def test_approximations(approximation, kind, status):
    stage = author.new_stage()
    tetrahedron(author.body(author.world(stage), "Body"), approximation=approximation)
    scene = read_usd(stage)
    assert scene.shapes[0].kind == kind
    assert [e.status for e in scene.ledger if e.attribute == "physics:approximation"] == [status]
    if kind == "box":
        np.testing.assert_allclose(scene.shapes[0].size, 0.5)
        np.testing.assert_allclose(scene.shapes[0].position, 0.5)


@pytest.mark.parametrize("axis", ["X", "Y", "Z"])
def test_cone_under_a_mirror_points_the_mirrored_way(axis):
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body")
    author.cone(body, "Cone", 0.5, 2.0, axis=axis, scale=tuple(-1.0 if token == axis else 1.0 for token in "XYZ"))
    (shape,) = read_usd(stage, strict=True).shapes
    apex = np.array(Gf.Rotation(Gf.Quatd(*map(float, shape.rotation))).TransformDir(Gf.Vec3d(0, 0, 1)))
    np.testing.assert_allclose(apex, -np.eye(3)["XYZ".index(axis)], atol=1e-12)


def test_uneven_scale_of_round_shapes_takes_the_largest_and_says_so():
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body")
    author.cylinder(body, "Can", 0.5, 2.0, scale=(1, 2, 3))
    scene = read_usd(stage)
    np.testing.assert_allclose(scene.shapes[0].size, [1.0, 3.0, 0])
    assert any(entry.status == "unsupported" and "largest" in entry.reason for entry in scene.ledger)


def test_broken_meshes_are_refused():
    stage = author.new_stage()
    prim = tetrahedron(author.body(author.world(stage), "Body"))
    UsdGeom.Mesh(prim).GetFaceVertexIndicesAttr().Set([0, 1, 99] * 4)
    with pytest.raises(SceneError, match="/World/Body/Mesh"):
        read_usd(stage)


def test_gravity_sentinels():
    for values, expected in (
        ({}, (0, 0, -9.81)),
        ({"gravity": -1.0}, (0, 0, -9.81)),
        ({"gravity": 0.0}, (0, 0, 0)),
        ({"gravity": 3.0, "direction": (0, 0, 0)}, (0, 0, -3)),
        ({"gravity": 2.0, "direction": (3, 0, 4)}, (1.2, 0, 1.6)),
    ):
        stage = author.new_stage(meters_per_unit=1.0)
        author.physics_scene(stage, **values)
        np.testing.assert_allclose(read_usd(stage, strict=True).options.gravity, expected, atol=1e-12)


def test_second_physics_scene_is_reported():
    stage = author.new_stage()
    author.physics_scene(stage, gravity=1.0)
    UsdPhysics.Scene.Define(stage, "/World/Second").CreateGravityMagnitudeAttr(5.0)
    scene = read_usd(stage)
    np.testing.assert_allclose(scene.options.gravity, [0, 0, -1])
    assert any(entry.path == "/World/Second" and entry.status == "unsupported" for entry in scene.ledger)


def test_values_of_the_wrong_type_are_refused():
    stage = author.new_stage()
    author.body(author.world(stage), "Body", mass=1)
    layer = stage.GetRootLayer()
    spec = layer.GetPrimAtPath("/World/Body")
    del spec.properties["physics:mass"]
    Sdf.AttributeSpec(spec, "physics:mass", Sdf.ValueTypeNames.String).default = "heavy"
    with pytest.raises(SceneError, match="physics:mass"):
        read_usd(stage)
