"""Meshes, tetrahedral meshes and curves with the deformable schemas → descriptions of matter."""

from __future__ import annotations

from typing import Any

import numpy as np
from pxr import Usd, UsdGeom

from warpsim.core.errors import SceneError
from warpsim.deformable.interpolation import QUADRATIC
from warpsim.deformable.parts import check_parts
from warpsim.deformable.topology import hinges
from warpsim.deformable.usd_angles import read_angles
from warpsim.deformable.usd_attachments import Held, read_attachments
from warpsim.deformable.usd_material import FAMILIES, bound_material, deformable_body, read_array, read_material
from warpsim.geometry.quadratic import split_faces
from warpsim.io.usd.context import Context
from warpsim.io.usd.ledger_scan import applied_apis
from warpsim.io.usd.meshes import authored_mesh
from warpsim.io.usd.units import DEGREE
from warpsim.scene.matters import MatterDescription

_FORMS = {"Surface": ("surface", "Mesh"), "Volume": ("volume", "TetMesh"), "Curves": ("curve", "BasisCurves")}
_COLOR = np.array([0.25, 0.45, 0.75])
_SELF_FLAGS = ("newton:selfCollisionEnabled", "physxDeformableBody:selfCollision")
_SELF_DISTANCE = 0.1
"""Distance at which a volume without a margin touches itself, over that between its points."""
_UNREAD = tuple(
    f"{family}:{name}"
    for family in FAMILIES
    for name in ("masses", "restNormals", "restTriVtxIndices", "restTriVertexIndices")
)


def form_of(prim: Usd.Prim) -> str:
    """What the simulated geometry on a prim is: "surface", "volume" or "curve".

    Raises:
        SceneError: The prim's type does not fit.
    """
    for name in applied_apis(prim):
        stem = name.removeprefix("Omni").removeprefix("Physics").removesuffix("DeformableSimAPI")
        if stem in _FORMS and name.endswith("DeformableSimAPI"):
            form, kind = _FORMS[stem]
            if prim.GetTypeName() != kind:
                raise SceneError(f"{prim.GetPath()}: {name} belongs on a {kind}, not on a {prim.GetTypeName()}")
            return form
    raise SceneError(f"{prim.GetPath()}: it has no deformable simulation schema")


def read_deformable(prim: Usd.Prim, context: Context, kind: str) -> MatterDescription:
    """SI numbers of a deformable, its points in the world.

    Raises:
        SceneError: It cannot be simulated; names the prim and the element.
    """
    form, units = form_of(prim), context.units
    frame = context.frame(prim)

    def in_world(local: np.ndarray) -> np.ndarray:
        return units.length * local @ frame.linear.T + frame.pose.position

    local, geometry = _geometry(context, prim, form)
    if frame.mirrored and form == "volume":
        geometry["elements"] = _mirrored(geometry["elements"])
    points = in_world(local)
    rest = read_array(context, prim, "restShapePoints", ndim=2)
    if rest is not None and rest.shape != local.shape:
        raise SceneError(f"{prim.GetPath()}: restShapePoints hold {len(rest)} points; there are {len(local)}")
    rest = points if rest is None else in_world(rest)
    held = read_attachments(context, prim, points)
    parameters = read_material(context, prim, form, lambda thickness: _volume(form, rest, geometry, thickness))
    _check_thickness(prim, form, rest, parameters)
    friction = parameters.pop("own_friction")
    parameters |= {"rest": rest, **_scales(form, geometry, rest, str(prim.GetPath()))}
    data = {"form": form, "own_friction": float(friction), **geometry, **_looks(prim)}
    data |= read_angles(context, prim, form, geometry, parameters)
    data |= _contact(context, prim, form, rest, float(friction), parameters, geometry)
    data["self_collision"] = _self_contact(context, prim, form, rest, float(friction), parameters, geometry)
    data |= _holding(held, points, parameters)
    data["places"] = {
        child.GetName(): int(context.read.number(child, "warpsim:point") or 0)
        for child in prim.GetChildren()
        if child.HasAttribute("warpsim:point")
    }
    for name in _UNREAD:
        if prim.HasAttribute(name):
            context.ledger.unsupported(prim, name, "not modeled; rest shapes have the mesh's topology")
    positive = ["young", "density", "contact_stiffness", "self_stiffness", "self_distance"]
    positive += ["thickness"] if form == "surface" else []
    made = MatterDescription(
        kind=kind,
        name=_name(context, prim),
        path=str(prim.GetPath()),
        parameters=parameters,
        initial={"x": points, "v": _velocities(context, prim, frame.linear, points)},
        data=data,
        positive=tuple(name for name in positive if name in parameters) + (("radius",) if form == "curve" else ()),
    )
    check_parts(made)
    _tell_integrator(context, prim, data)
    return made


