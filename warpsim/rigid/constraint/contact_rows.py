"""Contacts: their rows for the solver (untaped), and their forces at its solution (taped)."""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import mat33, real, vec2, vec3, vec5, vec6
from warpsim.core.spatial import angular, point_rate
from warpsim.rigid.constraint.contact_law import contact_force, contact_row, relative_rates, wrench_of
from warpsim.rigid.model.parameters import PairParameters
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.row_settings import ContactSettings
from warpsim.solve.rows import ELLIPTIC, UNILATERAL, Rows, close_group


@wp.kernel
def _contact_force_kernel(
    # topology, parameters
    t: Topology,
    c: ContactSettings,
    pair: PairParameters,
    body_weight: wp.array2d(dtype=vec2),
    timestep: wp.array(dtype=real),
    # contacts
    role: wp.array2d(dtype=wp.int32),
    lift: wp.array2d(dtype=real),
    count: wp.array(dtype=wp.int32),
    contact_pair: wp.array2d(dtype=wp.int32),
    distance: wp.array2d(dtype=real),
    point: wp.array2d(dtype=vec3),
    frame: wp.array2d(dtype=mat33),
    # work in
    origin: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec6),
    acceleration: wp.array2d(dtype=vec6),
    # work out
    force: wp.array2d(dtype=vec6),
    wrench: wp.array2d(dtype=vec6),
):
    w = natural(wp.tid())
    for k in range(wp.min(count[w], contact_pair.shape[1])):
        i = contact_pair[w, k]
        x = frame[w, k]
        row = contact_row(
            t, c, pair, body_weight, timestep[w], role, lift, w, k, i, distance[w, k], point[w, k], x, origin, velocity
        )
        if row.acts == 1:
            twist_a = acceleration[w, row.last_a]
            twist_b = acceleration[w, row.last_b]
            changes = relative_rates(x, twist_a, twist_b, row.arm_a, row.arm_b, row.dim)
            f = contact_force(row, changes - row.reference)
            force[w, k] = f
            wrench[w, c.shape_body[c.pair_shapes[i, 1]]] += wrench_of(x, f, row.arm_b)
            wrench[w, c.shape_body[c.pair_shapes[i, 0]]] += -wrench_of(x, f, row.arm_a)
        else:
            force[w, k] = vec6()


@wp.func
def _component(move: vec3, turn: vec3, r: int) -> real:
    if r < 3:
        return move[r]
    return turn[r - 3]


@wp.func
def _append_column(
    rows: Rows, w: int, n: int, dof: int, twist: vec6, arm: vec3, frame: mat33, friction: vec5, dim: int, pyramid: int
):
    """Writes the group's n-th column: the contact rows of a unit rate of one dof."""
    move = frame * point_rate(twist, arm)
    turn = frame * angular(twist)
    rows.column[w, rows.used[w, 2] + n] = dof
    if pyramid == 1:
        base = rows.used[w, 3] + n * 2 * (dim - 1)
        for j in range(dim - 1):
            side = friction[j] * _component(move, turn, j + 1)
            rows.entry[w, base + 2 * j] = move[0] + side
            rows.entry[w, base + 2 * j + 1] = move[0] - side
    else:
        base = rows.used[w, 3] + n * dim
        for r in range(dim):
            rows.entry[w, base + r] = _component(move, turn, r)


@wp.func
def _append_columns(
    rows: Rows,
    t: Topology,
    axis: wp.array2d(dtype=vec6),
    w: int,
    ka: int,
    kb: int,
    arm_a: vec3,
    arm_b: vec3,
    frame: mat33,
    friction: vec5,
    dim: int,
    pyramid: int,
) -> int:
    """Columns of all dofs that move one body but not the other, prescribed ones left out; returns their number.

    Both chains run from the bodies to their root with falling dof numbers and share their tail, if any: whichever dof
    is larger belongs to one body alone.
    """
    n = int(0)
    da = ka - 1
    db = kb - 1
    while da != db:
        d = wp.max(da, db)
        if t.dof_prescribed[d] == 0:
            if da > db:
                _append_column(rows, w, n, d, -axis[w, d], arm_a, frame, friction, dim, pyramid)
            else:
                _append_column(rows, w, n, d, axis[w, d], arm_b, frame, friction, dim, pyramid)
            n += 1
        if da > db:
            da = t.dof_prev[d] - 1
        else:
            db = t.dof_prev[d] - 1
    return n


@wp.func
def _write_edges(rows: Rows, w: int, dim: int, weight: real, reference: vec6, friction: vec5):
    r = rows.used[w, 1]
    for j in range(dim - 1):
        side = friction[j] * reference[j + 1]
        rows.weight[w, r + 2 * j] = weight
        rows.weight[w, r + 2 * j + 1] = weight
        rows.reference[w, r + 2 * j] = reference[0] + side
        rows.reference[w, r + 2 * j + 1] = reference[0] - side


@wp.func
def _write_cone(rows: Rows, w: int, dim: int, weight: real, reference: vec6, mu: real, friction: vec5):
    r = rows.used[w, 1]
    rows.reference[w, r] = reference[0]
    rows.weight[w, r] = weight
    rows.scale[w, r] = mu
    for j in range(1, dim):
        ratio = friction[j - 1] / mu
        rows.reference[w, r + j] = reference[j]
        rows.weight[w, r + j] = weight * ratio * ratio
        rows.scale[w, r + j] = friction[j - 1]


@wp.kernel(enable_backward=False)
def _contact_rows_kernel(
    # topology, parameters
    t: Topology,
    c: ContactSettings,
    pair: PairParameters,
    body_weight: wp.array2d(dtype=vec2),
    timestep: wp.array(dtype=real),
    # contacts
    role: wp.array2d(dtype=wp.int32),
    lift: wp.array2d(dtype=real),
    count: wp.array(dtype=wp.int32),
    contact_pair: wp.array2d(dtype=wp.int32),
    distance: wp.array2d(dtype=real),
    point: wp.array2d(dtype=vec3),
    frame: wp.array2d(dtype=mat33),
    # work in
    origin: wp.array2d(dtype=vec3),
    axis: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    # out
    rows: Rows,
):
    w = natural(wp.tid())
    if count[w] > contact_pair.shape[1]:
        # contacts were dropped: make the step fail, whoever looks next finds `count`
        rows.overflow[w] = 1
    for k in range(wp.min(count[w], contact_pair.shape[1])):
        i = contact_pair[w, k]
        f = frame[w, k]
        row = contact_row(
            t, c, pair, body_weight, timestep[w], role, lift, w, k, i, distance[w, k], point[w, k], f, origin, velocity
        )
        if row.acts == 1:
            columns = _append_columns(
                rows, t, axis, w, row.last_a, row.last_b, row.arm_a, row.arm_b, f, row.friction, row.dim, row.pyramid
            )
            if row.pyramid == 1:
                _write_edges(rows, w, row.dim, row.weight, row.reference, row.friction)
                close_group(rows, w, UNILATERAL, 2 * (row.dim - 1), columns)
            else:
                _write_cone(rows, w, row.dim, row.weight, row.reference, row.mu, row.friction)
                close_group(rows, w, wp.where(row.dim == 1, UNILATERAL, ELLIPTIC), row.dim, columns)
