"""Bodies, colliders, materials, ground, collision filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pxr import Gf, Usd, UsdGeom, UsdPhysics, UsdShade, Vt

from warpsim.core.errors import InputError
from warpsim.io.usd.author.attributes import set_attributes
from warpsim.io.usd.author.stages import Vector, define, place


def body(
    parent: Usd.Prim,
    name: str,
    *,
    position: Vector = (0, 0, 0),
    rotation: Vector = (1, 0, 0, 0),
    mass: float | None = None,
    center_of_mass: Vector | None = None,
    inertia: Vector | None = None,
    principal_axes: Vector | None = None,
    velocity: Vector | None = None,
    angular_velocity: Vector | None = None,
    kinematic: bool = False,
    articulation_root: bool = False,
    attributes: Mapping[str, Any] | None = None,
) -> Usd.Prim:
    """A rigid body: an Xform with RigidBodyAPI and MassAPI. What is None follows from its colliders.

    Args:
        parent: Prim it goes under; its pose is relative to that.
        name: Of the prim.
        position: Stage units.
        rotation: (w, x, y, z).
        mass: Stage units.
        center_of_mass: In the body's frame.
        inertia: Principal moments about the center of mass.
        principal_axes: (w, x, y, z) of the principal axes in the body's frame; None: the body's own axes.
        velocity: Initial, in the body's frame, stage units per s.
        angular_velocity: Initial, in the body's frame, degrees per s.
        kinematic: Moves as its velocity says.
        articulation_root: Mark the root of a robot.
        attributes: More attributes by full name.
    """
    prim = define(parent, name, "Xform")
    place(prim, position, rotation)
    UsdPhysics.RigidBodyAPI.Apply(prim)
    if articulation_root:
        UsdPhysics.ArticulationRootAPI.Apply(prim)
    values = {
        "physics:mass": mass,
        "physics:centerOfMass": center_of_mass,
        "physics:diagonalInertia": inertia,
        "physics:principalAxes": (1, 0, 0, 0) if inertia is not None and principal_axes is None else principal_axes,
    }
    if any(value is not None for value in values.values()):
        UsdPhysics.MassAPI.Apply(prim)
        set_attributes(prim, values)
    set_attributes(prim, {"physics:velocity": velocity, "physics:angularVelocity": angular_velocity})
    set_attributes(prim, {"physics:kinematicEnabled": kinematic or None, **(attributes or {})})
    return prim


def _shape(
    parent: Usd.Prim,
    name: str,
    kind: str,
    sizes: Mapping[str, Any],
    *,
    position: Vector = (0, 0, 0),
    rotation: Vector = (1, 0, 0, 0),
    scale: Vector | None = None,
    density: float | None = None,
    mass: float | None = None,
    material: Usd.Prim | None = None,
    color: Vector | None = None,
    collides: bool = True,
    attributes: Mapping[str, Any] | None = None,
) -> Usd.Prim:
    """A geometry prim, by default a collider; see `box` for the arguments."""
    prim = define(parent, name, kind)
    place(prim, position, rotation, scale)
    set_attributes(prim, sizes)
    if color is not None:
        UsdGeom.Gprim(prim).CreateDisplayColorAttr(Vt.Vec3fArray([Gf.Vec3f(*map(float, color))]))
    if collides:
        UsdPhysics.CollisionAPI.Apply(prim)
    if density is not None or mass is not None:
        UsdPhysics.MassAPI.Apply(prim)
        set_attributes(prim, {"physics:density": density, "physics:mass": mass})
    if material is not None:
        bind(prim, material)
    set_attributes(prim, attributes or {})
    _set_extent(prim)
    return prim


def _set_extent(prim: Usd.Prim) -> None:
    boundable = UsdGeom.Boundable(prim)
    extent = UsdGeom.Boundable.ComputeExtentFromPlugins(boundable, Usd.TimeCode.Default())
    if extent:
        boundable.CreateExtentAttr(extent)


def box(parent: Usd.Prim, name: str, half_extents: Vector, **options: Any) -> Usd.Prim:
    """A box collider.

    Args:
        parent: The body it belongs to, or any prim for a static one.
        name: Of the prim.
        half_extents: Half edge lengths, stage units.
        options: position, rotation (w, x, y, z), density, mass, material (a prim), color, collides (False: only to be
            seen), attributes (by full name).
    """
    return _shape(parent, name, "Cube", {"size": 2.0}, scale=half_extents, **options)


def sphere(parent: Usd.Prim, name: str, radius: float, **options: Any) -> Usd.Prim:
    """A sphere collider; options as for `box`."""
    return _shape(parent, name, "Sphere", {"radius": radius}, **options)


def capsule(parent: Usd.Prim, name: str, radius: float, height: float, *, axis: str = "Z", **options: Any) -> Usd.Prim:
    """A capsule collider of the given height without its caps; options as for `box`."""
    return _shape(parent, name, "Capsule", {"radius": radius, "height": height, "axis": axis}, **options)


def cylinder(parent: Usd.Prim, name: str, radius: float, height: float, *, axis: str = "Z", **options: Any) -> Usd.Prim:
    """A cylinder collider; options as for `box`."""
    return _shape(parent, name, "Cylinder", {"radius": radius, "height": height, "axis": axis}, **options)


def cone(parent: Usd.Prim, name: str, radius: float, height: float, *, axis: str = "Z", **options: Any) -> Usd.Prim:
    """A cone collider with its apex along +axis, centered at half height; options as for `box`."""
    return _shape(parent, name, "Cone", {"radius": radius, "height": height, "axis": axis}, **options)


def ground(parent: Usd.Prim, name: str = "Ground", *, extent: float = 10.0, **options: Any) -> Usd.Prim:
    """A static plane through the parent's origin, up along the stage's up axis; drawn `extent` wide to each side."""
    axis = str(UsdGeom.GetStageUpAxis(parent.GetStage()))
    return _shape(parent, name, "Plane", {"axis": axis, "width": 2 * extent, "length": 2 * extent}, **options)


def mesh(
    parent: Usd.Prim,
    name: str,
    points: np.ndarray,
    faces: np.ndarray,
    *,
    approximation: str = "convexHull",
    **options: Any,
) -> Usd.Prim:
    """A triangle mesh collider; options as for `box`.

    Args:
        parent: The body it belongs to.
        name: Of the prim.
        points: (n, 3).
        faces: (m, 3) counterclockwise from outside.
        approximation: "convexHull", "convexDecomposition" (several hulls), "sdf" (the mesh itself, concave parts
            included), "boundingCube" …
        options: As for `box`.
    """
    faces = np.asarray(faces, dtype=np.int32)
    if faces.ndim != 2 or faces.shape[1] != 3:
        raise InputError(f"faces of mesh {name!r} must be (m, 3), not {faces.shape}")
    sizes = {
        "points": points,
        "faceVertexCounts": np.full(len(faces), 3),
        "faceVertexIndices": faces.ravel(),
        "subdivisionScheme": "none",
    }
    prim = _shape(parent, name, "Mesh", sizes, **options)
    if prim.HasAPI(UsdPhysics.CollisionAPI):
        UsdPhysics.MeshCollisionAPI.Apply(prim)
        set_attributes(prim, {"physics:approximation": approximation})
    return prim


def material(
    parent: Usd.Prim,
    name: str,
    *,
    friction: float | None = None,
    restitution: float | None = None,
    density: float | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Usd.Prim:
    """A physics material; `friction` is both static and dynamic."""
    prim = define(parent, name, "Material")
    UsdPhysics.MaterialAPI.Apply(prim)
    values = {
        "physics:staticFriction": friction,
        "physics:dynamicFriction": friction,
        "physics:restitution": restitution,
        "physics:density": density,
    }
    set_attributes(prim, {**values, **(attributes or {})})
    return prim


def bind(prim: Usd.Prim, material_prim: Usd.Prim) -> None:
    """Binds a physics material to a prim and everything below it."""
    api = UsdShade.MaterialBindingAPI.Apply(prim)
    api.Bind(UsdShade.Material(material_prim), UsdShade.Tokens.weakerThanDescendants, "physics")


def filter_pairs(prim: Usd.Prim, *others: Usd.Prim) -> None:
    """Keeps a body or collider from touching others."""
    relationship = UsdPhysics.FilteredPairsAPI.Apply(prim).CreateFilteredPairsRel()
    for other in others:
        relationship.AddTarget(other.GetPath())


def collision_group(
    parent: Usd.Prim,
    name: str,
    members: Sequence[Usd.Prim],
    *,
    filtered: Sequence[Usd.Prim] = (),
    inverted: bool = False,
    merge: str = "",
) -> Usd.Prim:
    """A collision group; its members do not touch those of the `filtered` groups (inverted: only those)."""
    prim = define(parent, name, "PhysicsCollisionGroup")
    group = UsdPhysics.CollisionGroup(prim)
    collection = group.GetCollidersCollectionAPI()
    for member in members:
        collection.IncludePath(member.GetPath())
    for other in filtered:
        group.CreateFilteredGroupsRel().AddTarget(other.GetPath())
    set_attributes(prim, {"physics:invertFilteredGroups": inverted or None, "physics:mergeGroup": merge or None})
    return prim