def _check_thickness(prim: Usd.Prim, form: str, rest: np.ndarray, parameters: dict[str, np.ndarray]) -> None:
    """Raises for what is thicker than it is long: a number in other units than the stage's."""
    thickness = {"surface": parameters.get("thickness"), "curve": 2.0 * parameters.get("radius", 0.0)}.get(form)
    extent = float(np.linalg.norm(np.ptp(rest, axis=0)))
    if thickness is not None and float(thickness) > extent > 0.0:
        what = f"a thickness of {float(thickness):.3g} m, and it is {extent:.3g} m long"
        raise SceneError(f"{prim.GetPath()}: {what}; is physics:thickness in the stage's units?")


def _tell_integrator(context: Context, prim: Usd.Prim, data: dict[str, Any]) -> None:
    """Bodies that move and that it meets are solved for together with it, by one integrator."""
    shapes = [shape.body for shape in context.scene.shapes if shape.name in data["shapes"]]
    met = {body for body in (*shapes, *data["held_body"], *data["sprung_body"]) if body}
    integrator = context.scene.options.integrator
    if met and integrator != "rk4":
        what = f"{integrator!r} becomes one solve with {', '.join(sorted(met)[:3])}{' …' if len(met) > 3 else ''}"
        context.ledger.used(prim, "mjc:option:integrator", f"{what}: joint damping and drives are implicit in it")


def _name(context: Context, prim: Usd.Prim) -> str:
    """The prim's name in small letters, numbered where another deformable has it."""
    stem = prim.GetName().lower()
    taken = {matter.name for matter in context.scene.matters}
    return next(name for k in range(1, 10_000) if (name := stem if k == 1 else f"{stem}_{k}") not in taken)


def _geometry(context: Context, prim: Usd.Prim, form: str) -> tuple[np.ndarray, dict[str, Any]]:
    """Points (n, 3) in the prim's frame and stage units, and elements."""
    path, read = prim.GetPath(), context.read
    if form == "surface":
        mesh = authored_mesh(context, prim)
        return mesh.vertices, {"elements": mesh.faces.astype(np.int32), "faces": mesh.faces.astype(np.int32)}
    points = read.array(prim, "points", ndim=2)
    if points is None or points.ndim != 2 or points.shape[1] != 3:
        raise SceneError(f"{path}: a deformable needs points")
    if form == "volume":
        tetrahedra = read.array(prim, "tetVertexIndices", ndim=2)
        if tetrahedra is None or tetrahedra.shape[1:] != (4,) or not len(tetrahedra):
            raise SceneError(f"{path}: a soft body needs tetVertexIndices")
        elements, swapped = tetrahedra.astype(np.int32), False
        if elements.min() < 0 or elements.max() >= len(points):
            raise SceneError(f"{path}: tetVertexIndices go to {int(elements.max())}; there are {len(points)} points")
        if read.token(prim, "orientation", choices=("leftHanded", "rightHanded")) == "leftHanded":
            elements, swapped = elements[:, [0, 2, 1, 3]], True
        faces = surface_of(elements)
        middles = read.array(prim, "warpsim:midEdgeIndices")
        if middles is None or not len(middles):
            return points, {"elements": elements, "faces": faces}
        own = _middles(str(path), middles, elements, len(points))
        elements = np.concatenate([elements, own[:, [1, 0, 2, 3, 5, 4]] if swapped else own], axis=1)
        return points, {"elements": elements, "faces": split_faces(faces, elements)}
    counts = read.array(prim, "curveVertexCounts")
    if counts is None or (counts < 2).any() or counts.sum() != len(points):
        raise SceneError(f"{path}: curveVertexCounts must be 2 or more each, and sum to its {len(points)} points")
    if read.token(prim, "wrap") == "periodic":
        raise SceneError(f"{path}: closed curves are not modeled; repeat the first point at the end")
    if read.token(prim, "type") != "linear":
        context.ledger.used(prim, "type", "points are joined by straight segments")
    return points, {"counts": counts.astype(np.int32)}


def _middles(path: str, given: np.ndarray, elements: np.ndarray, points: int) -> np.ndarray:
    """(n, 6) middles of the edges of tetrahedra."""
    if given.size != 6 * len(elements):
        raise SceneError(f"{path}: warpsim:midEdgeIndices are {given.size}; six for each of {len(elements)} tetrahedra")
    if given.min() < 0 or given.max() >= points:
        raise SceneError(f"{path}: warpsim:midEdgeIndices go to {int(given.max())}; there are {points} points")
    return given.astype(np.int32).reshape(-1, 6)


