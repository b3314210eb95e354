"""The same tosses in MuJoCo."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

from tools.reality.protocol import PLAIN_SCENE, RATE, SAMPLES

# With restitution 0.125 (the authors' estimate) as a damping ratio: e = exp(−πζ/√(1 − ζ²)) gives ζ = 0.55.
_AUTHORS = dict(friction=0.18, solref=(0.01, 0.55))


def authors_model(substeps: int) -> mujoco.MjModel:
    """MuJoCo with the authors' friction and restitution, mass and inertia."""
    spec = mujoco.MjSpec.from_file(str(PLAIN_SCENE))
    spec.option.timestep = 1 / RATE / substeps
    cube = spec.geom("cube")
    cube.friction[0] = _AUTHORS["friction"]
    cube.solref[:] = _AUTHORS["solref"]
    return spec.compile()


def fitted_model(path: Path) -> mujoco.MjModel:
    """A fitted file as MuJoCo reads it."""
    return mujoco.MjModel.from_xml_path(str(path))


def rollouts(model: mujoco.MjModel, starts: np.ndarray) -> np.ndarray:
    """(tosses, rows, 7) coordinates from states (tosses, 13)."""
    data = mujoco.MjData(model)
    substeps = round(1 / RATE / model.opt.timestep)
    made = np.full((len(starts), SAMPLES, 7), np.nan)
    for toss, start in enumerate(starts):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = start[:7], start[7:]
        made[toss, 0] = data.qpos
        for row in range(1, SAMPLES):
            for _ in range(substeps):
                mujoco.mj_step(model, data)
            made[toss, row] = data.qpos
    return made
