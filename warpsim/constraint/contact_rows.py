"""Contacts: their rows for the solver (untaped), and their forces at its solution (taped).

Both use the same functions for softness and references. Forces act in body space: twist of the two bodies at the
contact point → rows in the contact frame → force → wrenches on the two bodies, so no adjoint of J exists.
"""

from __future__ import annotations

import warp as wp

from warpsim.constraint.cone import elliptic_force
from warpsim.constraint.impedance import reference_acceleration, spring_damper, stiffness_weight
from warpsim.constraint.rows import ELLIPTIC, UNILATERAL, Rows, close_group
from warpsim.constraint.softening import soft_impedance
from warpsim.model.parameters import PairParameters
from warpsim.model.topology import Topology
from warpsim.precision import mat33, real, vec2, vec3, vec5, vec6
from warpsim.spatial import angular, point_rate, spatial


@wp.struct
class ContactSettings:
    """What is fixed about contacts."""

    pair_shapes: wp.array2d(dtype=wp.int32)  # (np, 2)
    pair_dim: wp.array(dtype=wp.int32)  # (np,) 1, 3, 4 or 6
    shape_body: wp.array(dtype=wp.int32)  # (ns,)
    pyramidal: wp.int32
    safe: wp.int32  # keep time constants at two steps or more
    root_impratio: real  # √impratio
    softening: real  # m, how far outside their margins contacts begin to act


@wp.func
def relative_rates(frame: mat33, twist_a: vec6, twist_b: vec6, arm_a: vec3, arm_b: vec3, dim: int) -> vec6:
    """Motion of b relative to a in the contact frame: normal, tangents, torsion, rolling; zero from `dim` on."""
    move = frame * (point_rate(twist_b, arm_b) - point_rate(twist_a, arm_a))
    if dim == 1:
        return vec6(move[0], real(0.0), real(0.0), real(0.0), real(0.0), real(0.0))
    if dim == 3:
        return vec6(move[0], move[1], move[2], real(0.0), real(0.0), real(0.0))
    turn = frame * (angular(twist_b) - angular(twist_a))
    if dim == 4:
        return vec6(move[0], move[1], move[2], turn[0], real(0.0), real(0.0))
    return vec6(move[0], move[1], move[2], turn[0], turn[1], turn[2])


@wp.func
def _friction_spring(pair: PairParameters, w: int, i: int) -> vec2:
    s = pair.solref_friction[w, i]
    if s[0] == real(0.0) and s[1] == real(0.0):
        return pair.solref[w, i]
    return s


@wp.func
def elliptic_reference(
    pair: PairParameters, w: int, i: int, d: real, violation: real, rates: vec6, h: real, safe: int
) -> vec6:
    """aref of the rows of an elliptic contact; friction rows have damping but no spring."""
    kb = spring_damper(pair.solref[w, i], pair.solimp[w, i], h, safe)
    b = spring_damper(_friction_spring(pair, w, i), pair.solimp[w, i], h, safe)[1]
    return vec6(
        reference_acceleration(kb, d, violation, rates[0]),
        -b * rates[1],
        -b * rates[2],
        -b * rates[3],
        -b * rates[4],
        -b * rates[5],
    )


@wp.func
def pyramid_weight(d: real, translation: real, friction: vec5, mu: real) -> real:
    """D of all edges of a friction pyramid: from the first edge's inverse inertia, with R scaled by 2μ²."""
    edge = translation * (real(1.0) + friction[0] * friction[0])
    return stiffness_weight(d, edge) / (real(2.0) * mu * mu)


@wp.func
def _edge_force(y_normal: real, y_tangent: real, friction: real, weight: real) -> vec2:
    """(normal, tangent) force of the two edges along one friction direction."""
    plus = y_normal + friction * y_tangent
    minus = y_normal - friction * y_tangent
    f_plus = real(0.0)
    f_minus = real(0.0)
    if plus < real(0.0):
        f_plus = -weight * plus
    if minus < real(0.0):
        f_minus = -weight * minus
    return vec2(f_plus + f_minus, friction * (f_plus - f_minus))


