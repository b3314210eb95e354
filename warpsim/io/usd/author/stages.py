"""New stages, the physics scene, references, saving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics

from warpsim.core.errors import InputError
from warpsim.io.usd.author.attributes import set_attributes
from warpsim.io.usd.layer_files import export_layer

WORLD = "/World"
Vector = Sequence[float] | np.ndarray
"""Numbers in a row: a tuple, a list or a NumPy array."""


def new_stage(
    *, meters_per_unit: float = 1.0, kilograms_per_unit: float = 1.0, up_axis: str = "Z", documentation: str = ""
) -> Usd.Stage:
    """An empty stage in memory with a default prim `/World`, units and up axis authored."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, meters_per_unit)
    UsdPhysics.SetStageKilogramsPerUnit(stage, kilograms_per_unit)
    UsdGeom.SetStageUpAxis(stage, up_axis)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, WORLD).GetPrim())
    if documentation:
        stage.GetRootLayer().documentation = documentation
    return stage


def world(stage: Usd.Stage) -> Usd.Prim:
    """The default prim, under which everything goes."""
    return stage.GetDefaultPrim()


def physics_scene(
    stage: Usd.Stage,
    *,
    gravity: float | None = None,
    direction: Vector | None = None,
    steps_per_second: int | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Usd.Prim:
    """The PhysicsScene prim, `/World/Physics`.

    Args:
        stage: The stage.
        gravity: Magnitude in stage units per s²; None: earth's.
        direction: None: down.
        steps_per_second: Simulation steps.
        attributes: More attributes, e.g. {"mjc:option:density": 1.2}. Friction cones are elliptic unless
            "mjc:option:cone" is among them.
    """
    prim = UsdPhysics.Scene.Define(stage, f"{WORLD}/Physics").GetPrim()
    set_attributes(prim, {"physics:gravityMagnitude": gravity, "physics:gravityDirection": direction})
    set_attributes(prim, {"newton:timeStepsPerSecond": steps_per_second, **(attributes or {})})
    return prim


def define(parent: Usd.Prim, name: str, kind: str) -> Usd.Prim:
    """A new child prim.

    Raises:
        InputError: The name is not an identifier, or is taken.
    """
    if not Sdf.Path.IsValidIdentifier(name):
        raise InputError(f"{name!r} cannot name a prim; use letters, digits and underscores")
    path = parent.GetPath().AppendChild(name)
    if parent.GetStage().GetPrimAtPath(path):
        raise InputError(f"{path} exists already; choose another name")
    return parent.GetStage().DefinePrim(path, kind)


def place(prim: Usd.Prim, position: Vector, rotation: Vector, scale: Vector | None = None) -> None:
    """Authors translate, orient (w, x, y, z) and scale ops in double precision."""
    xformable = UsdGeom.Xformable(prim)
    double = UsdGeom.XformOp.PrecisionDouble
    xformable.AddTranslateOp(double).Set(Gf.Vec3d(*map(float, position)))
    xformable.AddOrientOp(double).Set(Gf.Quatd(*map(float, rotation)))
    if scale is not None:
        xformable.AddScaleOp(double).Set(Gf.Vec3d(*map(float, scale)))


def move(prim: Usd.Prim, *, position: Vector | None = None, rotation: Vector | None = None) -> None:
    """Puts a prim made by this module elsewhere: a joint made before keeps its frames, so this sets its coordinate."""
    if position is not None:
        prim.GetAttribute("xformOp:translate").Set(Gf.Vec3d(*map(float, position)))
    if rotation is not None:
        prim.GetAttribute("xformOp:orient").Set(Gf.Quatd(*map(float, rotation)))


def frame(parent: Usd.Prim, name: str, *, position: Vector = (0, 0, 0), rotation: Vector = (1, 0, 0, 0)) -> Usd.Prim:
    """A plain Xform: a group, or something to hang bodies on."""
    prim = define(parent, name, "Xform")
    place(prim, position, rotation)
    return prim


def reference(
    parent: Usd.Prim,
    name: str,
    asset: str | PathLike[str],
    *,
    prim_path: str = "",
    position: Vector = (0, 0, 0),
    rotation: Vector = (1, 0, 0, 0),
    instanceable: bool = False,
) -> Usd.Prim:
    """Places a robot (or anything else) from another file.

    Args:
        parent: Where it goes.
        name: Of the new prim.
        asset: The file.
        prim_path: Prim in that file; "": its default prim.
        position: In the parent's frame, stage units.
        rotation: (w, x, y, z).
        instanceable: Share the asset's prims; they can then not be overridden.
    """
    prim = frame(parent, name, position=position, rotation=rotation)
    prim.GetReferences().AddReference(fspath(asset), prim_path)
    prim.SetInstanceable(instanceable)
    return prim


def save(stage: Usd.Stage, path: str | PathLike[str]) -> None:
    """Writes the stage's root layer as it is (references stay references)."""
    export_layer(stage.GetRootLayer(), path)
