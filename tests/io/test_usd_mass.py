"""The truth table of masses: closed forms to 1e-9, and UsdPhysics' own ComputeMassProperties."""

from __future__ import annotations

import numpy as np
import pytest
from pxr import Gf, UsdGeom, UsdPhysics

from shape_mass import body_mass, matrix, solid
from warpsim.core.errors import SceneError
from warpsim.io.usd import author
from warpsim.io.usd.reader import read_usd
from warpsim.scene.ledger import assumed

CUBE = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.25, 0.25) for z in (-0.125, 0.125)])
CUBE_FACES = np.array(
    [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4]]
    + [[1, 5, 7], [1, 7, 3]]
)
TURN = (0.5, 0.5, 0.5, 0.5)
"""A third of a turn about (1, 1, 1): exact in float32."""
SHAPES = {
    "box": lambda p, n, **o: author.box(p, n, (0.5, 0.25, 0.125), **o),
    "sphere": lambda p, n, **o: author.sphere(p, n, 0.25, **o),
    "capsule": lambda p, n, **o: author.capsule(p, n, 0.25, 1.5, axis="X", **o),
    "cylinder": lambda p, n, **o: author.cylinder(p, n, 0.25, 1.5, axis="Y", **o),
    "cone": lambda p, n, **o: author.cone(p, n, 0.25, 1.5, **o),
    "mesh": lambda p, n, **o: author.mesh(p, n, CUBE, CUBE_FACES, approximation="none", **o),
    "hull": lambda p, n, **o: author.mesh(p, n, CUBE, CUBE_FACES, approximation="convexHull", **o),
}
SIZES = {
    "box": (0.5, 0.25, 0.125),
    "sphere": (0.25, 0, 0),
    "capsule": (0.25, 0.75, 0),
    "cylinder": (0.25, 0.75, 0),
    "cone": (0.25, 0.75, 0),
    "mesh": (1, 1, 1),
    "hull": (1, 1, 1),
}
AXES = {"capsule": "X", "cylinder": "Y"}


def one_body(stage):
    scene = read_usd(stage)
    return scene, scene.bodies[0], body_mass(scene, scene.bodies[0])


def usd_mass(stage, path="/World/Body"):
    """What UsdPhysics computes, given each collider's volume and inertia by closed forms: (mass, com, inertia)."""
    scene = read_usd(stage)
    body = stage.GetPrimAtPath(path)
    shapes = {shape.name: shape for shape in scene.shapes}

    def information(prim):
        shape = shapes[str(prim.GetPath())]
        mesh = scene.meshes.get(shape.mesh)
        volume, center, inertia = solid(shape.kind, shape.size, *((mesh.vertices, mesh.faces) if mesh else ()))
        info = UsdPhysics.RigidBodyAPI.MassInformation()
        info.volume = volume
        info.centerOfMass = Gf.Vec3f(*map(float, center))
        info.inertia = Gf.Matrix3f(*inertia.ravel().tolist())
        info.localPos = Gf.Vec3f(*map(float, shape.position))
        info.localRot = Gf.Quatf(*map(float, shape.rotation))
        return info

    mass, diagonal, com, axes = UsdPhysics.RigidBodyAPI(body).ComputeMassProperties(information)
    turn = matrix([axes.GetReal(), *axes.GetImaginary()])
    return mass, np.array(com), turn @ np.diag(diagonal) @ turn.T


@pytest.mark.parametrize("kind", SHAPES)
def test_shapes_by_density(kind):
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body", position=(1, 2, 3), rotation=TURN)
    SHAPES[kind](body, "Shape", position=(0.5, 0, -0.25), rotation=TURN, density=512)
    scene, read, (mass, com, inertia) = one_body(stage)
    assert (read.mass, read.com, read.inertia) == (None, None, None)
    vertices, faces = (CUBE, CUBE_FACES) if kind in ("mesh", "hull") else (None, None)
    volume, center, unit_inertia = solid(kind, SIZES[kind], vertices, faces)
    turn = matrix(TURN) @ {"X": matrix((0.5**0.5, 0, 0.5**0.5, 0)), "Y": matrix((0.5**0.5, -(0.5**0.5), 0, 0))}.get(
        AXES.get(kind), np.eye(3)
    )
    assert mass == pytest.approx(512 * volume, rel=1e-9)
    np.testing.assert_allclose(com, np.array([0.5, 0, -0.25]) + turn @ center, atol=1e-9)
    np.testing.assert_allclose(inertia, 512 * turn @ unit_inertia @ turn.T, rtol=1e-9, atol=1e-9 * mass)
    theirs = usd_mass(stage)
    assert theirs[0] == pytest.approx(mass, rel=1e-6)
    np.testing.assert_allclose(theirs[1], com, atol=1e-6)
    np.testing.assert_allclose(theirs[2], inertia, atol=1e-5 * np.abs(inertia).max())


