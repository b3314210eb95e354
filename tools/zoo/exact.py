"""Which of two answers is MuJoCo's own optimum, where its search or its solver ended at a tolerance.

The normal of two overlapping or separate convex shapes is the direction along which their gap is greatest, and the
accelerations are those at which the gradient of the convex problem vanishes. Both can be asked of any answer without
trusting whoever gave it.
"""

from __future__ import annotations

import mujoco
import numpy as np

from tools.zoo.states import State, Touch

ROUNDING = 1e-12
"""m by which a gap may fall short of another's and still count as no smaller."""


def furthest(model: mujoco.MjModel, data: mujoco.MjData, geom: int, way: np.ndarray) -> float:
    """How far (m) a geom reaches along a unit world direction; infinite for kinds that are not convex and bounded."""
    frame, size = data.geom_xmat[geom].reshape(3, 3), model.geom_size[geom]
    local, center = frame.T @ way, float(way @ data.geom_xpos[geom])
    kind = mujoco.mjtGeom(model.geom_type[geom])
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        return center + float(size[0])
    if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        return center + float(size[0] + size[1] * abs(local[2]))
    if kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID:
        return center + float(np.linalg.norm(size * local))
    if kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
        return center + float(size[0] * np.hypot(local[0], local[1]) + size[1] * abs(local[2]))
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return center + float(size @ np.abs(local))
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        return center + float((model.mesh_vert[first : first + count] @ local).max())
    return np.inf


def gap_along(model: mujoco.MjModel, data: mujoco.MjData, touch: Touch) -> float:
    """Gap (m) of a contact's geoms along its normal: nowhere greater than at the true one."""
    a, b = touch.pair
    return -furthest(model, data, b, -touch.normal) - furthest(model, data, a, touch.normal)


def at_the_optimum(model: mujoco.MjModel, data: mujoco.MjData, mine: list[Touch], theirs: list[Touch]) -> bool:
    """Whether one pair's normals differ, and ours are where the gap is no smaller than along any of MuJoCo's."""
    if not mine or not theirs:
        return False
    apart = max(float(np.abs(m.normal - t.normal).max()) for m in mine for t in theirs)
    ours, best = min(gap_along(model, data, m) for m in mine), max(gap_along(model, data, t) for t in theirs)
    return bool(apart > 1e-6 and np.isfinite(ours) and ours >= best - ROUNDING)


def place(model: mujoco.MjModel, state: State) -> mujoco.MjData:
    """MuJoCo's data at a state, with its constraints."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = state.q, state.qd, state.activation, state.control
    model.opt.ccd_tolerance = state.tolerance
    mujoco.mj_forward(model, data)
    return data


def residual(model: mujoco.MjModel, data: mujoco.MjData, qacc: np.ndarray) -> float:
    """Largest component of the gradient of MuJoCo's convex problem at some accelerations, N or N·m."""
    inertial, off = np.zeros(model.nv), np.zeros(data.nefc)
    mujoco.mj_mulM(model, data, inertial, qacc - data.qacc_smooth)
    mujoco.mj_mulJacVec(model, data, off, qacc)
    mujoco.mj_constraintUpdate(model, data, off - data.efc_aref, np.zeros(1), 0)
    return float(np.abs(inertial - data.qfrc_constraint).max(initial=0.0))
