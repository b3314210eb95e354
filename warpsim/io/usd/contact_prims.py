"""Contact points and forces as prims that a viewer shows: a point cloud and a bundle of line segments."""

from __future__ import annotations

import numpy as np
from pxr import Sdf, Usd, UsdGeom, Vt

from warpsim.io.usd.motion import ContactFrame, Motion
from warpsim.io.usd.units import StageUnits

CONTACTS = "Contacts"
_POINT_WIDTH = 0.01
_LINE_WIDTH = 0.004
"""m."""


def write_contacts(
    layer: Sdf.Layer, parent: Sdf.Path, motion: Motion, units: StageUnits, codes: np.ndarray, scale: float
) -> None:
    """Adds `<parent>/Contacts/Points` and `/Forces` with samples per frame.

    Args:
        layer: Where to author.
        parent: An existing prim.
        motion: With contacts.
        units: Of the stage.
        codes: (frames,) time codes.
        scale: Meters drawn per newton.
    """
    stage = Usd.Stage.Open(layer)
    root = UsdGeom.Scope.Define(stage, parent.AppendChild(CONTACTS))
    root.CreatePurposeAttr(UsdGeom.Tokens.guide)
    points = UsdGeom.Points.Define(stage, root.GetPath().AppendChild("Points"))
    points.CreateDisplayColorAttr([(1.0, 0.2, 0.1)])
    lines = UsdGeom.BasisCurves.Define(stage, root.GetPath().AppendChild("Forces"))
    lines.CreateTypeAttr(UsdGeom.Tokens.linear)
    lines.CreateDisplayColorAttr([(1.0, 0.7, 0.1)])
    for code, frame in zip(codes, motion.contacts or (), strict=True):
        _write_frame(points, lines, frame, units, float(code), scale)


def _write_frame(
    points: UsdGeom.Points,
    lines: UsdGeom.BasisCurves,
    frame: ContactFrame,
    units: StageUnits,
    code: float,
    scale: float,
) -> None:
    turn = units.to_world / units.length
    starts = np.asarray(frame.points, dtype=float).reshape(-1, 3) @ turn
    ends = starts + scale * np.asarray(frame.forces, dtype=float).reshape(-1, 3) @ turn
    count = len(starts)
    segments = np.stack([starts, ends], axis=1).reshape(-1, 3)
    points.CreatePointsAttr().Set(_vectors(starts), code)
    points.CreateWidthsAttr().Set(Vt.FloatArray(count, _POINT_WIDTH / units.length), code)
    lines.CreatePointsAttr().Set(_vectors(segments), code)
    lines.CreateCurveVertexCountsAttr().Set(Vt.IntArray(count, 2), code)
    lines.CreateWidthsAttr().Set(Vt.FloatArray(2 * count, _LINE_WIDTH / units.length), code)
    for geometry, cloud in ((points, starts), (lines, segments)):
        if count:
            geometry.CreateExtentAttr().Set(_vectors(np.stack([cloud.min(axis=0), cloud.max(axis=0)])), code)


def _vectors(rows: np.ndarray) -> Vt.Vec3fArray:
    return Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(rows, dtype=np.float32))
