"""Compares two scenes field by field, and tells where a scene's bodies stand."""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from mujoco_oracle import initial_state, to_mujoco

KINDS = ("bodies", "joints", "shapes", "sites", "tendons", "actuators", "drives", "equalities", "sensors")


def differences(a, b, *, tolerance: float, names: bool = True) -> list[str]:
    """Fields of two scenes that differ by more than a tolerance relative to max(1, size).

    Args:
        a: A scene.
        b: Another.
        tolerance: Zero asks for identical bits.
        names: Whether names (and references to them) must agree too.
    """
    found = []
    for kind in KINDS:
        first, second = getattr(a, kind), getattr(b, kind)
        if len(first) != len(second):
            found.append(f"{len(first)} and {len(second)} {kind}")
            continue
        for x, y in zip(first, second, strict=True):
            found += _fields(f"{kind} {x.name}", x, y, tolerance, names)
    found += _fields("options", a.options, b.options, tolerance, names)
    found += _fields("medium", a.medium, b.medium, tolerance, names)
    for x, y in zip(a.shapes, b.shapes, strict=False):
        if x.mesh and y.mesh:
            found += _fields(f"mesh of {x.name}", a.meshes[x.mesh], b.meshes[y.mesh], tolerance, names)
    if names and (a.excluded_pairs != b.excluded_pairs or a.excluded_bodies != b.excluded_bodies):
        found.append("excluded pairs")
    return found


def _fields(place, x, y, tolerance, names):
    found = []
    for field in dataclasses.fields(x):
        first, second = getattr(x, field.name), getattr(y, field.name)
        if isinstance(first, str) or isinstance(second, str) or field.name == "joints":
            if names and first != second:
                found.append(f"{place}.{field.name}: {first!r} and {second!r}")
        elif not _same(first, second, tolerance, field.name):
            found.append(f"{place}.{field.name}: {first!r} and {second!r}")
    return found


def _same(first, second, tolerance, name):
    if first is None or second is None:
        return first is second
    if any(isinstance(item, str) for item in (first if isinstance(first, list | tuple) else ())):
        return list(first) == list(second)
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if first.shape != second.shape:
        return False
    if name == "rotation" and first @ second < 0:
        second = -second
    if tolerance == 0:
        return np.array_equal(first, second)
    finite = np.isfinite(first)
    if not np.array_equal(finite, np.isfinite(second)) or not np.array_equal(first[~finite], second[~finite]):
        return False
    scale = np.maximum(1.0, np.abs(first[finite]))
    return bool((np.abs(first[finite] - second[finite]) <= tolerance * scale).all())


def homogeneous(position, quaternion) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_quat(np.asarray(quaternion, dtype=float), scalar_first=True).as_matrix()
    pose[:3, 3] = position
    return pose


def body_poses(scene) -> dict[str, np.ndarray]:
    """World poses at the start, by MuJoCo."""
    model = to_mujoco(scene, approximate=True)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = initial_state(scene, model)
    mujoco.mj_kinematics(model, data)
    return {body.name: homogeneous(data.body(body.name).xpos, data.body(body.name).xquat) for body in scene.bodies}
