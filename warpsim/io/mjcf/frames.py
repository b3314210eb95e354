"""Where MuJoCo has the frames of a body: those that its compiler found to coincide it takes for one.

Frames within some 1e-6 of each other count as the same (`geom_sameframe`, `site_sameframe`, `body_sameframe`), and a
geom is then placed where the body, or its inertia, is, whatever `geom_pos` and `geom_quat` say. Faces of hulls turn by
up to that much, and with them contacts.
"""

from __future__ import annotations

import numpy as np

from warpsim.io.mjcf.engine import mujoco

_SAME = mujoco.mjtSameFrame


def _unit(rotation: np.ndarray) -> np.ndarray:
    return rotation / np.linalg.norm(rotation)


def inertia_frame(model: mujoco.MjModel, body: int) -> tuple[np.ndarray, np.ndarray]:
    """Position (3,) and unit quaternion (4,) of a body's inertial frame in the body's."""
    position, rotation = model.body_ipos[body].copy(), _unit(model.body_iquat[body])
    same = _SAME(model.body_sameframe[body])
    if same == _SAME.mjSAMEFRAME_BODY:
        position = np.zeros(3)
    if same in (_SAME.mjSAMEFRAME_BODY, _SAME.mjSAMEFRAME_BODYROT):
        rotation = np.array([1.0, 0.0, 0.0, 0.0])
    return position, rotation


def item_frame(model: mujoco.MjModel, kind: str, index: int) -> tuple[np.ndarray, np.ndarray]:
    """The same of a "geom" or "site" in the frame of its body."""
    position = getattr(model, f"{kind}_pos")[index].copy()
    rotation = _unit(getattr(model, f"{kind}_quat")[index])
    same = _SAME(getattr(model, f"{kind}_sameframe")[index])
    center, axes = inertia_frame(model, getattr(model, f"{kind}_bodyid")[index])
    if same == _SAME.mjSAMEFRAME_BODY:
        position = np.zeros(3)
    if same == _SAME.mjSAMEFRAME_INERTIA:
        position = center
    if same in (_SAME.mjSAMEFRAME_BODY, _SAME.mjSAMEFRAME_BODYROT):
        rotation = np.array([1.0, 0.0, 0.0, 0.0])
    if same in (_SAME.mjSAMEFRAME_INERTIA, _SAME.mjSAMEFRAME_INERTIAROT):
        rotation = axes
    return position, rotation