TABLE = {
    # (body mass, body density, material density), then (mass, density) of two boxes of 1 and 8 litres → their masses
    "default density": ((None, None, None), (None, None), (None, None), (1, 8)),
    "material density": ((None, None, 512), (None, None), (None, None), (0.512, 4.096)),
    "body over material": ((None, 256, 512), (None, None), (None, None), (0.256, 2.048)),
    "collider over body": ((None, 256, 512), (None, 128), (None, None), (0.128, 2.048)),
    "collider mass over density": ((None, 256, None), (3, 128), (None, None), (3, 2.048)),
    "both masses": ((None, None, None), (3, None), (5, None), (3, 5)),
    "zero means unset": ((0, 0, 0), (0, 0), (0, 0), (1, 8)),
    "body mass over all": ((18, 256, None), (None, None), (None, None), (2, 16)),
    "body mass scales collider masses": ((16, None, None), (3, None), (5, None), (6, 10)),
}


@pytest.mark.parametrize("case", TABLE)
def test_precedence(case):
    (mass, density, material_density), first, second, expected = TABLE[case]
    stage = author.new_stage()
    world = author.world(stage)
    material = author.material(world, "Material", density=material_density) if material_density is not None else None
    body = author.body(world, "Body", mass=mass)
    if density is not None:
        UsdPhysics.MassAPI.Apply(body)
        author.set_attribute(body, "physics:density", density)
    for name, half, x, (own_mass, own_density) in (("A", 0.05, 0.0, first), ("B", 0.1, 0.5, second)):
        author.box(body, name, (half,) * 3, position=(x, 0, 0), mass=own_mass, density=own_density, material=material)
    _, _, (found, com, inertia) = one_body(stage)
    a, b = expected
    arm = 0.5 * a * b / (a + b) * 0.5
    along, across = a * 0.1**2 / 6 + b * 0.2**2 / 6, a * 0.1**2 / 6 + b * 0.2**2 / 6 + arm
    tolerance = 1e-6  # of float32 attributes such as 0.128; masses that are exact are checked to 1e-9 below
    assert found == pytest.approx(a + b, rel=tolerance)
    np.testing.assert_allclose(com, [0.5 * b / (a + b), 0, 0], atol=tolerance)
    np.testing.assert_allclose(inertia, np.diag([along, across, across]), atol=tolerance * across)
    theirs = usd_mass(stage)
    assert theirs[0] == pytest.approx(found, rel=1e-6)
    np.testing.assert_allclose(theirs[1], com, atol=1e-6)
    np.testing.assert_allclose(theirs[2], inertia, atol=1e-5 * np.abs(inertia).max())


def test_explicit_values():
    stage = author.new_stage()
    author.body(
        author.world(stage),
        "Body",
        mass=2,
        center_of_mass=(0.25, 0, -0.5),
        inertia=(0.5, 0.75, 1.0),
        principal_axes=TURN,
    )
    _, body, (mass, com, inertia) = one_body(stage)
    turn = matrix(TURN)
    assert mass == body.mass == 2
    np.testing.assert_allclose(com, [0.25, 0, -0.5], atol=1e-12)
    np.testing.assert_allclose(inertia, turn @ np.diag([0.5, 0.75, 1.0]) @ turn.T, atol=1e-12)


def test_newton_inertia_overrides():
    stage = author.new_stage()
    values = (0.5, 0.75, 1.0, 0.01, -0.02, 0.03)
    author.body(author.world(stage), "Body", mass=2, inertia=(1, 1, 1), attributes={"newton:inertia": values})
    scene = read_usd(stage, strict=True)
    expected = [[0.5, 0.01, -0.02], [0.01, 0.75, 0.03], [-0.02, 0.03, 1.0]]
    np.testing.assert_array_equal(scene.bodies[0].inertia, expected)


