"""Collider prims → `Shape`: kind, size with scale baked in, pose in the owning body's frame."""

from __future__ import annotations

import numpy as np
from pxr import Usd, UsdGeom, UsdPhysics

from warpsim.core.errors import SceneError
from warpsim.io.usd.context import Context
from warpsim.io.usd.extensions import lookup
from warpsim.io.usd.flat_meshes import is_sheet, thicken
from warpsim.io.usd.frames import Frame, Pose
from warpsim.io.usd.hulls import choose_hull_faces, choose_hull_vertices
from warpsim.io.usd.mass import set_shape_mass
from warpsim.io.usd.materials import bound_material, set_contact
from warpsim.io.usd.meshes import read_mesh
from warpsim.io.usd.physics_objects import Collider, PhysicsObjects
from warpsim.io.usd.pieces import take_apart
from warpsim.io.usd.units import axis_rotation
from warpsim.scene import Shape

DECOMPOSITION = "convexDecomposition"
_APPROXIMATIONS = {
    "none": "mesh",
    "sdf": "mesh",
    "meshSimplification": "mesh",
    "convexHull": "hull",
    DECOMPOSITION: "mesh",
    "boundingSphere": "sphere",
    "boundingCube": "box",
}
_FALLBACKS = {"size": 2.0, "radius": 1.0, "height": 2.0}
"""Of UsdGeom's schemas, for what a prim leaves unauthored; capsules have their own."""
ELLIPSOID = "warpsim:ellipsoid"
"""double3 on a Mesh: half axes of the ellipsoid that it stands for, which UsdGeom has no prim for."""
_CAPSULE_FALLBACKS = {"radius": 0.5, "height": 1.0}


def add_shape(context: Context, objects: PhysicsObjects, collider: Collider) -> None:
    """Adds a collider's shape to the scene."""
    prim, frame = collider.prim, context.frame(collider.prim)
    body = objects.bodies[collider.body] if collider.body is not None else None
    owner = context.frame(body).pose if body is not None else None
    shape = Shape(str(prim.GetPath()), collider.kind, str(collider.body) if body is not None else None)
    local = _size(context, prim, frame, shape)
    if frame.sheared and shape.kind not in ("mesh", "hull"):
        context.ledger.unsupported(prim, "xformOpOrder", "its world transform is sheared; the nearest rotation is used")
    pose = frame.pose @ local
    pose = pose if owner is None else owner.inverse() @ pose
    shape.position, shape.rotation = pose.position, pose.rotation
    material = bound_material(context, prim)
    set_contact(context, prim, material, shape)
    set_shape_mass(context, prim, material, body, shape)
    _appearance(context, prim, shape)
    if collider.kind == "plane" and body is not None:
        context.ledger.unsupported(prim, "PhysicsCollisionAPI", "planes must be static; this one belongs to a body")
        return
    context.scene.shapes.append(shape)
    if shape.kind in ("mesh", "hull") and body is None and is_sheet(context, shape):
        thicken(context, prim, shape)
    elif shape.kind == "hull":
        choose_hull_vertices(context, prim, shape)
        choose_hull_faces(context, prim, shape)
    elif shape.kind == "mesh" and _approximation(context, prim) == DECOMPOSITION:
        take_apart(context, prim, shape)


def _size(context: Context, prim: Usd.Prim, frame: Frame, shape: Shape) -> Pose:
    """Sets kind and size; returns the shape's pose in the prim's frame."""
    if shape.kind == "mesh":
        return _mesh_size(context, prim, frame, shape)
    unit, identity = context.units.length, np.array([1.0, 0.0, 0.0, 0.0])
    if shape.kind == "box":
        factor = 0.5 * unit * frame.scale
        shape.size = factor * _length(context, prim, "size")
        return Pose(np.zeros(3), identity)
    if shape.kind == "sphere":
        _even(context, prim, frame.scale)
        _set_length(context, prim, shape, 0, "radius", unit * frame.scale.max())
        return Pose(np.zeros(3), identity)
    token = context.read.value(prim, "axis", mark=False) or "Z"
    if token not in ("X", "Y", "Z"):
        raise SceneError(f"{prim.GetPath()}.axis is {token!r}; use X, Y or Z")
    local = Pose(np.zeros(3), axis_rotation(token))
    if shape.kind == "plane":
        for name in ("width", "length"):
            if prim.GetAttribute(name).HasAuthoredValue():
                context.ledger.ignored(prim, name, "planes collide without end")
        return local
    along = "XYZ".index(token)
    radial = np.delete(frame.scale, along)
    _even(context, prim, radial)
    _check_tapered(context, prim)
    _set_length(context, prim, shape, 0, "radius", unit * radial.max())
    _set_length(context, prim, shape, 1, "height", 0.5 * unit * frame.scale[along])
    return _unmirrored(frame, along, local)