@wp.func
def pyramid_force(y: vec6, weight: real, friction: vec5, dim: int) -> vec6:
    """Summed force of the pyramid's edges in the contact frame."""
    e1 = _edge_force(y[0], y[1], friction[0], weight)
    e2 = _edge_force(y[0], y[2], friction[1], weight)
    if dim == 3:
        return vec6(e1[0] + e2[0], e1[1], e2[1], real(0.0), real(0.0), real(0.0))
    e3 = _edge_force(y[0], y[3], friction[2], weight)
    if dim == 4:
        return vec6(e1[0] + e2[0] + e3[0], e1[1], e2[1], e3[1], real(0.0), real(0.0))
    e4 = _edge_force(y[0], y[4], friction[3], weight)
    e5 = _edge_force(y[0], y[5], friction[4], weight)
    return vec6(e1[0] + e2[0] + e3[0] + e4[0] + e5[0], e1[1], e2[1], e3[1], e4[1], e5[1])


@wp.func
def pyramid_change(y: vec6, z: vec6, weight: real, friction: vec5, dim: int) -> vec6:
    """Derivative of `pyramid_force` along z: edges that do not push contribute nothing."""
    total = vec6()
    for j in range(1, dim):
        for side in range(2):
            f = friction[j - 1] * real(1 - 2 * side)
            if y[0] + f * y[j] < real(0.0):
                push = -weight * (z[0] + f * z[j])
                total[0] = total[0] + push
                total[j] = total[j] + f * push
    return total


@wp.func
def contact_gap(
    pair: PairParameters,
    w: int,
    i: int,
    pyramid: int,
    safe: int,
    d: real,
    violation: real,
    rates: vec6,
    accelerations: vec6,
    h: real,
) -> vec6:
    """y = J a − aref in the contact frame, from relative rates (J v) and accelerations (J a)."""
    if pyramid == 0:
        return accelerations - elliptic_reference(pair, w, i, d, violation, rates, h, safe)
    # every edge has J = normal ± friction·tangent, so its spring acts on the normal and its damper on both
    kb = spring_damper(pair.solref[w, i], pair.solimp[w, i], h, safe)
    return vec6(
        accelerations[0] - reference_acceleration(kb, d, violation, rates[0]),
        accelerations[1] + kb[1] * rates[1],
        accelerations[2] + kb[1] * rates[2],
        accelerations[3] + kb[1] * rates[3],
        accelerations[4] + kb[1] * rates[4],
        accelerations[5] + kb[1] * rates[5],
    )


@wp.func
def _contact_force(y: vec6, d: real, translation: real, mu: real, friction: vec5, dim: int, pyramid: int) -> vec6:
    """Force in the contact frame."""
    if pyramid == 1:
        return pyramid_force(y, pyramid_weight(d, translation, friction, mu), friction, dim)
    return elliptic_force(y, stiffness_weight(d, translation), mu, friction, dim)