def test_mass_without_inertia_or_collider_is_a_small_sphere():
    stage = author.new_stage()
    author.body(author.world(stage), "Body", mass=2)
    _, _, (mass, com, inertia) = one_body(stage)
    np.testing.assert_allclose(inertia, 0.008 * np.eye(3), rtol=1e-12)
    assert usd_mass(stage)[0] == mass
    np.testing.assert_allclose(usd_mass(stage)[2], inertia, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(com, 0)


def assumptions(stage) -> list[tuple[str, str]]:
    return [(entry.path, entry.attribute) for entry in assumed(read_usd(stage, strict=True).ledger)]


def test_inertia_that_is_assumed_is_told_where_it_matters():
    """Not of bodies that only slide, whose motion has no inertia in it, nor of those that are told how to move."""
    stage = author.new_stage()
    world = author.world(stage)
    free, hinged, sliding, carried = (
        author.body(world, name, mass=2) for name in ("Free", "Hinged", "Slide", "Carried")
    )
    author.body(world, "Known", mass=2, inertia=(1, 1, 1))
    author.sphere(author.body(world, "Solid", mass=2), "Ball", 0.1)
    author.body(world, "Led", mass=2, kinematic=True)
    author.revolute(world, "Hinge", None, hinged, axis="Y", anchor=(0, 0, 0))
    author.prismatic(world, "Rail", None, sliding, axis="X", anchor=(0, 0, 0))
    author.fixed(world, "Weld", free, carried)
    expected = [(f"/World/{name}", "physics:diagonalInertia") for name in ("Carried", "Free", "Hinged")]
    assert assumptions(stage) == expected
    author.set_attribute(free, "physics:diagonalInertia", (0, 0, 0))  # "not set"
    assert assumptions(stage) == expected
    for prim in (free, hinged, carried):
        author.set_attribute(prim, "physics:diagonalInertia", (1, 1, 1))
    assert assumptions(stage) == []


def test_scaled_body():
    """A scale on the body's prim is baked into its colliders, its center of mass and the frames of its joints."""
    stage = author.new_stage()
    scaled = author.frame(author.world(stage), "Scaled")
    UsdGeom.Xformable(scaled).AddScaleOp().Set(Gf.Vec3f(2, 2, 2))
    body = author.body(scaled, "Body", position=(1, 0, 0), mass=1, center_of_mass=(0.5, 0, 0), inertia=(1, 1, 1))
    author.sphere(body, "Ball", 0.25, position=(0, 0.5, 0))
    scene = read_usd(stage)
    np.testing.assert_allclose(scene.bodies[0].position, [2, 0, 0])
    np.testing.assert_allclose(scene.bodies[0].com, [1, 0, 0])
    np.testing.assert_allclose(scene.shapes[0].position, [0, 1, 0])
    assert scene.shapes[0].size[0] == pytest.approx(0.5)


def test_disabled_colliders_neither_weigh_nor_collide():
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body")
    author.sphere(body, "Kept", 0.25)
    author.sphere(body, "Off", 0.5, attributes={"physics:collisionEnabled": False})
    scene = read_usd(stage, strict=True)
    assert [shape.name for shape in scene.shapes] == ["/World/Body/Kept"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("physics:mass", -1.0),
        ("physics:mass", float("nan")),
        ("physics:diagonalInertia", (1, 1, 5)),
        ("physics:density", -3),
    ],
)
def test_unphysical_values_are_refused(name, value):
    stage = author.new_stage()
    body = author.body(author.world(stage), "Body", mass=1, inertia=(1, 1, 1))
    author.sphere(body, "Ball", 0.25)
    author.set_attribute(body, name, value)
    with pytest.raises(SceneError, match="/World/Body"):
        read_usd(stage)


def test_moving_body_without_mass_gets_one_and_the_ledger_says_so():
    stage = author.new_stage()
    author.body(author.world(stage), "Body")
    scene = read_usd(stage)
    assert scene.bodies[0].mass == 1.0
    assert ("/World/Body", "physics:mass", "assumed") in {(e.path, e.attribute, e.status) for e in scene.ledger}
