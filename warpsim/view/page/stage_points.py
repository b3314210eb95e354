"""Things on a USD stage whose points move: meshes that deform, point clouds, curves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pxr import Usd, UsdGeom

from warpsim.core.errors import SceneError
from warpsim.io.usd.meshes import triangulate
from warpsim.view.items.soft_meshes import surface_faces
from warpsim.view.items.stage_items import StageReader, surface_look
from warpsim.view.page.content import CloudDrawable, CurveDrawable, SurfaceDrawable

_WIDTH = 0.01
"""m, of points and curves that have none authored."""


def moving_points(
    stage: Usd.Stage, reader: StageReader, codes: Sequence[float]
) -> tuple[list[SurfaceDrawable | CloudDrawable | CurveDrawable], dict[str, np.ndarray]]:
    """Drawables of moving points, and where these are.

    Args:
        stage: The stage.
        reader: Of the stage.
        codes: Time codes of the frames.

    Returns:
        The drawables, and by path (frames, n, 3) m.

    Raises:
        SceneError: The number of a prim's points changes.
    """
    drawables: list[SurfaceDrawable | CloudDrawable | CurveDrawable] = []
    tracks: dict[str, np.ndarray] = {}
    for prim in stage.Traverse(Usd.TraverseInstanceProxies()):
        made = _drawable(prim, codes[0]) if _shown(prim) else None
        if made is not None:
            drawables.append(made)
            tracks[made.path] = _track(reader, prim, codes)
    return drawables, tracks


def _shown(prim: Usd.Prim) -> bool:
    if not prim.IsA(UsdGeom.PointBased):
        return False
    imageable = UsdGeom.Imageable(prim)
    purposes = (UsdGeom.Tokens.default_, UsdGeom.Tokens.render)
    return imageable.ComputePurpose() in purposes and imageable.ComputeVisibility() != UsdGeom.Tokens.invisible


def _drawable(prim: Usd.Prim, code: float) -> SurfaceDrawable | CloudDrawable | CurveDrawable | None:
    """None: not of a kind that is drawn by moving points."""
    path = str(prim.GetPath())
    time = Usd.TimeCode(code)
    if prim.IsA(UsdGeom.Mesh):
        mesh = UsdGeom.Mesh(prim)
        if not mesh.GetPointsAttr().ValueMightBeTimeVarying():
            return None
        color, look = surface_look(prim, time)
        counts = np.array(mesh.GetFaceVertexCountsAttr().Get(time), dtype=int)
        indices = np.array(mesh.GetFaceVertexIndicesAttr().Get(time), dtype=int)
        return SurfaceDrawable(path, triangulate(counts, indices), color, look)
    if prim.IsA(UsdGeom.TetMesh):
        color, look = surface_look(prim, time)
        return SurfaceDrawable(path, surface_faces(prim, time), color, look)
    if prim.IsA(UsdGeom.Points):
        widths = UsdGeom.Points(prim).GetWidthsAttr().Get(time)
        return CloudDrawable(path, surface_look(prim, time)[0], 0.5 * (float(np.mean(widths)) if widths else _WIDTH))
    if prim.IsA(UsdGeom.BasisCurves):
        curves = UsdGeom.BasisCurves(prim)
        widths = curves.GetWidthsAttr().Get(time)
        counts = np.array(curves.GetCurveVertexCountsAttr().Get(time), dtype=int)
        return CurveDrawable(path, counts, surface_look(prim, time)[0], float(np.mean(widths)) if widths else _WIDTH)
    return None


def _track(reader: StageReader, prim: Usd.Prim, codes: Sequence[float]) -> np.ndarray:
    """(frames, n, 3) m, in the world."""
    attribute = UsdGeom.PointBased(prim).GetPointsAttr()
    cache = UsdGeom.XformCache()
    frames = []
    for code in codes:
        cache.SetTime(Usd.TimeCode(code))
        to_world = reader.to_world(prim, cache)
        points = np.array(attribute.Get(code), dtype=float).reshape(-1, 3)
        frames.append(points @ to_world[:3, :3].T + to_world[:3, 3])
        if len(points) != len(frames[0]):
            raise SceneError(
                f"{prim.GetPath()}: it has {len(frames[0])} points at first and {len(points)} at time code {code:g}; "
                "a page needs a fixed number of points"
            )
    return np.array(frames)
