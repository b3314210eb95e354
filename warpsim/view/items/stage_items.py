"""A USD stage at a time code → items to draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade

from warpsim.core.errors import SceneError
from warpsim.core.numpy_quaternions import quat_to_matrix
from warpsim.io.usd.meshes import triangulate
from warpsim.io.usd.units import StageUnits, axis_rotation, stage_units
from warpsim.view.items.item import BOX, CAPSULE, ENDLESS, MESH, PLANE, SPHERE, TAPERED, Item, Look
from warpsim.view.items.soft_meshes import soft_triangles
from warpsim.view.items.stand_ins import bodies_without_looks
from warpsim.view.items.textures import base_texture, texture_coordinates
from warpsim.view.items.triangles import Triangles, make_triangles

DEFAULT_COLOR = (0.6, 0.6, 0.65)
_PURPOSES = (UsdGeom.Tokens.default_, UsdGeom.Tokens.render)
_DIFFUSE_INPUTS = ("diffuseColor", "diffuse_color_constant", "base_color")
"""Of UsdPreviewSurface, OmniPBR and MaterialX's standard surface."""
_TO_AXIS = {token: quat_to_matrix(axis_rotation(token)) for token in "XYZ"}
"""Axis token → rotation that turns z into that axis; it brings x and y to where USD has a plane's width and length."""


class StageReader:
    """Collects what is to be seen on a stage, at any number of times; meshes that stand still are read once."""

    def __init__(self, stage: Usd.Stage, *, colliders: bool = False, beside: StageReader | None = None) -> None:
        """Finds what is to be drawn.

        Args:
            stage: The stage.
            colliders: Read colliders instead of looks.
            beside: Another reader of the stage, with which meshes are shared.
        """
        self._stage = stage
        self._units: StageUnits = stage_units(stage)
        self._meshes: dict[str, Triangles | None] = {} if beside is None else beside._meshes
        self._colliders = colliders
        self._prims = [p for p in _drawable(stage) if _collides(p)] if colliders else self._shown()

    def items(self, time: Usd.TimeCode) -> list[Item]:
        """Everything visible with purpose default or render, in prim order, instances included.

        Bodies that show nothing, or next to nothing, are drawn by their colliders too, whatever the purpose of those.
        A reader of colliders finds all of these, hidden or not, and nothing else.

        Args:
            time: Of transforms, visibility, sizes, colors and points.
        """
        cache = UsdGeom.XformCache(time)
        visible = [prim for prim in self._prims if self._colliders or _visible(prim, time)]
        items = [self._item(prim, cache, time) for prim in visible]
        return [item for item in items if item is not None]

    def _shown(self) -> list[Usd.Prim]:
        """What purposes allow, and the colliders of bodies that would show too little of themselves."""
        time = Usd.TimeCode.EarliestTime()
        cache = UsdGeom.XformCache(time)
        prims = [(prim, _rigid_body(prim), _has_looks(prim)) for prim in _drawable(self._stage)]
        looks: list[tuple[Sdf.Path, np.ndarray]] = []
        colliders: list[tuple[Sdf.Path, np.ndarray]] = []
        for prim, body, drawn in prims:
            # Looks that are switched off for a while still stand for their body.
            counts = _visible(prim, time) or _blinks(prim) if drawn else _collides(prim)
            item = self._item(prim, cache, time) if body is not None and counts else None
            if item is not None:
                to_body = np.linalg.inv(self.to_world(self._stage.GetPrimAtPath(body), cache))
                corners = item.corners() @ to_body[:3, :3].T + to_body[:3, 3]
                (looks if drawn else colliders).append((body, corners))
        bare = bodies_without_looks(looks, colliders)
        return [prim for prim, body, drawn in prims if drawn or (body in bare and _collides(prim))]

    def _item(self, prim: Usd.Prim, cache: UsdGeom.XformCache, time: Usd.TimeCode) -> Item | None:
        to_world = self.to_world(prim, cache)
        mesh = None
        if prim.IsA(UsdGeom.Mesh) or prim.GetTypeName() in _SOFT:
            mesh = self._mesh(prim, time)
            if mesh is None:
                return None
            kind, size = MESH, np.zeros(3)
        else:
            kind, size = _SHAPES[prim.GetTypeName()](prim, time)
        axis = prim.GetAttribute("axis")
        if axis:
            to_world[:3, :3] = to_world[:3, :3] @ _TO_AXIS[axis.Get(time)]
        if kind == PLANE and prim.HasAPI(UsdPhysics.CollisionAPI):
            size = np.array([ENDLESS, ENDLESS, 0.0])  # physics has no end of it either
            to_world[:3, :3] /= np.linalg.norm(to_world[:3, :3], axis=0)
        body = _rigid_body(prim)
        owner = None if body is None else str(body)
        color, look = surface_look(prim, time)
        return Item(str(prim.GetPath()), kind, size, to_world, color, owner, mesh, look)

    def to_world(self, prim: Usd.Prim, cache: UsdGeom.XformCache) -> np.ndarray:
        """(4, 4) prim's frame, stage units → Z-up world, m."""
        to_world = np.array(cache.GetLocalToWorldTransform(prim)).T  # USD multiplies rows; columns are used here
        to_world[:3] = self._units.length * self._units.to_world @ to_world[:3]
        if not np.isfinite(to_world).all() or np.linalg.det(to_world[:3, :3]) == 0.0:
            raise SceneError(f"{prim.GetPath()}: its world transform is singular or not finite; check its xformOps")
        return to_world

    def _mesh(self, prim: Usd.Prim, time: Usd.TimeCode) -> Triangles | None:
        """A mesh's triangles; None if it has none. Instances share those of their prototype."""
        points = UsdGeom.PointBased(prim).GetPointsAttr()
        read = soft_triangles if prim.GetTypeName() in _SOFT else _read_mesh
        if points.ValueMightBeTimeVarying():
            return read(prim, time)
        shared = prim.GetPrimInPrototype() if prim.IsInstanceProxy() else prim
        key = str(shared.GetPath())
        if key not in self._meshes:
            self._meshes[key] = read(prim, time)
        return self._meshes[key]


