"""Descriptions of deformables → prims that `read_deformable` understands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pxr import Sdf, Usd, UsdGeom, Vt

from warpsim.deformable.usd_angles import write_angles
from warpsim.io.usd import author
from warpsim.scene.matters import MatterDescription

_MATERIAL = (
    "young",
    "poisson",
    "thickness",
    "density",
    "damping",
    "mass_damping",
    "bending",
    "contact_stiffness",
    "contact_damping",
)


def write_deformable(
    description: MatterDescription, stage: Usd.Stage, made: Mapping[tuple[str, str], Usd.Prim]
) -> bool:
    """Writes geometry, material and what holds it, in SI, z up.

    Args:
        description: Of the deformable.
        stage: Where; bodies and shapes are in it already.
        made: The prims of ("body", name) and ("shape", name).

    Returns:
        False, and nothing is written, where material varies from element to element, or angles of rest are changed
        on top of the rest shape's: no schema holds that.
    """
    parameters, data = description.parameters, description.data
    if any(name.endswith("_scale") and (np.asarray(value) != 1.0).any() for name, value in parameters.items()):
        return False
    shaped = np.asarray(data.get("shaped", False))
    if np.any(np.asarray(parameters.get("rest_angle", 0.0)) * shaped):
        return False
    root = stage.GetDefaultPrim()
    prim = _geometry(root, description)
    _single(prim, "newton:contactMargin", float(parameters["gap"]))
    x = np.asarray(description.initial["x"])
    if not np.array_equal(parameters["rest"], x):
        rest = Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(parameters["rest"], np.float32))
        prim.CreateAttribute("physics:restShapePoints", Sdf.ValueTypeNames.Point3fArray, False).Set(rest)
    if "rest_angle" in parameters:
        write_angles(prim, data["elements"], np.asarray(parameters["rest_angle"]), shaped)
    apart = [path for (kind, name), path in made.items() if kind == "shape" and name not in data["shapes"]]
    if (data["shapes"] or data["self_collision"]) and apart:
        author.filter_pairs(prim, apart)
    for name, point in data["places"].items():
        author.point_place(prim, name, point)
    _hold(prim, root, description, made)
    return True


def _geometry(root: Usd.Prim, description: MatterDescription) -> Usd.Prim:
    """The mesh or curves with schemas, material and velocities."""
    parameters, data, x = description.parameters, description.data, np.asarray(description.initial["x"])
    material = {name: float(parameters[name]) for name in _MATERIAL if name in parameters}
    if data["form"] != "volume":
        material.setdefault("bending", 0.0)
    if data["self_collision"]:
        material |= {f"contact_{name}": float(parameters[f"self_{name}"]) for name in ("stiffness", "damping")}
    if "radius" in parameters:
        material["thickness"] = 2.0 * float(parameters["radius"])
    velocities = np.asarray(description.initial["v"])
    options: dict[str, Any] = {
        **material,
        "friction": data["own_friction"],
        "color": data["color"],
        "collides": bool(data["shapes"]) or data["self_collision"],
        "self_collision": data["self_collision"],
        "velocities": velocities if velocities.any() else None,
        "pinned": data["pinned"].tolist() or None,
    }
    name = (description.path or description.name).rpartition("/")[2]
    if data["form"] == "surface":
        return author.cloth(root, name, (0, 0), (0, 0), points=x, triangles=data["elements"], **options)
    if data["form"] == "volume":
        return author.soft(root, name, points=x, tetrahedra=data["elements"], **options)
    prim = author.cable(root, name, x, **options)
    UsdGeom.BasisCurves(prim).CreateCurveVertexCountsAttr(Vt.IntArray(data["counts"].tolist()))
    return prim


def _hold(
    prim: Usd.Prim, root: Usd.Prim, description: MatterDescription, made: Mapping[tuple[str, str], Usd.Prim]
) -> None:
    """Attachments: one prim for what is fixed, one for each body and each kind of spring."""
    parameters, data = description.parameters, description.data
    name = prim.GetName()
    if len(data["fixed"]):
        author.attach(prim, f"{name}Fixed", data["fixed"].tolist())
    anchored = sorted({*data["pinned"].tolist(), *data["held"].tolist()})
    place = dict(zip(anchored, parameters.get("pin_anchor", ()), strict=True))
    groups: dict[tuple[Any, ...], list[tuple[int, np.ndarray]]] = {}
    for point, body in zip(data["held"].tolist(), data["held_body"], strict=True):
        groups.setdefault((body,), []).append((point, place[point]))
    for k, (point, body) in enumerate(zip(data["sprung"].tolist(), data["sprung_body"], strict=True)):
        law = (float(parameters["attachment_stiffness"][k]), float(parameters["attachment_damping"][k]))
        groups.setdefault((body, *law), []).append((point, parameters["attachment_anchor"][k]))
    for number, ((body, *spring), items) in enumerate(groups.items()):
        points, places = [point for point, _ in items], np.array([at for _, at in items])
        choices = dict(zip(("stiffness", "damping"), spring, strict=False))
        to = made["body", body] if body else root
        author.attach(prim, f"{name}Held{number}", points, to, places=places, **choices)


def _single(prim: Usd.Prim, name: str, value: float) -> None:
    prim.CreateAttribute(name, Sdf.ValueTypeNames.Float, custom=False).Set(value)
