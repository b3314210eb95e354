"""A USD stage, animated or not → a page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pxr import Usd, UsdGeom

from warpsim.core.errors import SceneError
from warpsim.core.numpy_quaternions import matrix_to_quat
from warpsim.io.usd.reader import read_usd
from warpsim.scene import Scene
from warpsim.view.items.stage_items import StageReader
from warpsim.view.page.content import BodyInfo, Drawable, Page, Take
from warpsim.view.page.joint_values import joint_values
from warpsim.view.page.scene_content import MAXIMUM_FRAMES, rigid_part, scene_bodies, scene_joints, stage_drawables
from warpsim.view.page.stage_points import moving_points


def stage_page(stage: Usd.Stage, title: str) -> Page:
    """Everything on a stage over its time range.

    Args:
        stage: The stage.
        title: Of the page.

    Raises:
        SceneError: There is nothing to draw.
    """
    scene, reader = _scene(stage), StageReader(stage)
    codes = sample_codes(stage)
    first = Usd.TimeCode(codes[0]) if len(codes) > 1 else Usd.TimeCode.EarliestTime()
    moving = _moving_frames(stage, reader, scene)
    soft, points = moving_points(stage, reader, codes)
    paths = {drawable.path for drawable in soft}
    rigid = [d for d in stage_drawables(stage, reader, moving, first) if d.item.name not in paths]
    if not rigid and not soft:
        raise SceneError(f"{title}: nothing to draw; it has no visible shape, mesh, points or curves")
    known = {} if scene is None else {body.path: body for body in scene_bodies(scene)}
    bodies = [known.get(path, BodyInfo(path)) for path in moving]
    times = (np.array(codes) - codes[0]) / stage.GetTimeCodesPerSecond()
    positions, rotations = _tracks(stage, reader, moving, codes if len(codes) > 1 else [None])
    index = {path: number for number, path in enumerate(moving)}
    values = None if scene is None else joint_values(scene, index, positions, rotations)
    take = Take("motion", times, positions, rotations, values=values, points=points)
    drawables: list[Drawable] = [*rigid, *soft]
    return Page(title, bodies, drawables, [take], joints=() if scene is None else scene_joints(scene))


def _scene(stage: Usd.Stage) -> Scene | None:
    """The physics of a stage, where it has some that can be read."""
    try:
        return read_usd(stage)
    except SceneError:
        return None


def _moving_frames(stage: Usd.Stage, reader: StageReader, scene: Scene | None) -> list[str]:
    """Rigid bodies, and prims of their own motion that belong to none."""
    moving = dict.fromkeys([] if scene is None else [body.name for body in scene.bodies])
    for item in reader.items(Usd.TimeCode.EarliestTime()):
        if item.body is not None:
            moving[item.body] = None
        elif _travels(stage.GetPrimAtPath(item.name)):
            moving[item.name] = None
    return list(moving)


def _travels(prim: Usd.Prim) -> bool:
    """Whether the transform of a prim, or of one that it is under, changes with time."""
    while prim and not prim.IsPseudoRoot():
        if prim.IsA(UsdGeom.Xformable) and UsdGeom.Xformable(prim).TransformMightBeTimeVarying():
            return True
        prim = prim.GetParent()
    return False


def sample_codes(stage: Usd.Stage) -> list[float]:
    """Time codes of a stage's frames: those that transforms or points are sampled at, as many as a page may hold."""
    start, end = float(stage.GetStartTimeCode()), float(stage.GetEndTimeCode())
    if not stage.HasAuthoredTimeCodeRange() or end <= start:
        return [start]
    found: set[float] = set()
    for prim in stage.Traverse(Usd.TraverseInstanceProxies()):
        if prim.IsA(UsdGeom.Xformable):
            found.update(UsdGeom.Xformable(prim).GetTimeSamples())
        if prim.IsA(UsdGeom.PointBased):
            found.update(UsdGeom.PointBased(prim).GetPointsAttr().GetTimeSamples())
    codes = sorted(code for code in found if start <= code <= end)
    if len(codes) < 2:
        return [start]
    if len(codes) > MAXIMUM_FRAMES:
        return np.linspace(codes[0], codes[-1], MAXIMUM_FRAMES).tolist()
    return codes


def _tracks(
    stage: Usd.Stage, reader: StageReader, paths: Sequence[str], codes: Sequence[float | None]
) -> tuple[np.ndarray, np.ndarray]:
    """(frames, bodies, 3) m and (frames, bodies, 4): poses of prims over time."""
    prims = [stage.GetPrimAtPath(path) for path in paths]
    matrices = np.zeros((len(codes), len(paths), 4, 4))
    cache = UsdGeom.XformCache()
    for row, code in enumerate(codes):
        cache.SetTime(Usd.TimeCode.EarliestTime() if code is None else Usd.TimeCode(code))
        for column, prim in enumerate(prims):
            matrices[row, column] = reader.to_world(prim, cache)
    flat = matrices.reshape(-1, 4, 4)
    linear = flat[:, :3, :3] / np.linalg.norm(flat[:, :3, :3], axis=1, keepdims=True)
    mirrored = np.linalg.det(linear) < 0.0 if len(flat) else np.zeros(0, dtype=bool)
    linear[mirrored] = [rigid_part(matrix)[:3, :3] for matrix in flat[mirrored]] if mirrored.any() else 0.0
    shape = matrices.shape[:2]
    rotations = matrix_to_quat(linear) if len(flat) else np.zeros((0, 4))
    return matrices[..., :3, 3], rotations.reshape(*shape, 4)