def _unmirrored(frame: Frame, along: int, local: Pose) -> Pose:
    """A frame's pose has x turned back when mirrored; for shapes along x (a cone!) y is turned instead."""
    if frame.mirrored and along == 0:
        return Pose(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])) @ local
    return local


def _set_length(context: Context, prim: Usd.Prim, shape: Shape, place: int, name: str, factor: float) -> None:
    shape.size[place] = factor * _length(context, prim, name)


def _length(context: Context, prim: Usd.Prim, name: str) -> float:
    attribute = name if prim.GetAttribute(name) else {"radius": "radiusTop"}.get(name, name)
    value = context.read.number(prim, attribute, mark=False)
    if value is None:
        fallbacks = _CAPSULE_FALLBACKS if prim.IsA(UsdGeom.Capsule) or prim.IsA(UsdGeom.Capsule_1) else _FALLBACKS
        value = fallbacks[name]
    if value <= 0:
        raise SceneError(f"{prim.GetPath()}.{attribute} is {value}; a collider's sizes must be above zero")
    return value


def _check_tapered(context: Context, prim: Usd.Prim) -> None:
    top, bottom = (context.read.number(prim, name, mark=False) for name in ("radiusTop", "radiusBottom"))
    if top is not None and bottom is not None and top != bottom:
        context.ledger.unsupported(prim, "radiusBottom", "tapered shapes are not modeled; radiusTop is used for both")


def _even(context: Context, prim: Usd.Prim, scales: np.ndarray) -> None:
    """A round shape keeps its kind under an uneven scale, the largest counting, as UsdPhysics has it."""
    if scales.max() - scales.min() > 1e-6 * scales.max():
        context.ledger.unsupported(prim, "xformOpOrder", "scaled unevenly across its radius; the largest scale is used")


def _approximation(context: Context, prim: Usd.Prim) -> str:
    if not prim.HasAPI(UsdPhysics.MeshCollisionAPI):
        return "none"
    return context.read.token(prim, "physics:approximation") or "none"


def _mesh_size(context: Context, prim: Usd.Prim, frame: Frame, shape: Shape) -> Pose:
    identity = Pose(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))
    half_axes = context.read.vector(prim, ELLIPSOID, 3)
    if half_axes is not None:
        shape.kind, shape.size = "ellipsoid", context.units.length * frame.scale * half_axes
        context.ledger.ignored(prim, "physics:approximation", "the collider is an ellipsoid")
        return identity
    approximation = _approximation(context, prim)
    if approximation not in _APPROXIMATIONS:
        context.ledger.unsupported(
            prim, "physics:approximation", f"{approximation!r} is not known; the mesh itself collides"
        )
    elif approximation == "meshSimplification":
        context.ledger.used(prim, "physics:approximation", "the mesh itself collides")
    shape.kind = _APPROXIMATIONS.get(approximation, "mesh")
    mesh = read_mesh(context, prim, frame.pose)
    if shape.kind in ("mesh", "hull"):
        shape.mesh, shape.size = mesh.name, np.ones(3)
        context.scene.meshes[mesh.name] = mesh
        if approximation == DECOMPOSITION:
            return identity
        found = lookup(context, prim, "sdf_resolution")
        if found is not None:
            shape.sdf_resolution = int(found.value)
        return identity
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    center = 0.5 * (low + high)
    if shape.kind == "box":
        shape.size = 0.5 * (high - low)
    else:
        shape.size = np.array([np.linalg.norm(mesh.vertices - center, axis=1).max(), 0.0, 0.0])
    return Pose(center, identity.rotation)


def _appearance(context: Context, prim: Usd.Prim, shape: Shape) -> None:
    colors = context.read.value(prim, "primvars:displayColor", mark=False)
    if colors and len(colors) == 1:
        red, green, blue = map(float, colors[0])
        shape.color = (red, green, blue)
    guide = UsdGeom.Imageable(prim).ComputePurpose() == UsdGeom.Tokens.guide
    if guide or context.read.value(prim, "visibility", mark=False) == "invisible":
        shape.visible = False
