"""Liquids: particles that fill a container or a box."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade, Vt

from warpsim.core.errors import InputError, unknown_name, whole_number
from warpsim.io.usd.author.cavity import fill_box, fill_container
from warpsim.io.usd.author.stages import Vector, define

PREFIX = "warpsim:particles:"


def liquid(
    parent: Usd.Prim,
    name: str,
    *,
    inside: Usd.Prim | tuple[Vector, Vector],
    pitch: float,
    fill: float = 1.0,
    density: float = 1000.0,
    bulk_modulus: float | None = None,
    viscosity: float = 0.0,
    walls: list[Usd.Prim] | None = None,
    **options: Any,
) -> Usd.Prim:
    """A liquid that fills a container: `Points` with Newton's schemas, and a child `Center`, its center of mass.

    Args:
        parent: Prim it goes under, which must not be scaled or rotated.
        name: Of the prim.
        inside: A prim with colliders around a cavity that is open only at the top; or a box by its lower and upper
            corner, world, stage units.
        pitch: Distance of neighboring particles, stage units; a cell is twice as wide, with 8 particles.
        fill: Share of the depth of the cavity below its rim, or of the box, that is filled.
        density: Stage units.
        bulk_modulus: Stage units; None: 1e5 Pa.
        viscosity: Stage units.
        walls: Prims of the colliders that bound it, or of bodies that have them; None: all colliders.
        options: substeps, domain (lower and upper corner), color, spacing (of the grid), max_nodes.

    Raises:
        InputError: There is no cavity, or no particle fits.
    """
    if not 0.0 < fill <= 1.0:
        raise InputError(f"fill={fill}; a share between 0 and 1 is needed")
    for what, value in (("pitch", pitch), ("density", density)):  # USD takes a density of 0 for one that is not set
        if not 0.0 < value < np.inf:
            raise InputError(f"{name}: {what} is {value}; it must be positive")
    known = tuple(signature(write_liquid).parameters)[3:]
    for option in options:
        if option not in known:
            raise unknown_name(f"option of {name}", option, known)
    if isinstance(inside, Usd.Prim):
        points = fill_container(inside, pitch, fill)
    else:
        if list(np.shape(inside)) != [2, 3]:
            raise InputError(f"{name}: inside={inside!r}; give a prim, or the lower and the upper corner of a box")
        lower, upper = inside
        points = fill_box(lower, upper, pitch, fill)
    return write_liquid(
        parent,
        name,
        points,
        pitch=pitch,
        density=density,
        bulk_modulus=bulk_modulus,
        viscosity=viscosity,
        walls=walls,
        **options,
    )


def write_liquid(
    parent: Usd.Prim,
    name: str,
    points: np.ndarray,
    *,
    pitch: float,
    density: float = 1000.0,
    bulk_modulus: float | None = None,
    viscosity: float = 0.0,
    velocities: np.ndarray | None = None,
    walls: list[Usd.Prim] | None = None,
    spacing: float | None = None,
    substeps: int | None = None,
    domain: Vector | None = None,
    max_nodes: int | None = None,
    color: Vector | None = None,
) -> Usd.Prim:
    """A liquid of particles at given points, (n, 3) world, stage units; further arguments as in `liquid`."""
    if substeps is not None:
        whole_number("substeps", substeps)
    prim = define(parent, name, "Points")
    inverse = UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(Usd.TimeCode.Default()).GetInverse()
    matrix = np.array(inverse)
    local = points @ matrix[:3, :3] + matrix[3, :3]
    cloud = UsdGeom.Points(prim)
    cloud.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(local.astype(np.float32)))
    cloud.CreateWidthsAttr(Vt.FloatArray(1, float(pitch)))
    cloud.SetWidthsInterpolation(UsdGeom.Tokens.constant)
    cloud.CreateIdsAttr(Vt.Int64Array(list(range(len(points)))))
    cloud.CreateExtentAttr(Vt.Vec3fArray.FromNumpy(np.stack([local.min(0), local.max(0)]).astype(np.float32)))
    if velocities is not None and velocities.any():
        cloud.CreateVelocitiesAttr(Vt.Vec3fArray.FromNumpy((velocities @ matrix[:3, :3]).astype(np.float32)))
    if color is not None:
        cloud.CreateDisplayColorAttr(Vt.Vec3fArray([Gf.Vec3f(*map(float, color))]))
    prim.AddAppliedSchema("PhysicsDeformableBodyAPI")
    prim.AddAppliedSchema("NewtonPointsDeformableSimAPI")
    _own(prim, "bulkModulus", Sdf.ValueTypeNames.Double, bulk_modulus)
    _own(prim, "spacing", Sdf.ValueTypeNames.Double, spacing)
    _own(prim, "substeps", Sdf.ValueTypeNames.Int, substeps)
    _own(prim, "maxNodes", Sdf.ValueTypeNames.Int, max_nodes)
    corners = None if domain is None else [float(c) for c in np.ravel(domain)]
    _own(prim, "domain", Sdf.ValueTypeNames.DoubleArray, corners)
    if walls is not None:
        prim.CreateRelationship(PREFIX + "walls", custom=False).SetTargets([wall.GetPath() for wall in walls])
    _bind(prim, density, viscosity)
    define(prim, "Center", "Scope")
    return prim


def _own(prim: Usd.Prim, name: str, kind: Sdf.ValueTypeName, value: Any) -> None:
    if value is not None:
        prim.CreateAttribute(PREFIX + name, kind, custom=False).Set(value)


def _bind(prim: Usd.Prim, density: float, viscosity: float) -> None:
    """A material of its own."""
    material = UsdShade.Material.Define(prim.GetStage(), prim.GetPath().AppendChild("Material"))
    UsdPhysics.MaterialAPI.Apply(material.GetPrim()).CreateDensityAttr(float(density))
    material.GetPrim().AddAppliedSchema("NewtonMPMMaterialAPI")
    material.GetPrim().CreateAttribute("newton:mpm:viscosity", Sdf.ValueTypeNames.Float, False).Set(float(viscosity))
    binding = UsdShade.MaterialBindingAPI.Apply(prim)
    binding.Bind(material, UsdShade.Tokens.weakerThanDescendants, "physics")
