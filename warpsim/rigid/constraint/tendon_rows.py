"""Tendon limits and dry friction: rows for the solver (untaped) and forces at its solution (taped)."""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real
from warpsim.rigid.model.parameters import TendonLimitParameters
from warpsim.rigid.model.tendons import TendonMotion, TendonTopology, tendon_length, tendon_rate
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.row_settings import TendonRowSettings
from warpsim.solve.impedance import impedance, reference_acceleration, spring_damper, stiffness_weight
from warpsim.solve.row_forces import dry_force, unilateral_force
from warpsim.solve.rows import DRY_FRICTION, UNILATERAL, Rows, close_single


@wp.kernel
def _tendon_force_kernel(
    # topology, parameters
    t: TendonTopology,
    c: TendonRowSettings,
    x: TendonMotion,
    limit: TendonLimitParameters,
    tendon_weight: wp.array2d(dtype=real),
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
    for n in range(c.limit_count):
        i = c.limit_tendon[n]
        length = tendon_length(t, x, q, w, i)
        below = length - limit.range[w, i][0] - limit.margin[w, i]
        above = limit.range[w, i][1] - length - limit.margin[w, i]
        rate = tendon_rate(t, x.moment, qd, w, i)
        change = tendon_rate(t, x.moment, qdd, w, i)
        solref = limit.solref[w, i]
        solimp = limit.solimp[w, i]
        inverse = tendon_weight[w, i]
        if below < real(0.0):
            f = unilateral_force(solref, solimp, inverse, below, rate, change, h, c.safe)
            for k in range(t.start[i], t.start[i + 1]):
                dof_force[w, t.dof[k]] += x.moment[w, k] * f
        if above < real(0.0):
            f = unilateral_force(solref, solimp, inverse, above, -rate, -change, h, c.safe)
            for k in range(t.start[i], t.start[i + 1]):
                dof_force[w, t.dof[k]] += -x.moment[w, k] * f
    for n in range(c.friction_count):
        i = c.friction_tendon[n]
        f = dry_force(
            limit.friction_loss[w, i],
            limit.friction_solref[w, i],
            limit.friction_solimp[w, i],
            tendon_weight[w, i],
            tendon_rate(t, x.moment, qd, w, i),
            tendon_rate(t, x.moment, qdd, w, i),
            h,
            c.safe,
        )
        for k in range(t.start[i], t.start[i + 1]):
            dof_force[w, t.dof[k]] += x.moment[w, k] * f


@wp.func
def append_tendon(
    rows: Rows,
    d: Topology,
    t: TendonTopology,
    x: TendonMotion,
    w: int,
    i: int,
    n: int,
    factor: real,
) -> int:
    """Columns of `factor` times a tendon's length, from the n-th of a group of one row on; returns their new number."""
    columns = int(n)
    for k in range(t.start[i], t.start[i + 1]):
        if d.dof_prescribed[t.dof[k]] == 0:
            rows.column[w, rows.used[w, 2] + columns] = t.dof[k]
            rows.entry[w, rows.used[w, 3] + columns] = factor * x.moment[w, k]
            columns += 1
    return columns


@wp.kernel(enable_backward=False)
def _tendon_dry_rows_kernel(
    # topology, parameters
    d: Topology,
    t: TendonTopology,
    c: TendonRowSettings,
    x: TendonMotion,
    limit: TendonLimitParameters,
    tendon_weight: wp.array2d(dtype=real),
    timestep: wp.array(dtype=real),
    # state
    qd: wp.array2d(dtype=real),
    # out
    rows: Rows,
):
    w = natural(wp.tid())
    for n in range(c.friction_count):
        i = c.friction_tendon[n]
        loss = limit.friction_loss[w, i]
        if loss > real(0.0):
            solimp = limit.friction_solimp[w, i]
            b = spring_damper(limit.friction_solref[w, i], solimp, timestep[w], c.safe)[1]
            weight = stiffness_weight(impedance(solimp, real(0.0)), tendon_weight[w, i])
            columns = append_tendon(rows, d, t, x, w, i, 0, real(1.0))
            reference = -b * tendon_rate(t, x.moment, qd, w, i)
            close_single(rows, w, DRY_FRICTION, columns, weight, reference, loss)


@wp.kernel(enable_backward=False)
def _tendon_limit_rows_kernel(
    # topology, parameters
    d: Topology,
    t: TendonTopology,
    c: TendonRowSettings,
    x: TendonMotion,
    limit: TendonLimitParameters,
    tendon_weight: wp.array2d(dtype=real),
    timestep: wp.array(dtype=real),
    # state
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    # out
    rows: Rows,
):
    w = natural(wp.tid())
    for n in range(c.limit_count):
        i = c.limit_tendon[n]
        length = tendon_length(t, x, q, w, i)
        rate = tendon_rate(t, x.moment, qd, w, i)
        solimp = limit.solimp[w, i]
        kb = spring_damper(limit.solref[w, i], solimp, timestep[w], c.safe)
        for end in range(2):
            sign = real(1 - 2 * end)  # the lower end, then the upper one
            violation = sign * (length - limit.range[w, i][end]) - limit.margin[w, i]
            if violation < real(0.0):
                z = impedance(solimp, violation)
                columns = append_tendon(rows, d, t, x, w, i, 0, sign)
                reference = reference_acceleration(kb, z, violation, sign * rate)
                weight = stiffness_weight(z, tendon_weight[w, i])
                close_single(rows, w, UNILATERAL, columns, weight, reference, real(0.0))
