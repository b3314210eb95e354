"""Where a container holds liquid: a lattice of points that nothing but its mouth lets out."""

from __future__ import annotations

import numpy as np
from pxr import Usd

from warpsim.core.errors import InputError
from warpsim.core.numpy_quaternions import quat_to_matrix
from warpsim.geometry.inside import inside_shape
from warpsim.io.usd.author.stages import Vector
from warpsim.io.usd.frames import Pose
from warpsim.io.usd.reader import read_usd
from warpsim.io.usd.units import stage_units
from warpsim.scene.description import Scene, Shape

_CLEARANCE = 0.45
"""Pitches that particles keep from walls along each axis; a lattice flush with a wall has 0.5."""
_FINEST = 2_000_000
"""Points of the lattice that is searched."""


def fill_box(lower: Vector, upper: Vector, pitch: float, fill: float) -> np.ndarray:
    """(n, 3) points that fill the lower share of a box, half a pitch from its faces, in the unit of its corners."""
    low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    high = np.array([high[0], high[1], low[2] + fill * (high[2] - low[2])])
    count = np.floor((high - low) / pitch + 1e-6).astype(int)
    if (count < 1).any():
        raise InputError(f"no particle at a pitch of {pitch:g} fits between {low} and {high}")
    if np.prod(count.astype(float)) > _FINEST:
        raise InputError(
            f"a pitch of {pitch:g} between {low} and {high} makes {np.prod(count.astype(float)):.3g} particles, more "
            f"than {_FINEST}; give a wider one"
        )
    return _lattice(low, count, pitch)


def fill_container(prim: Usd.Prim, pitch: float, fill: float) -> np.ndarray:
    """(n, 3) points, world, stage units, that fill the cavity of a prim's colliders up to a share of its depth.

    Args:
        prim: With colliders, its own or below it.
        pitch: Distance of neighbors, stage units.
        fill: Share.

    Raises:
        InputError: There is no cavity that is open only at the top.
    """
    stage = prim.GetStage()
    units = stage_units(stage)
    scene = read_usd(stage, strict=False)
    root = str(prim.GetPath())
    shapes = [s for s in scene.shapes if s.collides and (s.name == root or s.name.startswith(root + "/"))]
    placed = [(shape, _pose(scene, shape)) for shape in shapes]
    step = pitch * units.length
    corners = np.concatenate([_corners(shape, pose) for shape, pose in placed]) if placed else np.zeros((0, 3))
    if not len(corners):
        raise InputError(f"{root}: no collider of finite size is on it or below it, so it holds nothing")
    low, high = corners.min(0) - 2 * step, corners.max(0) + step
    free, start = _flush(placed, low, high, step, root)
    chosen = free[free[:, 2] < start + fill * (free[:, 2].max() + 0.5 * step - start)]
    if not len(chosen):
        raise InputError(f"{root}: no particle at a pitch of {pitch:g} fits in it")
    return chosen @ units.to_world / units.length


def _flush(
    placed: list[tuple[Shape, Pose]], low: np.ndarray, high: np.ndarray, step: float, root: str
) -> tuple[np.ndarray, float]:
    """Points of the cavity on a lattice that is flush with its bottom and its lower sides, and where its bottom is."""
    fine = step / 4.0
    count = np.ceil((high - low) / fine).astype(int)
    if np.prod(count, dtype=float) > 8.0 * _FINEST:
        raise InputError(f"{root}: a pitch of {step:g} m is too fine to find its cavity")
    rough = _cavity(placed, low, count, fine)
    if not len(rough):
        raise InputError(f"{root}: its colliders enclose no cavity that is open only at the top")
    start = rough.min(0) - 0.5 * fine
    extent = rough.max(0) + 0.5 * fine - start
    number = np.floor(extent / step + 0.5).astype(int)
    inset = 0.5 * (extent - number * step) * np.array([1.0, 1.0, 0.0])  # centered between its sides
    points = _lattice(start + np.maximum(inset, 0.0), number, step)
    keep = np.ones(len(points), dtype=bool)
    known = {tuple(k) for k in np.round((rough - low) / fine - 0.5).astype(int)}
    for i, point in enumerate(points):
        keep[i] = tuple(np.floor((point - low) / fine).astype(int)) in known
    for axis in range(3):
        for sign in (-1.0, 1.0):
            moved = points + sign * _CLEARANCE * step * np.eye(3)[axis]
            keep &= ~np.any([inside_shape(s.kind, s.size, pose.inverse().apply(moved)) for s, pose in placed], axis=0)
    return points[keep], float(start[2])


def _cavity(placed: list[tuple[Shape, Pose]], low: np.ndarray, count: np.ndarray, step: float) -> np.ndarray:
    """Centers of lattice cells that the outside, filled layer by layer from below, does not reach."""
    points = _lattice(low, count, step)
    solid = np.any([inside_shape(s.kind, s.size, pose.inverse().apply(points)) for s, pose in placed], axis=0)
    solid = solid.reshape(count)
    outside = np.zeros_like(solid)
    held = np.zeros_like(solid)
    for k in range(count[2]):
        border = np.zeros_like(solid[:, :, 0])
        border[[0, -1], :] = border[:, [0, -1]] = True
        outside[:, :, k] = border & ~solid[:, :, k]
        outside[:, :, : k + 1] = _spread(outside[:, :, : k + 1], ~solid[:, :, : k + 1])
        inner = ~solid[:, :, : k + 1] & ~outside[:, :, : k + 1]
        if k and (outside[:, :, :k] & held[:, :, :k]).any():
            break  # the rim: what was held so far runs out
        held[:, :, : k + 1] = inner
    return points.reshape(*count, 3)[held]


def _spread(seed: np.ndarray, free: np.ndarray) -> np.ndarray:
    """All free cells that are connected with a seed through faces."""
    reached = seed.copy()
    while True:
        grown = reached.copy()
        for axis in range(3):
            for sign in (-1, 1):
                moved = np.roll(reached, sign, axis)
                edge: list[slice | int] = [slice(None)] * 3
                edge[axis] = 0 if sign == 1 else -1
                moved[tuple(edge)] = False
                grown |= moved
        grown &= free
        if (grown == reached).all():
            return reached
        reached = grown


def _lattice(low: np.ndarray, count: np.ndarray, step: float) -> np.ndarray:
    axes = [low[a] + (np.arange(count[a]) + 0.5) * step for a in range(3)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)


def _pose(scene: Scene, shape: Shape) -> Pose:
    """Of a shape in the world, as its bodies are placed."""
    pose = Pose(shape.position, shape.rotation)
    bodies = {body.name: body for body in scene.bodies}
    name = shape.body
    while name is not None:
        pose = Pose(bodies[name].position, bodies[name].rotation) @ pose
        name = bodies[name].parent
    return pose


def _corners(shape: Shape, pose: Pose) -> np.ndarray:
    """(8, 3) m: of a box around a shape of finite size."""
    size = np.asarray(shape.size)
    reach = {
        "sphere": [size[0]] * 3,
        "capsule": [size[0], size[0], size[0] + size[1]],
        "cylinder": [size[0], size[0], size[1]],
        "cone": [size[0], size[0], size[1]],
        "box": size,
        "ellipsoid": size,
    }.get(shape.kind)
    if reach is None:
        return np.zeros((0, 3))
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    return (signs * np.asarray(reach)) @ quat_to_matrix(pose.rotation).T + pose.position