def _drawable(stage: Usd.Stage) -> Iterator[Usd.Prim]:
    for prim in Usd.PrimRange(stage.GetPseudoRoot(), Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)):
        if prim.IsA(UsdGeom.Mesh) or prim.GetTypeName() in _SHAPES or prim.GetTypeName() in _SOFT:
            yield prim


def _collides(prim: Usd.Prim) -> bool:
    return prim.HasAPI(UsdPhysics.CollisionAPI)


def _has_looks(prim: Usd.Prim) -> bool:
    return UsdGeom.Imageable(prim).ComputePurpose() in _PURPOSES


def _visible(prim: Usd.Prim, time: Usd.TimeCode) -> bool:
    return UsdGeom.Imageable(prim).ComputeVisibility(time) != UsdGeom.Tokens.invisible


def _blinks(prim: Usd.Prim) -> bool:
    """Whether the visibility of the prim, or of one that it is under, changes with time."""
    while prim and not prim.IsPseudoRoot():
        if UsdGeom.Imageable(prim) and UsdGeom.Imageable(prim).GetVisibilityAttr().ValueMightBeTimeVarying():
            return True
        prim = prim.GetParent()
    return False


def _rigid_body(prim: Usd.Prim) -> Sdf.Path | None:
    """The body that a prim belongs to."""
    while prim and not prim.IsPseudoRoot():
        if prim.HasAPI(UsdPhysics.RigidBodyAPI):
            return prim.GetPath()
        prim = prim.GetParent()
    return None


def _numbers(prim: Usd.Prim, time: Usd.TimeCode, *names: str) -> list[float]:
    return [float(prim.GetAttribute(name).Get(time)) for name in names]


def _sphere(prim: Usd.Prim, time: Usd.TimeCode) -> tuple[int, np.ndarray]:
    return SPHERE, np.array([*_numbers(prim, time, "radius"), 0.0, 0.0])


def _cube(prim: Usd.Prim, time: Usd.TimeCode) -> tuple[int, np.ndarray]:
    return BOX, np.full(3, 0.5 * _numbers(prim, time, "size")[0])


def _capsule(prim: Usd.Prim, time: Usd.TimeCode) -> tuple[int, np.ndarray]:
    radius, height = _numbers(prim, time, "radius", "height")
    return CAPSULE, np.array([radius, 0.5 * height, 0.0])


def _cylinder(prim: Usd.Prim, time: Usd.TimeCode) -> tuple[int, np.ndarray]:
    radius, height = _numbers(prim, time, "radius", "height")
    return TAPERED, np.array([radius, radius, 0.5 * height])


def _tapered_cylinder(prim: Usd.Prim, time: Usd.TimeCode) -> tuple[int, np.ndarray]:
    bottom, top, height = _numbers(prim, time, "radiusBottom", "radiusTop", "height")
    return TAPERED, np.array([bottom, top, 0.5 * height])