def _mirrored(elements: np.ndarray) -> np.ndarray:
    """Tetrahedra with two corners exchanged, and the middles of their edges with them."""
    return elements[:, [0, 2, 1, 3, *((5, 4, 6, 7, 9, 8) if elements.shape[1] == QUADRATIC else ())]]


def surface_of(tetrahedra: np.ndarray) -> np.ndarray:
    """(m, 3) faces that belong to one tetrahedron alone, counterclockwise from outside."""
    faces = np.concatenate([tetrahedra[:, corners] for corners in ([1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1])])
    _, first, times = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True)
    return faces[np.sort(first[times == 1])].astype(np.int32)


def _volume(form: str, rest: np.ndarray, geometry: dict[str, Any], thickness: float | None) -> float:
    """At rest, m³."""
    if form == "curve":
        starts = np.concatenate([[0], np.cumsum(geometry["counts"])[:-1]])
        lengths = np.delete(np.linalg.norm(np.diff(rest, axis=0), axis=1), starts[1:] - 1)
        return float(lengths.sum() * 0.25 * np.pi * (thickness or 0.0) ** 2)
    edges = rest[geometry["elements"][:, 1:4]] - rest[geometry["elements"][:, :1]]
    if form == "volume":
        return float(np.linalg.det(edges).sum() / 6.0)
    return float(0.5 * np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1).sum() * (thickness or 0.0))


def _scales(form: str, geometry: dict[str, Any], rest: np.ndarray, where: str) -> dict[str, np.ndarray]:
    """Factors of each element, by which material may vary within one deformable."""
    if form == "curve":
        count = len(rest) - len(geometry["counts"])
        return {name: np.ones(count) for name in ("young_scale", "radius_scale", "density_scale")}
    ones = np.ones(len(geometry["elements"]))
    if form == "volume":
        return {"young_scale": ones, "density_scale": ones.copy()}
    inner = len(hinges(geometry["elements"], where)[0])
    scales = {name: ones.copy() for name in ("young_scale", "thickness_scale", "density_scale")}
    return {**scales, "bending_scale": np.ones(inner)} if inner else scales


def _looks(prim: Usd.Prim) -> dict[str, Any]:
    colors = UsdGeom.Gprim(prim).GetDisplayColorAttr().Get()
    return {"color": np.array(colors[0], dtype=float) if colors else _COLOR}


def _contact(
    context: Context,
    prim: Usd.Prim,
    form: str,
    rest: np.ndarray,
    friction: float,
    parameters: dict[str, np.ndarray],
    geometry: dict[str, Any],
) -> dict[str, Any]:
    """Shapes that it touches, where it is a collider itself, and how."""
    nothing: dict[str, Any] = {"shapes": (), "shape_kinds": ()}
    parameters["gap"] = np.array(_gap(context, prim, form, parameters))
    if "PhysicsCollisionAPI" not in applied_apis(prim) or not context.read.flag(prim, "physics:collisionEnabled", True):
        return nothing
    filtered = tuple(map(str, context.read.targets(prim, "physics:filteredPairs")))
    touched = [
        shape
        for shape in context.scene.shapes
        if shape.collides and not any(_below(n or "", filtered) for n in (shape.name, shape.piece_of, shape.body))
    ]
    if not touched:
        return nothing
    # average, as colliders combine
    parameters["friction"] = np.array([0.5 * (friction + float(shape.friction[0])) for shape in touched])
    parameters["contact_stiffness"] = np.array(_stiffness(context, prim, form, rest, parameters, geometry))
    parameters["contact_damping"] = np.array(_damping(context, prim))
    return {"shapes": tuple(s.name for s in touched), "shape_kinds": tuple(s.kind for s in touched)}


def _self_contact(
    context: Context,
    prim: Usd.Prim,
    form: str,
    rest: np.ndarray,
    friction: float,
    parameters: dict[str, np.ndarray],
    geometry: dict[str, Any],
) -> bool:
    """Whether it touches itself, and how: with the stiffness and damping of its contacts, at twice their gap."""
    places = [prim, *(body for body in (deformable_body(prim),) if body is not None and body != prim)]
    asked = [(p, name) for p in places for name in _SELF_FLAGS if context.read.flag(p, name, False)]
    if not asked:
        return False
    if "PhysicsCollisionAPI" not in applied_apis(prim) or not context.read.flag(prim, "physics:collisionEnabled", True):
        context.ledger.unsupported(*asked[0], "nothing touches what is no collider: apply PhysicsCollisionAPI")
        return False
    stiffness = parameters.get("contact_stiffness")
    if stiffness is None:
        stiffness = np.array(_stiffness(context, prim, form, rest, parameters, geometry))
    distance = 2.0 * float(parameters["gap"])
    if distance <= 0.0:
        distance = _SELF_DISTANCE * _between(rest, geometry)
        context.ledger.assumed(prim, "newton:contactMargin", f"not set; it touches itself at {distance:.3g} m")
    law = {
        "stiffness": float(stiffness),
        "damping": _damping(context, prim),
        "distance": distance,
        "friction": friction,
    }
    parameters.update({f"self_{name}": np.array(value) for name, value in law.items()})
    return True


