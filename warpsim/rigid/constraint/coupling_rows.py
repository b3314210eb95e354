"""Equalities between joints or tendons: rows for the solver (untaped) and forces at its solution (taped).

A coupling holds x_a = polynomial(x_b), or x_a = polynomial's constant without b, where x is a joint's coordinate or a
tendon's length less that of the reference configuration.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec5
from warpsim.rigid.constraint.tendon_rows import append_tendon
from warpsim.rigid.model.equalities import JOINT, EqualityTopology
from warpsim.rigid.model.parameters import EqualityParameters
from warpsim.rigid.model.tendons import TendonMotion, TendonTopology, tendon_length, tendon_rate
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.row_settings import EqualitySettings
from warpsim.solve.impedance import impedance, reference_acceleration, spring_damper, stiffness_weight
from warpsim.solve.row_forces import bilateral_force
from warpsim.solve.rows import EQUALITY, Rows, close_single


@wp.func
def _coordinate(
    c: EqualitySettings,
    t: TendonTopology,
    x: TendonMotion,
    tendon_reference: wp.array2d(dtype=real),
    reference: wp.array2d(dtype=real),
    q: wp.array2d(dtype=real),
    w: int,
    kind: int,
    i: int,
) -> real:
    """x of joint or tendon i; 0 for none (i < 0)."""
    if i < 0:
        return real(0.0)
    if kind == JOINT:
        return q[w, c.joint_q[i]] - reference[w, c.joint_q[i]]
    if t.spatial[i] == 1:
        return tendon_length(t, x, q, w, i) - tendon_reference[w, i]
    return tendon_length(t, x, q, w, i) - tendon_length(t, x, reference, w, i)


@wp.func
def _rate(
    c: EqualitySettings,
    t: TendonTopology,
    x: TendonMotion,
    qd: wp.array2d(dtype=real),
    w: int,
    kind: int,
    i: int,
) -> real:
    """Rate of x at the dofs' rates qd."""
    if i < 0:
        return real(0.0)
    if kind == JOINT:
        return qd[w, c.joint_dof[i]]
    return tendon_rate(t, x.moment, qd, w, i)


@wp.func
def _weight(
    c: EqualitySettings,
    dof_weight: wp.array2d(dtype=real),
    tendon_weight: wp.array2d(dtype=real),
    w: int,
    kind: int,
    i: int,
) -> real:
    """Inverse inertia that x acts on."""
    if i < 0:
        return real(0.0)
    if kind == JOINT:
        return dof_weight[w, c.joint_dof[i]]
    return tendon_weight[w, i]


@wp.func
def _polynomial(p: vec5, x: real) -> real:
    return p[0] + x * (p[1] + x * (p[2] + x * (p[3] + x * p[4])))


@wp.func
def _slope(p: vec5, x: real, i: int) -> real:
    """The polynomial's derivative; 0 if there is no second coordinate (i < 0)."""
    if i < 0:
        return real(0.0)
    return p[1] + x * (real(2.0) * p[2] + x * (real(3.0) * p[3] + x * real(4.0) * p[4]))


@wp.func
def _push(
    c: EqualitySettings,
    t: TendonTopology,
    x: TendonMotion,
    w: int,
    kind: int,
    i: int,
    f: real,
    dof_force: wp.array2d(dtype=real),
):
    """Adds a force f on x to the dofs that move it."""
    if i >= 0:
        if kind == JOINT:
            dof_force[w, c.joint_dof[i]] += f
        else:
            for k in range(t.start[i], t.start[i + 1]):
                dof_force[w, t.dof[k]] += x.moment[w, k] * f


@wp.kernel
def _coupling_force_kernel(
    # topology, parameters
    c: EqualitySettings,
    y: EqualityTopology,
    t: TendonTopology,
    e: EqualityParameters,
    x: TendonMotion,
    tendon_reference: wp.array2d(dtype=real),
    reference: wp.array2d(dtype=real),
    dof_weight: wp.array2d(dtype=real),
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
    for n in range(c.coupling_count):
        i = c.coupling[n]
        kind = y.kind[i]
        a = y.a[i]
        b = y.b[i]
        xb = _coordinate(c, t, x, tendon_reference, reference, q, w, kind, b)
        slope = _slope(e.polynomial[w, i], xb, b)
        violation = _coordinate(c, t, x, tendon_reference, reference, q, w, kind, a) - _polynomial(
            e.polynomial[w, i], xb
        )
        rate = _rate(c, t, x, qd, w, kind, a) - slope * _rate(c, t, x, qd, w, kind, b)
        change = _rate(c, t, x, qdd, w, kind, a) - slope * _rate(c, t, x, qdd, w, kind, b)
        inverse = _weight(c, dof_weight, tendon_weight, w, kind, a) + _weight(c, dof_weight, tendon_weight, w, kind, b)
        f = bilateral_force(e.solref[w, i], e.solimp[w, i], inverse, violation, rate, change, timestep[w], c.safe)
        _push(c, t, x, w, kind, a, f, dof_force)
        _push(c, t, x, w, kind, b, -slope * f, dof_force)


@wp.func
def _append_coordinate(
    rows: Rows,
    d: Topology,
    c: EqualitySettings,
    t: TendonTopology,
    x: TendonMotion,
    w: int,
    kind: int,
    i: int,
    n: int,
    factor: real,
) -> int:
    """Columns of `factor` times x, from the group's n-th on; returns their new number."""
    if i < 0:
        return n
    if kind != JOINT:
        return append_tendon(rows, d, t, x, w, i, n, factor)
    dof = c.joint_dof[i]
    if d.dof_prescribed[dof] == 1:
        return n
    rows.column[w, rows.used[w, 2] + n] = dof
    rows.entry[w, rows.used[w, 3] + n] = factor
    return n + 1


@wp.kernel(enable_backward=False)
def _coupling_rows_kernel(
    # topology, parameters
    d: Topology,
    c: EqualitySettings,
    y: EqualityTopology,
    t: TendonTopology,
    e: EqualityParameters,
    x: TendonMotion,
    tendon_reference: wp.array2d(dtype=real),
    reference: wp.array2d(dtype=real),
    dof_weight: wp.array2d(dtype=real),
    tendon_weight: wp.array2d(dtype=real),
    timestep: wp.array(dtype=real),
    # state
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    # out
    rows: Rows,
):
    w = natural(wp.tid())
    for n in range(c.coupling_count):
        i = c.coupling[n]
        kind = y.kind[i]
        a = y.a[i]
        b = y.b[i]
        xb = _coordinate(c, t, x, tendon_reference, reference, q, w, kind, b)
        slope = _slope(e.polynomial[w, i], xb, b)
        violation = _coordinate(c, t, x, tendon_reference, reference, q, w, kind, a) - _polynomial(
            e.polynomial[w, i], xb
        )
        rate = _rate(c, t, x, qd, w, kind, a) - slope * _rate(c, t, x, qd, w, kind, b)
        inverse = _weight(c, dof_weight, tendon_weight, w, kind, a) + _weight(c, dof_weight, tendon_weight, w, kind, b)
        z = impedance(e.solimp[w, i], violation)
        kb = spring_damper(e.solref[w, i], e.solimp[w, i], timestep[w], c.safe)
        columns = _append_coordinate(rows, d, c, t, x, w, kind, a, 0, real(1.0))
        columns = _append_coordinate(rows, d, c, t, x, w, kind, b, columns, -slope)
        aref = reference_acceleration(kb, z, violation, rate)
        close_single(rows, w, EQUALITY, columns, stiffness_weight(z, inverse), aref, real(0.0))
