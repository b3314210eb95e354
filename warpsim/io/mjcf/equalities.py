"""Equality constraints of a MuJoCo model."""

from __future__ import annotations

import numpy as np

from warpsim.io.mjcf.engine import mujoco
from warpsim.io.mjcf.source import MjSource
from warpsim.scene.constraints import Equality

_KINDS = {
    mujoco.mjtEq.mjEQ_CONNECT: "connect",
    mujoco.mjtEq.mjEQ_WELD: "weld",
    mujoco.mjtEq.mjEQ_JOINT: "joint",
    mujoco.mjtEq.mjEQ_TENDON: "tendon",
}


def read_equalities(source: MjSource) -> list[Equality]:
    """Equalities that can be modeled; the others are noted as unsupported and left out."""
    equalities = []
    for index in range(source.model.neq):
        kind = mujoco.mjtEq(source.model.eq_type[index])
        path = source.path("equality", index)
        if kind not in _KINDS:
            source.unsupported(path, f"type {kind.name.removeprefix('mjEQ_').lower()}", "it is not modeled")
            continue
        equalities.append(_read_equality(source, index, _KINDS[kind]))
    return equalities


def _read_equality(source: MjSource, index: int, kind: str) -> Equality:
    model = source.model
    equality = Equality(
        name=source.names["equality"][index],
        kind=kind,
        active=bool(model.eq_active0[index]) and not source.disabled("equality"),
        solref=model.eq_solref[index].copy(),
        solimp=model.eq_solimp[index].copy(),
    )
    first, second = int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
    if kind in ("joint", "tendon"):
        equality.a = source.names[kind][first]
        equality.b = source.names[kind][second] if second >= 0 else None
        equality.polynomial = model.eq_data[index, :5].copy()
    elif model.eq_objtype[index] == mujoco.mjtObj.mjOBJ_SITE:
        _hold_sites(source, equality, first, second, model.eq_data[index])
    else:
        _hold_bodies(source, equality, first, second, model.eq_data[index])
    return equality


def _hold_bodies(source: MjSource, equality: Equality, first: int, second: int, data: np.ndarray) -> None:
    """connect: data = point in a, point in b. weld: data = point in b, the same in a, rotation of b in a, scale."""
    equality.a, equality.b = source.body_name(first), source.body_name(second)
    equality.anchor = data[:3].copy()
    if equality.kind == "connect":
        equality.anchor_b = data[3:6].copy()
    else:
        _set_weld(equality, point_a=data[3:6], rotation=data[6:10], scale=data[10])


def _hold_sites(source: MjSource, equality: Equality, first: int, second: int, data: np.ndarray) -> None:
    """The same between the sites' bodies, with the sites' origins as points and their axes aligned.

    MuJoCo measures a weld's rotation error in the axes of the second site, here it is in those of the second body; the
    three rotational rows share one stiffness, so turning them by a constant rotation leaves the force unchanged.
    """
    model = source.model
    equality.a = source.body_name(model.site_bodyid[first])
    equality.b = source.body_name(model.site_bodyid[second])
    if equality.kind == "connect":
        equality.anchor = model.site_pos[first].copy()
        equality.anchor_b = model.site_pos[second].copy()
        return
    equality.anchor = model.site_pos[second].copy()
    inverse, rotation = np.empty(4), np.empty(4)
    mujoco.mju_negQuat(inverse, model.site_quat[second])
    mujoco.mju_mulQuat(rotation, model.site_quat[first], inverse)
    _set_weld(equality, point_a=model.site_pos[first], rotation=rotation, scale=data[10])


def _set_weld(equality: Equality, point_a: np.ndarray, rotation: np.ndarray, scale: float) -> None:
    """Turns the held point in a's frame into the pose of b in a: p_b = point_a − R · point_b."""
    rotation = rotation / np.linalg.norm(rotation)
    turned = np.empty(3)
    mujoco.mju_rotVecQuat(turned, equality.anchor, rotation)
    equality.relative_pose = np.concatenate([point_a - turned, rotation])
    equality.torque_scale = float(scale)
