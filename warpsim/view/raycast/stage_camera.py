"""A `UsdGeom.Camera` prim at a time code → camera."""

from __future__ import annotations

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom

from warpsim.core.errors import unknown_name
from warpsim.io.usd.units import stage_units
from warpsim.view.items.camera import Camera


def stage_camera(stage: Usd.Stage, path: str, time: Usd.TimeCode) -> Camera:
    """Reads a camera.

    Args:
        stage: The stage.
        path: Of a camera prim; clipping range, exposure and depth of field are not used.
        time: Time code.

    Raises:
        UnknownNameError: No camera is there; names the nearest ones.
    """
    prim = stage.GetPrimAtPath(path) if Sdf.Path.IsValidPathString(path) else None
    if not prim or not prim.IsA(UsdGeom.Camera):
        raise unknown_name("camera", path, _cameras(stage))
    units = stage_units(stage)
    frustum = UsdGeom.Camera(prim).GetCamera(time).frustum
    rotation = np.array(Gf.Matrix3d(frustum.rotation)).T  # columns: the camera's axes in the stage
    axes = units.to_world @ rotation
    orthographic = frustum.projectionType == Gf.Frustum.Orthographic
    # GfFrustum's window lies at unit distance, or for an orthographic camera holds lengths in stage units.
    window = (units.length if orthographic else 1.0) * np.array([frustum.window.min, frustum.window.max])
    half, center = 0.5 * (window[1] - window[0]), 0.5 * (window[0] + window[1])
    return Camera(
        position=units.length * units.to_world @ np.array(frustum.position),
        right=axes[:, 0],
        up=axes[:, 1],
        half_width=float(half[0]),
        half_height=float(half[1]),
        center=(float(center[0]), float(center[1])),
        orthographic=orthographic,
    )


def _cameras(stage: Usd.Stage) -> list[str]:
    prims = Usd.PrimRange(stage.GetPseudoRoot(), Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate))
    return [str(prim.GetPath()) for prim in prims if prim.IsA(UsdGeom.Camera)]
