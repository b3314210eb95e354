"""Cloth, soft bodies and cables, and what holds them: the proposed deformable schemas, on ordinary geometry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, Vt

from warpsim.core.errors import InputError, unknown_name, whole_number
from warpsim.geometry.quadratic import split_faces, with_middles
from warpsim.io.usd.author.attributes import set_attributes
from warpsim.io.usd.author.bodies import bind
from warpsim.io.usd.author.stages import Vector, define, place

_CUBE = ((0, 1, 3, 7), (0, 3, 2, 7), (0, 2, 6, 7), (0, 6, 4, 7), (0, 4, 5, 7), (0, 5, 1, 7))
"""Six tetrahedra of a cube, whose corner i has the coordinates (i & 1, i >> 1 & 1, i >> 2)."""
_FORMS = {"Surface": "Mesh", "Volume": "TetMesh", "Curves": "BasisCurves"}


def deformable_material(
    parent: Usd.Prim,
    name: str,
    form: str,
    *,
    young: float | None = None,
    poisson: float | None = None,
    thickness: float | None = None,
    density: float | None = None,
    friction: float | None = None,
    damping: float | None = None,
    mass_damping: float | None = None,
    bending: float | None = None,
    contact_stiffness: float | None = None,
    contact_damping: float | None = None,
) -> Usd.Prim:
    """A material of deformables, in stage units.

    Args:
        parent: Prim it goes under.
        name: Of the prim.
        form: "Surface", "Volume" or "Curves".
        young: Young's modulus.
        poisson: Poisson's ratio.
        thickness: Of a surface; diameter of a curve.
        density: Mass per volume.
        friction: Coefficient, averaged with that of what is touched.
        damping: Viscosity over Young's modulus, s.
        mass_damping: What slows each point, per mass, 1/s.
        bending: What the bending stiffness that follows from the above is multiplied by.
        contact_stiffness: Of each point, force per length.
        contact_damping: Of each point, force per velocity.
    """
    prim = define(parent, name, "Material")
    _apply(prim, f"Physics{form}DeformableMaterialAPI")
    UsdPhysics.MaterialAPI.Apply(prim)
    own = {"youngsModulus": young, "poissonsRatio": poisson, "thickness": thickness}
    for attribute, value in own.items():
        _number(prim, f"physics:{attribute}", value)
    set_attributes(prim, {"physics:density": density, "physics:dynamicFriction": friction})
    set_attributes(prim, {"newton:contactStiffness": contact_stiffness, "newton:contactDamping": contact_damping})
    extra = {"stiffnessDamping": damping, "massDamping": mass_damping, "bendingScale": bending}
    for attribute, value in extra.items():
        _number(prim, f"warpsim:{attribute}", value, Sdf.ValueTypeNames.Double)
    return prim


_MATERIAL = tuple(signature(deformable_material).parameters)[3:]
_OPTIONS: tuple[str, ...] = (
    "position",
    "rotation",
    "color",
    "collides",
    "self_collision",
    "velocity",
    "angular_velocity",
)
_OPTIONS += ("velocities", "pinned")


def cloth(
    parent: Usd.Prim,
    name: str,
    size: Vector,
    cells: Sequence[int],
    *,
    points: np.ndarray | None = None,
    triangles: np.ndarray | None = None,
    rest_points: np.ndarray | None = None,
    rest_angles: Mapping[tuple[int, int], float] | str | None = None,
    **options: Any,
) -> Usd.Prim:
    """A cloth: a grid in its own xy plane about the origin, or any triangles.

    Args:
        parent: Prim it goes under.
        name: Of the prim.
        size: Along x and y, stage units.
        cells: Along x and y; point i · (cells y + 1) + j is the i-th along x and the j-th along y.
        points: (n, 3) of other triangles; size and cells do not count then.
        triangles: (m, 3).
        rest_points: (n, 3) its shape at rest; None: as it is at first.
        rest_angles: Degrees by which it is bent at rest, of pairs of triangles; positive bends both away from their
            normals' side. Or "shape": as its rest shape is bent. None: flat.
        **options: position, rotation (w, x, y, z), color, collides (True), self_collision (False), velocity and
            angular_velocity (degrees) of the whole at first, velocities of each point, pinned (points that a control
            moves), and those of `deformable_material`.
    """
    if points is None or triangles is None:
        points, triangles = grid(size, cells)
    prim = _define(parent, name, "Surface", points, options)
    mesh = UsdGeom.Mesh(prim)
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray([3] * len(triangles)))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(np.ravel(triangles).astype(np.int32)))
    mesh.CreateSubdivisionSchemeAttr("none")
    mesh.CreateDoubleSidedAttr(True)
    _rest(prim, rest_points)
    if isinstance(rest_angles, str):
        if rest_angles != "shape":
            raise InputError(f'{name}: rest_angles={rest_angles!r}; "shape", or degrees of pairs of triangles')
        kind = Sdf.ValueTypeNames.Token
        default = prim.CreateAttribute("physics:restBendAnglesDefault", kind, False, Sdf.VariabilityUniform)
        default.Set("restShapeDefault")
    elif rest_angles:
        pairs = Vt.Vec2iArray([Gf.Vec2i(*map(int, pair)) for pair in rest_angles])
        prim.CreateAttribute("physics:restAdjTriPairs", Sdf.ValueTypeNames.Int2Array, False).Set(pairs)
        angles = Vt.FloatArray([float(angle) for angle in rest_angles.values()])
        prim.CreateAttribute("physics:restBendAngles", Sdf.ValueTypeNames.FloatArray, False).Set(angles)
    return prim


def soft(
    parent: Usd.Prim,
    name: str,
    *,
    box: Vector | None = None,
    ball: float | None = None,
    cells: int | Sequence[int] = 4,
    points: np.ndarray | None = None,
    tetrahedra: np.ndarray | None = None,
    order: int = 1,
    rest_points: np.ndarray | None = None,
    **options: Any,
) -> Usd.Prim:
    """A soft body about its own origin: a box, a ball, or any tetrahedra.

    Args:
        parent: Prim it goes under.
        name: Of the prim.
        box: Edge lengths, stage units.
        ball: Radius, stage units.
        cells: Along each edge; one number or three.
        points: (n, 3) of other tetrahedra.
        tetrahedra: (m, 4), of positive volume; (m, 10) with the middles of their edges.
        rest_points: (n, 3) its shape at rest; None: as it is at first.
        order: 2 puts points in the middles of all edges and makes quadratic tetrahedra, which do not lock in shear.
        **options: As for `cloth`.
    """
    counts = (cells, cells, cells) if isinstance(cells, int) else tuple(cells)
    if points is None or tetrahedra is None:
        if (box is None) == (ball is None):
            raise InputError(f"{name}: give a box, a ball, or points and tetrahedra")
        edges = np.asarray(box if box is not None else ball, float)
        if not (edges > 0.0).all() or edges.shape not in ((), (3,)):
            raise InputError(f"{name}: box={box}, ball={ball}; edges and radii are positive")
        points, tetrahedra = lattice(counts)
        points = points * np.asarray(box, float) if box is not None else 2.0 * float(ball or 0.0) * _rounded(points)
    made = np.asarray(tetrahedra)
    if order not in (1, 2):
        raise InputError(f"{name}: order={order!r}; 1 (linear) or 2 (quadratic)")
    if order == 2 and made.shape[1] == 4:
        points, middles = with_middles(np.asarray(points, float), made)
        made = np.concatenate([made, middles], axis=1)
    prim = _define(parent, name, "Volume", points, options)
    mesh = UsdGeom.TetMesh(prim)
    mesh.CreateTetVertexIndicesAttr([Gf.Vec4i(*row) for row in made[:, :4].tolist()])
    faces = UsdGeom.TetMesh.ComputeSurfaceFaces(mesh, Usd.TimeCode.Default())
    if made.shape[1] > 4:
        middles = Vt.IntArray(made[:, 4:].ravel().tolist())
        prim.CreateAttribute("warpsim:midEdgeIndices", Sdf.ValueTypeNames.IntArray, False).Set(middles)
        faces = [Gf.Vec3i(*row) for row in split_faces(np.array(faces), made).tolist()]
    mesh.CreateSurfaceFaceVertexIndicesAttr(faces)
    _rest(prim, rest_points)
    return prim


def cable(parent: Usd.Prim, name: str, points: np.ndarray, **options: Any) -> Usd.Prim:
    """A cable through points, straight at rest between each two.

    Args:
        parent: Prim it goes under.
        name: Of the prim.
        points: (n, 3) in order, stage units.
        **options: As for `cloth`; thickness is the diameter.
    """
    points = np.asarray(points, float)
    given = options.get("thickness")
    thickness = 0.01 / UsdGeom.GetStageMetersPerUnit(parent.GetStage()) if given is None else given
    prim = _define(parent, name, "Curves", points, {**options, "thickness": thickness})
    curves = UsdGeom.BasisCurves(prim)
    curves.CreateTypeAttr("linear")
    curves.CreateCurveVertexCountsAttr(Vt.IntArray([len(points)]))
    curves.CreateWidthsAttr(Vt.FloatArray([float(thickness)]))
    curves.SetWidthsInterpolation(UsdGeom.Tokens.constant)
    return prim


def attach(
    deformable: Usd.Prim,
    name: str,
    points: Sequence[int],
    to: Usd.Prim | None = None,
    *,
    places: np.ndarray | None = None,
    stiffness: float | None = None,
    damping: float | None = None,
) -> Usd.Prim:
    """Holds points of a deformable where they are on a body, or in the world.

    Args:
        deformable: A cloth, soft body or cable.
        name: Of the attachment's prim, next to the deformable.
        points: Which.
        to: A body, or any prim; None: the world.
        places: (n, 3) where on `to`, in its frame; None: where the points are.
        stiffness: Of each point's spring, force per length; None: held hard.
        damping: Likewise, force per velocity.
    """
    prim = define(deformable.GetParent(), name, "PhysicsAttachment")
    prim.CreateRelationship("physics:src0", custom=False).SetTargets([deformable.GetPath()])
    tokens = Sdf.ValueTypeNames.Token
    prim.CreateAttribute("physics:type0", tokens, False, Sdf.VariabilityUniform).Set("point")
    prim.CreateAttribute("physics:type1", tokens, False, Sdf.VariabilityUniform).Set("xform")
    prim.CreateAttribute("physics:indices0", Sdf.ValueTypeNames.IntArray, False).Set(Vt.IntArray(list(points)))
    if to is not None:
        prim.CreateRelationship("physics:src1", custom=False).SetTargets([to.GetPath()])
    if places is not None:
        rows = Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(places, np.float32))
        prim.CreateAttribute("physics:coords1", Sdf.ValueTypeNames.Vector3fArray, False).Set(rows)
    _number(prim, "physics:stiffness", stiffness)
    _number(prim, "physics:damping", damping)
    return prim


def point_place(deformable: Usd.Prim, name: str, point: int) -> Usd.Prim:
    """A place that tasks can name: a point of a deformable."""
    prim = define(deformable, name, "Scope")
    prim.CreateAttribute("warpsim:point", Sdf.ValueTypeNames.Int).Set(int(point))
    return prim


def grid(size: Vector, cells: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Points and triangles of a rectangle about the origin, diagonals alternating."""
    if len(cells) != 2 or len(size) != 2 or not all(0.0 < edge < np.inf for edge in size):
        raise InputError(f"size={size} and cells={cells}: a rectangle has two positive edges and two numbers of cells")
    nx, ny = (whole_number("cells", count) + 1 for count in cells)
    x, y = np.meshgrid(
        np.linspace(-size[0] / 2, size[0] / 2, nx), np.linspace(-size[1] / 2, size[1] / 2, ny), indexing="ij"
    )
    triangles = []
    for i in range(nx - 1):
        for j in range(ny - 1):
            a, b, c, d = i * ny + j, i * ny + j + 1, (i + 1) * ny + j, (i + 1) * ny + j + 1
            triangles += [[a, c, d], [a, d, b]] if (i + j) % 2 == 0 else [[a, c, b], [b, c, d]]
    return np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1), np.array(triangles)


