"""Limits and dry friction of joints and tendons, from the scene to parameters."""

from __future__ import annotations

import numpy as np

from warpsim.core.precision import real, vec2, vec5
from warpsim.rigid.model.parameters import LimitParameters, TendonLimitParameters
from warpsim.rigid.model.tables import Tables
from warpsim.scene import Joint, Tendon
from warpsim.scene.description import JOINT_DOF_SIZE

_OPEN = (-np.inf, np.inf)


def joint_limits(t: Tables, joints: list[Joint], *, constraints: bool) -> LimitParameters:
    """Limits per joint and dry friction per dof; without constraints all are open and frictionless."""
    dofs = [j for j in joints for _ in range(JOINT_DOF_SIZE[j.kind])]
    p = LimitParameters()
    ranges = [j.limit if constraints and j.limit is not None else _OPEN for j in joints]
    p.range = t.parameter("limit.range", ranges, vec2)
    p.margin = t.parameter("limit.margin", [j.limit_margin for j in joints], real)
    p.solref = t.parameter("limit.solref", [j.limit_solref for j in joints], vec2)
    p.solimp = t.parameter("limit.solimp", [j.limit_solimp for j in joints], vec5)
    losses = [j.friction_loss if constraints else 0.0 for j in dofs]
    p.friction_loss = t.parameter("limit.friction_loss", losses, real)
    p.friction_solref = t.parameter("limit.friction_solref", [j.friction_solref for j in dofs], vec2)
    p.friction_solimp = t.parameter("limit.friction_solimp", [j.friction_solimp for j in dofs], vec5)
    return p


def tendon_limits(t: Tables, tendons: list[Tendon], *, constraints: bool) -> TendonLimitParameters:
    """Limits and dry friction per tendon; without constraints all are open and frictionless."""
    p = TendonLimitParameters()
    ranges = [x.limit if constraints and x.limit is not None else _OPEN for x in tendons]
    p.range = t.parameter("tendon_limit.range", ranges, vec2)
    p.margin = t.parameter("tendon_limit.margin", [x.limit_margin for x in tendons], real)
    p.solref = t.parameter("tendon_limit.solref", [x.limit_solref for x in tendons], vec2)
    p.solimp = t.parameter("tendon_limit.solimp", [x.limit_solimp for x in tendons], vec5)
    losses = [x.friction_loss if constraints else 0.0 for x in tendons]
    p.friction_loss = t.parameter("tendon_limit.friction_loss", losses, real)
    p.friction_solref = t.parameter("tendon_limit.friction_solref", [x.friction_solref for x in tendons], vec2)
    p.friction_solimp = t.parameter("tendon_limit.friction_solimp", [x.friction_solimp for x in tendons], vec5)
    return p