def _cone(prim: Usd.Prim, time: Usd.TimeCode) -> tuple[int, np.ndarray]:
    radius, height = _numbers(prim, time, "radius", "height")
    return TAPERED, np.array([radius, 0.0, 0.5 * height])


def _plane(prim: Usd.Prim, time: Usd.TimeCode) -> tuple[int, np.ndarray]:
    width, length = _numbers(prim, time, "width", "length")
    return PLANE, np.array([0.5 * width, 0.5 * length, 0.0])


_SOFT = ("TetMesh", "BasisCurves", "Points")
"""Types of prims that are drawn as triangles made from them."""

_SHAPES: dict[str, Callable[[Usd.Prim, Usd.TimeCode], tuple[int, np.ndarray]]] = {
    "Sphere": _sphere,
    "Cube": _cube,
    "Capsule": _capsule,
    "Cylinder": _cylinder,
    "Cylinder_1": _tapered_cylinder,
    "Cone": _cone,
    "Plane": _plane,
}
"""Prim type → kind and size of the item, in the prim's own units."""


def _read_mesh(prim: Usd.Prim, time: Usd.TimeCode) -> Triangles | None:
    """Polygons as they are authored: subdivision surfaces are drawn as their cage."""
    mesh = UsdGeom.Mesh(prim)
    attributes = (mesh.GetPointsAttr(), mesh.GetFaceVertexCountsAttr(), mesh.GetFaceVertexIndicesAttr())
    points, counts, indices = (np.array(attribute.Get(time) or (), dtype=float) for attribute in attributes)
    if not len(points) or not len(counts):
        return None
    counts, indices = counts.astype(int), indices.astype(int)
    if (counts < 3).any() or counts.sum() != len(indices) or not ((0 <= indices) & (indices < len(points))).all():
        raise SceneError(f"{prim.GetPath()}: faceVertexCounts, faceVertexIndices and points do not fit together")
    texture = surface_look(prim, time)[1].texture
    placed = None if texture is None else texture_coordinates(prim, texture.primvar, indices, time)
    corners = triangulate(counts, np.arange(len(indices)))
    triangles = make_triangles(points, indices[corners], None if placed is None else placed[corners])
    return triangles if len(triangles.corners) else None


def surface_look(prim: Usd.Prim, time: Usd.TimeCode) -> tuple[np.ndarray, Look]:
    """(3,) linear RGB and the rest of a prim's look, from its material or displayColor."""
    shader = _surface(prim)
    return _color(prim, shader, time), _look(prim, shader, time)


def _surface(prim: Usd.Prim) -> UsdShade.Shader | None:
    """The surface shader of the bound material."""
    material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
    return (material.ComputeSurfaceSource()[0] or None) if material else None


def _color(prim: Usd.Prim, shader: UsdShade.Shader | None, time: Usd.TimeCode) -> np.ndarray:
    """(3,) linear RGB: the material's plain color, else the mean displayColor, else gray."""
    for name in _DIFFUSE_INPUTS if shader else ():
        value = _input(shader, name, time)
        if isinstance(value, Gf.Vec3f | Gf.Vec3d):
            return np.array(value)
    primvar = UsdGeom.PrimvarsAPI(prim).FindPrimvarWithInheritance("displayColor")
    values = primvar.Get(time) if primvar else None
    return np.array(values, dtype=float).mean(axis=0) if values else np.array(DEFAULT_COLOR)


def _look(prim: Usd.Prim, shader: UsdShade.Shader | None, time: Usd.TimeCode) -> Look:
    """Roughness, metallic and opacity of a UsdPreviewSurface, else displayOpacity; the rest is as everything else."""
    primvar = UsdGeom.PrimvarsAPI(prim).FindPrimvarWithInheritance("displayOpacity")
    shares = primvar.Get(time) if primvar else None
    plain = Look(opacity=float(np.mean(shares))) if shares else Look()
    if shader is None:
        return plain
    values = {name: _input(shader, name, time) for name in ("roughness", "metallic", "opacity")}
    numbers = {name: float(value) for name, value in values.items() if isinstance(value, float)}
    return replace(plain, **numbers, texture=base_texture(shader))


def _input(shader: UsdShade.Shader, name: str, time: Usd.TimeCode) -> Any:
    """The plain value of a shader's input; None: it has none."""
    source = shader.GetInput(name)
    for attribute in source.GetValueProducingAttributes() if source else ():
        value = attribute.Get(time)
        if value is not None:
            return value
    return None
