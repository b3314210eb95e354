"""Joint limits and dry friction: rows for the solver (untaped) and forces at its solution (taped)."""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec3
from warpsim.core.spatial import quat_log, read_quat
from warpsim.rigid.model.parameters import LimitParameters
from warpsim.rigid.work.row_settings import JointRowSettings
from warpsim.solve.impedance import impedance, reference_acceleration, spring_damper, stiffness_weight
from warpsim.solve.row_forces import dry_force, unilateral_force
from warpsim.solve.rows import DRY_FRICTION, UNILATERAL, Rows, add_single, close_group


@wp.func
def _triple(x: wp.array2d(dtype=real), w: int, i: int) -> vec3:
    return vec3(x[w, i], x[w, i + 1], x[w, i + 2])


@wp.kernel
def _joint_force_kernel(
    # topology, parameters
    c: JointRowSettings,
    limit: LimitParameters,
    dof_weight: wp.array2d(dtype=real),
    timestep: wp.array(dtype=real),
    # state, solution
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    # work out
    dof_force: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    h = timestep[w]
    for i in range(c.limit_count):
        j = c.limit_joint[i]
        d = c.limit_dof[i]
        reach = limit.range[w, j]
        margin = limit.margin[w, j]
        solref = limit.solref[w, j]
        solimp = limit.solimp[w, j]
        inverse = dof_weight[w, d]
        if c.limit_ball[i] == 1:
            turn = quat_log(read_quat(q, w, c.limit_q[i]))
            angle2 = wp.dot(turn, turn)
            if angle2 > real(0.0):
                angle = wp.sqrt(angle2)
                violation = reach[1] - angle - margin
                if violation < real(0.0):
                    axis = turn / angle
                    f = unilateral_force(
                        solref,
                        solimp,
                        inverse,
                        violation,
                        -wp.dot(axis, _triple(qd, w, d)),
                        -wp.dot(axis, _triple(qdd, w, d)),
                        h,
                        c.safe,
                    )
                    for e in range(3):
                        dof_force[w, d + e] += -axis[e] * f
        else:
            x = q[w, c.limit_q[i]]
            below = x - reach[0] - margin
            above = reach[1] - x - margin
            if below < real(0.0):
                dof_force[w, d] += unilateral_force(solref, solimp, inverse, below, qd[w, d], qdd[w, d], h, c.safe)
            if above < real(0.0):
                dof_force[w, d] += -unilateral_force(solref, solimp, inverse, above, -qd[w, d], -qdd[w, d], h, c.safe)
    for i in range(c.friction_count):
        d = c.friction_dof[i]
        dof_force[w, d] += dry_force(
            limit.friction_loss[w, d],
            limit.friction_solref[w, d],
            limit.friction_solimp[w, d],
            dof_weight[w, d],
            qd[w, d],
            qdd[w, d],
            h,
            c.safe,
        )


@wp.kernel(enable_backward=False)
def _dry_rows_kernel(
    c: JointRowSettings,
    limit: LimitParameters,
    dof_weight: wp.array2d(dtype=real),
    timestep: wp.array(dtype=real),
    qd: wp.array2d(dtype=real),
    rows: Rows,
):
    w = natural(wp.tid())
    for i in range(c.friction_count):
        d = c.friction_dof[i]
        loss = limit.friction_loss[w, d]
        if loss > real(0.0):
            solimp = limit.friction_solimp[w, d]
            kb = spring_damper(limit.friction_solref[w, d], solimp, timestep[w], c.safe)
            weight = stiffness_weight(impedance(solimp, real(0.0)), dof_weight[w, d])
            add_single(rows, w, DRY_FRICTION, d, real(1.0), weight, -kb[1] * qd[w, d], loss)


@wp.func
def _add_limit(
    rows: Rows,
    limit: LimitParameters,
    w: int,
    j: int,
    dof: int,
    sign: real,
    violation: real,
    rate: real,
    inverse: real,
    h: real,
    safe: int,
):
    solimp = limit.solimp[w, j]
    d = impedance(solimp, violation)
    kb = spring_damper(limit.solref[w, j], solimp, h, safe)
    reference = reference_acceleration(kb, d, violation, sign * rate)
    add_single(rows, w, UNILATERAL, dof, sign, stiffness_weight(d, inverse), reference, real(0.0))


@wp.func
def _add_ball_limit(
    rows: Rows,
    limit: LimitParameters,
    w: int,
    j: int,
    dof: int,
    turn: vec3,
    rate: vec3,
    inverse: real,
    h: real,
    safe: int,
):
    angle = wp.length(turn)
    violation = limit.range[w, j][1] - angle - limit.margin[w, j]
    if angle > real(0.0) and violation < real(0.0):
        axis = turn / angle
        solimp = limit.solimp[w, j]
        d = impedance(solimp, violation)
        kb = spring_damper(limit.solref[w, j], solimp, h, safe)
        r = rows.used[w, 1]
        for e in range(3):
            rows.column[w, rows.used[w, 2] + e] = dof + e
            rows.entry[w, rows.used[w, 3] + e] = -axis[e]
        rows.weight[w, r] = stiffness_weight(d, inverse)
        rows.reference[w, r] = reference_acceleration(kb, d, violation, -wp.dot(axis, rate))
        close_group(rows, w, UNILATERAL, 1, 3)


@wp.kernel(enable_backward=False)
def _limit_rows_kernel(
    c: JointRowSettings,
    limit: LimitParameters,
    dof_weight: wp.array2d(dtype=real),
    timestep: wp.array(dtype=real),
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    rows: Rows,
):
    w = natural(wp.tid())
    h = timestep[w]
    for i in range(c.limit_count):
        j = c.limit_joint[i]
        d = c.limit_dof[i]
        if c.limit_ball[i] == 1:
            turn = quat_log(read_quat(q, w, c.limit_q[i]))
            _add_ball_limit(rows, limit, w, j, d, turn, _triple(qd, w, d), dof_weight[w, d], h, c.safe)
        else:
            x = q[w, c.limit_q[i]]
            below = x - limit.range[w, j][0] - limit.margin[w, j]
            above = limit.range[w, j][1] - x - limit.margin[w, j]
            if below < real(0.0):
                _add_limit(rows, limit, w, j, d, real(1.0), below, qd[w, d], dof_weight[w, d], h, c.safe)
            if above < real(0.0):
                _add_limit(rows, limit, w, j, d, real(-1.0), above, qd[w, d], dof_weight[w, d], h, c.safe)