@wp.kernel
def _contact_force_kernel(
    # topology, parameters
    t: Topology,
    c: ContactSettings,
    pair: PairParameters,
    body_weight: wp.array2d(dtype=vec2),
    timestep: wp.array(dtype=real),
    # contacts
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
    w = wp.tid()
    for k in range(wp.min(count[w], contact_pair.shape[1])):
        i = contact_pair[w, k]
        a = c.shape_body[c.pair_shapes[i, 0]]
        b = c.shape_body[c.pair_shapes[i, 1]]
        violation = distance[w, k] - pair.margin[w, i] - c.softening
        if violation < real(0.0):
            arm_a = point[w, k] - origin[w, t.body_tree[a]]
            arm_b = point[w, k] - origin[w, t.body_tree[b]]
            ka = t.body_last_dof[a]
            kb = t.body_last_dof[b]
            dim = c.pair_dim[i]
            rates = relative_rates(frame[w, k], velocity[w, ka], velocity[w, kb], arm_a, arm_b, dim)
            changes = relative_rates(frame[w, k], acceleration[w, ka], acceleration[w, kb], arm_a, arm_b, dim)
            d = soft_impedance(pair.solimp[w, i], violation, c.softening)
            friction = pair.friction[w, i]
            pyramid = wp.where(dim > 1, c.pyramidal, 0)
            y = contact_gap(pair, w, i, pyramid, c.safe, d, violation, rates, changes, timestep[w])
            translation = body_weight[w, a][0] + body_weight[w, b][0]
            f = _contact_force(y, d, translation, friction[0] / c.root_impratio, friction, dim, pyramid)
            force[w, k] = f
            push = wp.transpose(frame[w, k]) * vec3(f[0], f[1], f[2])
            turn = wp.transpose(frame[w, k]) * vec3(f[3], f[4], f[5])
            wrench[w, b] += spatial(turn + wp.cross(arm_b, push), push)
            wrench[w, a] += -spatial(turn + wp.cross(arm_a, push), push)
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


@wp.kernel(enable_backward=False)
def _contact_rows_kernel(
    # topology, parameters
    t: Topology,
    c: ContactSettings,
    pair: PairParameters,
    body_weight: wp.array2d(dtype=vec2),
    timestep: wp.array(dtype=real),
    # contacts
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
    w = wp.tid()
    h = timestep[w]
    if count[w] > contact_pair.shape[1]:
        # contacts were dropped: make the step fail, whoever looks next finds `count`
        rows.overflow[w] = 1
    for k in range(wp.min(count[w], contact_pair.shape[1])):
        i = contact_pair[w, k]
        a = c.shape_body[c.pair_shapes[i, 0]]
        b = c.shape_body[c.pair_shapes[i, 1]]
        violation = distance[w, k] - pair.margin[w, i] - c.softening
        if violation < real(0.0):
            arm_a = point[w, k] - origin[w, t.body_tree[a]]
            arm_b = point[w, k] - origin[w, t.body_tree[b]]
            ka = t.body_last_dof[a]
            kb = t.body_last_dof[b]
            dim = c.pair_dim[i]
            f = frame[w, k]
            friction = pair.friction[w, i]
            solimp = pair.solimp[w, i]
            d = soft_impedance(solimp, violation, c.softening)
            mu = friction[0] / c.root_impratio
            translation = body_weight[w, a][0] + body_weight[w, b][0]
            rates = relative_rates(f, velocity[w, ka], velocity[w, kb], arm_a, arm_b, dim)
            pyramid = wp.where(dim > 1, c.pyramidal, 0)
            columns = _append_columns(rows, t, axis, w, ka, kb, arm_a, arm_b, f, friction, dim, pyramid)
            r = rows.used[w, 1]
            if pyramid == 1:
                spring = spring_damper(pair.solref[w, i], solimp, h, c.safe)
                weight = pyramid_weight(d, translation, friction, mu)
                for j in range(dim - 1):
                    normal = reference_acceleration(spring, d, violation, rates[0])
                    side = spring[1] * friction[j] * rates[j + 1]
                    rows.weight[w, r + 2 * j] = weight
                    rows.weight[w, r + 2 * j + 1] = weight
                    rows.reference[w, r + 2 * j] = normal - side
                    rows.reference[w, r + 2 * j + 1] = normal + side
                close_group(rows, w, UNILATERAL, 2 * (dim - 1), columns)
            else:
                reference = elliptic_reference(pair, w, i, d, violation, rates, h, c.safe)
                weight = stiffness_weight(d, translation)
                for j in range(dim):
                    rows.reference[w, r + j] = reference[j]
                    if j == 0:
                        rows.weight[w, r] = weight
                        rows.scale[w, r] = mu
                    else:
                        ratio = friction[j - 1] / mu
                        rows.weight[w, r + j] = weight * ratio * ratio
                        rows.scale[w, r + j] = friction[j - 1]
                if dim == 1:
                    close_group(rows, w, UNILATERAL, 1, columns)
                else:
                    close_group(rows, w, ELLIPTIC, dim, columns)
