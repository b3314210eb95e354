"""A camera in a result, so that USD viewers open with all of the motion in sight."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom

CAMERA = Sdf.Path("/WarpsimView")
"""Where it is."""
AZIMUTH, ELEVATION, FIELD_OF_VIEW = math.radians(-60.0), math.radians(22.0), math.radians(35.0)
"""About the up axis, above the horizon, and across the picture's height: as the pages begin."""
_ASPECT, _FOCAL_LENGTH, _MARGIN = 16.0 / 9.0, 35.0, 1.15
_FRAMES = 8
"""Of the motion that are looked at."""


def write_camera(layer: Sdf.Layer, sublayers: Sequence[str], paths: Iterable[str], codes: np.ndarray) -> None:
    """Defines a camera that sees prims all through a motion; a source that has cameras keeps to its own.

    Args:
        layer: What to write into.
        sublayers: Identifiers of the layers of the animated stage, strongest first.
        paths: Prims to see.
        codes: (n,) time codes.
    """
    stage = _composed(sublayers)
    prims = Usd.PrimRange(stage.GetPseudoRoot(), Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate))
    if any(prim.IsA(UsdGeom.Camera) for prim in prims):
        return
    chosen = codes[np.unique(np.linspace(0, len(codes) - 1, _FRAMES).round().astype(int))]
    box = _bounds(stage, [stage.GetPrimAtPath(path) for path in paths], chosen)
    if box.IsEmpty():
        return
    target = Usd.Stage.Open(layer)
    camera = UsdGeom.Camera.Define(target, CAMERA)
    middle, radius = box.GetMidpoint(), max(0.5 * box.GetSize().GetLength(), 1e-6)
    distance = _MARGIN * radius / math.sin(0.5 * FIELD_OF_VIEW)
    level = math.cos(ELEVATION)
    outward = Gf.Vec3d(level * math.cos(AZIMUTH), level * math.sin(AZIMUTH), math.sin(ELEVATION))
    up = Gf.Vec3d(0, 0, 1)
    if UsdGeom.GetStageUpAxis(stage) == UsdGeom.Tokens.y:
        outward, up = Gf.Vec3d(outward[0], outward[2], -outward[1]), Gf.Vec3d(0, 1, 0)
    look = Gf.Matrix4d().SetLookAt(middle + distance * outward, middle, up).GetInverse()
    UsdGeom.Xformable(camera).MakeMatrixXform().Set(look)
    height = 2.0 * _FOCAL_LENGTH * math.tan(0.5 * FIELD_OF_VIEW)
    camera.CreateFocalLengthAttr(_FOCAL_LENGTH)
    camera.CreateVerticalApertureAttr(height)
    camera.CreateHorizontalApertureAttr(_ASPECT * height)
    camera.CreateClippingRangeAttr(Gf.Vec2f(0.01 * radius, 100.0 * distance))
    camera.CreateFocusDistanceAttr(distance)


def _composed(sublayers: Sequence[str]) -> Usd.Stage:
    root = Sdf.Layer.CreateAnonymous(".usda")
    root.subLayerPaths = list(sublayers)
    stage = Usd.Stage.Open(root)
    strongest = Sdf.Layer.Find(sublayers[0])
    UsdGeom.SetStageUpAxis(stage, UsdGeom.GetStageUpAxis(Usd.Stage.Open(strongest)))
    return stage


def _bounds(stage: Usd.Stage, prims: Sequence[Usd.Prim], codes: np.ndarray) -> Gf.Range3d:
    """Around prims at some time codes, in stage units."""
    box = Gf.Range3d()
    cache = UsdGeom.BBoxCache(Usd.TimeCode.Default(), [UsdGeom.Tokens.default_, UsdGeom.Tokens.render])
    for code in codes:
        cache.SetTime(float(code))
        for prim in prims:
            if prim:
                box.UnionWith(cache.ComputeWorldBound(prim).ComputeAlignedRange())
    return box