def _damping(context: Context, prim: Usd.Prim) -> float:
    """Of each point's contact, N s/m."""
    material = bound_material(prim)
    given = None if material is None else context.read.number(material, "newton:contactDamping", finite=False)
    return context.units.mass * given if given is not None and np.isfinite(given) else 0.0


def _below(name: str, paths: tuple[str, ...]) -> bool:
    return any(name == path or name.startswith(path + "/") for path in paths)


def _gap(context: Context, prim: Usd.Prim, form: str, parameters: dict[str, np.ndarray]) -> float:
    """How far from a shape points touch it, m: half the thickness."""
    margin = context.read.number(prim, "newton:contactMargin")
    if margin is not None:
        return context.units.length * margin
    own = {"surface": 0.5 * parameters.get("thickness", 0.0), "curve": parameters.get("radius", 0.0), "volume": 0.0}
    return float(own[form])


def _between(rest: np.ndarray, geometry: dict[str, Any]) -> float:
    """Mean distance of an element's corners, m."""
    elements = geometry["elements"][:, :4]
    return float(np.linalg.norm(rest[elements] - rest[np.roll(elements, 1, axis=1)], axis=2).mean())


def _stiffness(
    context: Context, prim: Usd.Prim, form: str, rest: np.ndarray, parameters: Any, geometry: dict[str, Any]
) -> float:
    """Of each point's contact, N/m: authored, or that of the material over the distance between points."""
    material = bound_material(prim)
    given = None if material is None else context.read.number(material, "newton:contactStiffness", finite=False)
    if given is not None and np.isfinite(given):
        return context.units.mass * given
    young = float(parameters["young"])
    if form == "curve":
        chosen = 2.0 * young * float(parameters["radius"])
    else:
        share = 0.5 if geometry["elements"].shape[1] == QUADRATIC else 1.0
        chosen = young * share * _between(rest, geometry)
    context.ledger.used(
        prim, "newton:contactStiffness", f"not set on its material; {chosen:.3g} N/m for each point follows from it"
    )
    return chosen


def _holding(held: Held, points: np.ndarray, parameters: dict[str, np.ndarray]) -> dict[str, Any]:
    """What holds the points; anchors and springs are parameters."""
    carried = sorted(held.held, key=lambda item: item[0])
    anchors = {**{i: points[i] for i in held.pinned}, **{i: at for i, _, at in carried}}
    if anchors:
        parameters["pin_anchor"] = np.array([anchors[i] for i in sorted(anchors)])
    if held.sprung:
        parameters["attachment_anchor"] = np.array([at for _, _, at, _, _ in held.sprung])
        parameters["attachment_stiffness"] = np.array([k for _, _, _, k, _ in held.sprung])
        parameters["attachment_damping"] = np.array([c for *_, c in held.sprung])
    return {
        "fixed": np.array(sorted(held.fixed), int),
        "pinned": np.array(held.pinned, int),
        "held": np.array([i for i, _, _ in carried], int),
        "held_body": tuple(body for _, body, _ in carried),
        "sprung": np.array([item[0] for item in held.sprung], int),
        "sprung_body": tuple(item[1] for item in held.sprung),
    }


def _velocities(context: Context, prim: Usd.Prim, linear: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(n, 3) m/s at first: of each point, plus those of the whole about its center."""
    units, read = context.units, context.read
    own = read.array(prim, "velocities", ndim=2)
    if own is not None and own.shape != points.shape:
        raise SceneError(f"{prim.GetPath()}: velocities are of {len(own)} points; there are {len(points)}")
    moved = np.zeros_like(points) if own is None else units.length * own @ linear.T
    along, about = (read.vector(prim, f"warpsim:{name}", 3) for name in ("velocity", "angularVelocity"))
    if along is not None:
        moved = moved + units.length * units.to_world @ along
    if about is not None:
        moved = moved + np.cross(DEGREE * units.to_world @ about, points - points.mean(axis=0))
    return moved