def lattice(cells: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Points and tetrahedra of the unit cube about the origin, each cell cut in six, mirrored from cell to cell."""
    if len(cells) != 3:
        raise InputError(f"cells={cells}: give one number, or one for each of three edges")
    counts = [whole_number("cells", n) + 1 for n in cells]
    axes = [np.linspace(-0.5, 0.5, n) for n in counts]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    tetrahedra = []
    for cell in np.ndindex(*(n - 1 for n in counts)):
        odd = [c % 2 for c in cell]
        corner = [
            np.ravel_multi_index([c + ((k >> a & 1) ^ odd[a]) for a, c in enumerate(cell)], counts) for k in range(8)
        ]
        tetrahedra += [[corner[k] for k in tet] for tet in _CUBE]
    made = np.array(tetrahedra)
    inverted = np.linalg.det(points[made[:, 1:]] - points[made[:, :1]]) < 0
    made[inverted] = made[inverted][:, [0, 2, 1, 3]]
    return points, made


def _rounded(points: np.ndarray) -> np.ndarray:
    """The cube about the origin mapped to a ball of diameter 1, evenly: shells of cubes become shells of balls."""
    x, y, z = (2.0 * points).T
    scale = [np.sqrt(1 - (b**2 + c**2) / 2 + b**2 * c**2 / 3) for b, c in ((y, z), (z, x), (x, y))]
    return 0.5 * np.stack([x * scale[0], y * scale[1], z * scale[2]], axis=1)


def _define(parent: Usd.Prim, name: str, form: str, points: np.ndarray, options: dict[str, Any]) -> Usd.Prim:
    """The geometry with schemas, pose, looks, velocities and a material of its own."""
    rest = dict(options)
    for option in rest:
        if option not in (*_OPTIONS, *_MATERIAL):
            raise unknown_name(f"option of {name}", option, [*_OPTIONS, *_MATERIAL])
    if np.ndim(points) != 2 or np.shape(points)[-1] != 3:
        raise InputError(f"{name}: points have shape {np.shape(points)}; needed: (n, 3)")
    prim = define(parent, name, _FORMS[form])
    place(prim, rest.pop("position", (0, 0, 0)), rest.pop("rotation", (1, 0, 0, 0)))
    _apply(prim, "PhysicsDeformableBodyAPI")
    _apply(prim, f"Physics{form}DeformableSimAPI")
    if rest.pop("collides", True):
        UsdPhysics.CollisionAPI.Apply(prim)
    if rest.pop("self_collision", False):
        prim.CreateAttribute("newton:selfCollisionEnabled", Sdf.ValueTypeNames.Bool, custom=False).Set(True)
    based, local = UsdGeom.PointBased(prim), np.ascontiguousarray(points, np.float32)
    based.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(local))
    based.CreateExtentAttr(Vt.Vec3fArray.FromNumpy(np.stack([local.min(0), local.max(0)])))
    color = rest.pop("color", None)
    if color is not None:
        UsdGeom.Gprim(prim).CreateDisplayColorAttr(Vt.Vec3fArray([Gf.Vec3f(*map(float, color))]))
    velocities = rest.pop("velocities", None)
    if velocities is not None:
        based.CreateVelocitiesAttr(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(velocities, np.float32)))
    for attribute, key in (("velocity", "velocity"), ("angularVelocity", "angular_velocity")):
        value = rest.pop(key, None)
        if value is not None:
            kind = Sdf.ValueTypeNames.Vector3d
            prim.CreateAttribute(f"warpsim:{attribute}", kind, False).Set(Gf.Vec3d(*map(float, value)))
    pinned = rest.pop("pinned", None)
    if pinned is not None:
        prim.CreateAttribute("warpsim:pinned", Sdf.ValueTypeNames.IntArray, False).Set(Vt.IntArray(list(pinned)))
    bind(prim, deformable_material(prim, "Material", form, **rest))
    return prim


def _rest(prim: Usd.Prim, points: np.ndarray | None) -> None:
    if points is not None:
        rows = Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(points, np.float32))
        prim.CreateAttribute("physics:restShapePoints", Sdf.ValueTypeNames.Point3fArray, False).Set(rows)


def _apply(prim: Usd.Prim, schema: str) -> None:
    """No plugin knows these schemas, so USD's own `Apply` would refuse them."""
    prim.AddAppliedSchema(schema)


def _number(prim: Usd.Prim, name: str, value: float | None, kind: Any = Sdf.ValueTypeNames.Float) -> None:
    if value is not None:
        prim.CreateAttribute(name, kind, custom=False).Set(float(value))
