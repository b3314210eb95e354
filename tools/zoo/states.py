"""Random states of a model, at least half of them in contact, and MuJoCo's answers at them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np

FINE, COARSE = 1e-18, 1e-15
"""MuJoCo's `ccd_tolerance`. Normals are off by the root of it; at the finer one its search gives up on some hulls that
overlap, and lists no contact at all."""
CONFIRMING = 1e-12
"""What a motion at the coarser one is confirmed by, where the finer one differs from it."""
NEAR = 1e-6
"""Points and distances (m), normals and relative accelerations that agree this well are equal."""
_TRIES = 40
_CALM = 1e5
"""Accelerations beyond this (m/s² or rad/s²) are of states that overlap too deeply to mean anything."""


@dataclass(frozen=True)
class Touch:
    """One contact."""

    pair: tuple[int, int]
    """Geoms, the lower number first."""
    distance: float
    """m, negative where the geoms overlap."""
    point: np.ndarray
    normal: np.ndarray
    """From the geom with the lower number to the other."""


@dataclass(frozen=True)
class State:
    """One state and what MuJoCo says of it."""

    q: np.ndarray
    qd: np.ndarray
    activation: np.ndarray
    control: np.ndarray
    qacc: np.ndarray
    contacts: list[Touch]
    tolerance: float
    """`ccd_tolerance` at which MuJoCo's search found the most contacts, the finer of equals."""


def load_exact(path: Path) -> mujoco.MjModel:
    """A model whose solver and collision search end at rounding error instead of at their tolerances."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.tolerance, model.opt.iterations = 0.0, 200
    model.opt.ls_tolerance, model.opt.ls_iterations = 1e-10, 200
    model.opt.ccd_tolerance, model.opt.ccd_iterations = FINE, 500
    model.opt.noslip_iterations = 0
    return model


def touch_of(a: int, b: int, distance: float, point: np.ndarray, normal: np.ndarray) -> Touch:
    """A contact with its geoms in order."""
    if a > b:
        return Touch((b, a), distance, point, -normal)
    return Touch((a, b), distance, point, normal)


def _contacts(data: mujoco.MjData) -> list[Touch]:
    found = (data.contact[k] for k in range(data.ncon))
    return [
        touch_of(int(c.geom1), int(c.geom2), float(c.dist), c.pos.copy(), c.frame[:3].copy())
        for c in found
        if c.exclude == 0
    ]


def _scatter(model: mujoco.MjModel, data: mujoco.MjData, rng: np.random.Generator, wide: bool) -> None:
    """A random start: joints within their ranges (or near the model's own pose), free bodies near where they stand."""
    mujoco.mj_resetData(model, data)
    if model.nkey and not wide:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    for j in range(model.njnt):
        at, kind = model.jnt_qposadr[j], mujoco.mjtJoint(model.jnt_type[j])
        if kind in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            low, high = model.jnt_range[j] if model.jnt_limited[j] else (data.qpos[at] - 1.0, data.qpos[at] + 1.0)
            if wide:
                data.qpos[at] = rng.uniform(low, high)
            else:
                data.qpos[at] = np.clip(data.qpos[at] + 0.1 * rng.normal() * min(1.0, high - low), low, high)
        else:
            turn = at + (3 if kind == mujoco.mjtJoint.mjJNT_FREE else 0)
            data.qpos[turn : turn + 4] += (0.5 if wide else 0.05) * rng.normal(size=4)
            if kind == mujoco.mjtJoint.mjJNT_FREE:
                data.qpos[at : at + 3] += 0.02 * rng.normal(size=3)
    mujoco.mj_normalizeQuat(model, data.qpos)


def _controls(model: mujoco.MjModel, rng: np.random.Generator) -> np.ndarray:
    low = np.where(model.actuator_ctrllimited, model.actuator_ctrlrange[:, 0], -1.0)
    high = np.where(model.actuator_ctrllimited, model.actuator_ctrlrange[:, 1], 1.0)
    return rng.uniform(low, high)


def random_states(model: mujoco.MjModel, count: int, seed: int) -> list[State]:
    """States of short random motions; where it can be found, every second one at least is in contact.

    Args:
        model: Whose states.
        count: How many.
        seed: Of everything random.
    """
    rng = np.random.default_rng(seed)
    data, states = mujoco.MjData(model), []
    for i in range(count):
        for attempt in range(_TRIES):
            _scatter(model, data, rng, wide=i % 4 == 3)
            data.qvel[:] = 0.3 * rng.normal(size=model.nv)
            data.ctrl[:] = _controls(model, rng)
            for _ in range(int(rng.integers(1, 120))):
                mujoco.mj_step(model, data)
            data.qvel[:] += 0.1 * rng.normal(size=model.nv)
            mujoco.mj_normalizeQuat(model, data.qpos)
            mujoco.mj_forward(model, data)
            calm = bool(np.isfinite(data.qacc).all() and np.abs(data.qacc).max(initial=0.0) < _CALM)
            last = attempt == _TRIES - 1
            if (calm and (data.ncon or i % 2)) or last:
                break
        kept = [a.copy() for a in (data.qpos, data.qvel, data.act, data.ctrl)]
        states.append(_evaluate(model, data, kept))
    return states


def _evaluate(model: mujoco.MjModel, data: mujoco.MjData, kept: list[np.ndarray]) -> State:
    """MuJoCo's answers at a state."""
    found = []
    for tolerance in (FINE, COARSE):
        model.opt.ccd_tolerance = tolerance
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = kept
        mujoco.mj_forward(model, data)
        found.append(State(*kept, data.qacc.copy(), _contacts(data), tolerance))
    model.opt.ccd_tolerance = FINE
    return max(found, key=lambda state: len({touch.pair for touch in state.contacts}))


def motion(model: mujoco.MjModel, state: State, steps: int) -> np.ndarray:
    """The motion from a state at the finest tolerance whose motion the next one confirms, else at the finest.

    At the finest one MuJoCo's search gives up in some steps, and puts contacts where there are none. Which motion is
    the reference depends on MuJoCo's own agreement with itself alone, never on ours.
    """
    made = [_motion(model, replace(state, tolerance=tolerance), steps) for tolerance in (FINE, COARSE, CONFIRMING)]
    for finer, coarser in zip(made, made[1:], strict=False):
        if apart_by(coarser, finer) <= NEAR:
            return finer
    return made[0]


def apart_by(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference of two motions, relative to the greatest number of the second where that is above 1."""
    return float(np.abs(a - b).max() / max(1.0, float(np.abs(b).max())))


def _motion(model: mujoco.MjModel, state: State, steps: int) -> np.ndarray:
    """(steps, nq + nv): the motion from a state under its own controls."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = state.q, state.qd, state.activation, state.control
    rows = []
    model.opt.ccd_tolerance = state.tolerance
    for _ in range(steps):
        mujoco.mj_step(model, data)
        rows.append(np.concatenate([data.qpos, data.qvel]))
    model.opt.ccd_tolerance = FINE
    return np.array(rows)
