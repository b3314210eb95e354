"""What a contact is to the solver: rows with references and weights, and the force they give at its solution.

One function, `contact_row`, says all that the solver's rows (untaped), the forces at its solution (taped) and the
feedback of losses on forces share. Forces act in body space: twist of the two bodies at the contact point → rows in
the contact frame → force → wrenches on the two bodies, so no adjoint of J exists.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import PRECISION, mat33, real, vec2, vec3, vec5, vec6
from warpsim.core.spatial import angular, point_rate, spatial
from warpsim.rigid.model.parameters import PairParameters
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.row_settings import ContactSettings
from warpsim.solve.cone import elliptic_change, elliptic_force
from warpsim.solve.impedance import reference_acceleration, spring_damper, stiffness_weight
from warpsim.solve.softening import soft_impedance

COMPLIANT = wp.constant(0)
PENDING = wp.constant(1)  # closes fast: an impact of this step or the next, without force until then
STRUCK = wp.constant(2)  # in an impact's solve: rebounds
HELD = wp.constant(3)  # in an impact's solve: touches already, passes the impulse on

_IMPACT_SOFTNESS = wp.constant(real(1e-6 if PRECISION == "float64" else 1e-4))
"""R of struck rows over their inverse inertia: how much of the rebound is lost to the solver's regularization."""


@wp.struct
class ContactRow:
    """One contact as the solver sees it, in the contact frame: normal, tangents, torsion, rolling."""

    acts: wp.int32
    dim: wp.int32
    pyramid: wp.int32  # 1: edges of a friction pyramid, 0: an elliptic cone
    last_a: wp.int32  # last dofs of the two bodies, into arrays of length nv + 1
    last_b: wp.int32
    arm_a: vec3  # m: the contact point from the reference points of the bodies' trees
    arm_b: vec3
    friction: vec5
    mu: real  # friction₀/√impratio
    weight: real  # D of the normal row, or of all edges of a pyramid
    reference: vec6  # aref; of a pyramid's edge, that of the normal ± friction times that of the tangent


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
def _damping_of_friction(pair: PairParameters, w: int, i: int, pyramid: int, normal: vec2, h: real, safe: int) -> real:
    """b of the friction rows: a pyramid's edges have one spring and damper for all."""
    s = pair.solref_friction[w, i]
    if pyramid == 1 or (s[0] == real(0.0) and s[1] == real(0.0)):
        return normal[1]
    return spring_damper(s, pair.solimp[w, i], h, safe)[1]


@wp.func
def _compliant_reference(
    pair: PairParameters, w: int, i: int, pyramid: int, d: real, violation: real, rates: vec6, h: real, safe: int
) -> vec6:
    """Friction rows have damping but no spring."""
    kb = spring_damper(pair.solref[w, i], pair.solimp[w, i], h, safe)
    b = _damping_of_friction(pair, w, i, pyramid, kb, h, safe)
    return vec6(
        reference_acceleration(kb, d, violation, rates[0]),
        -b * rates[1],
        -b * rates[2],
        -b * rates[3],
        -b * rates[4],
        -b * rates[5],
    )


@wp.func
def _rebound(restitution: real, speed: real, threshold: real) -> real:
    """e, faded out between twice the threshold and the threshold itself, below which nothing rebounds."""
    x = (speed - threshold) / threshold
    if x >= real(1.0):
        return restitution
    if x <= real(0.0):
        return real(0.0)
    return restitution * x * x * (real(3.0) - real(2.0) * x)


@wp.func
def _struck_reference(restitution: real, threshold: real, lift: real, rates: vec6) -> vec6:
    """Changes of velocity that an impact asks for: rebound along the normal, rest across it.

    `lift` is what the convex cone would add to the rebound of a contact that goes on sliding; see
    `warpsim.rigid.constraint.impact`.
    """
    e = _rebound(restitution, -rates[0], threshold)
    return vec6(-(real(1.0) + e) * rates[0] - lift, -rates[1], -rates[2], -rates[3], -rates[4], -rates[5])


@wp.func
def _pyramid_weight(d: real, translation: real, friction: vec5, mu: real) -> real:
    """D of all edges of a friction pyramid: from the first edge's inverse inertia, with R scaled by 2μ²."""
    edge = translation * (real(1.0) + friction[0] * friction[0])
    return stiffness_weight(d, edge) / (real(2.0) * mu * mu)


@wp.func
def contact_row(
    # topology, parameters
    t: Topology,
    c: ContactSettings,
    pair: PairParameters,
    body_weight: wp.array2d(dtype=vec2),
    h: real,
    # contact k of world w, of pair i
    role: wp.array2d(dtype=wp.int32),
    lift: wp.array2d(dtype=real),
    w: int,
    k: int,
    i: int,
    distance: real,
    point: vec3,
    frame: mat33,
    # work in
    origin: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec6),
) -> ContactRow:
    """The rows of one contact; `acts` is 0, and nothing else is set, where it exerts no force."""
    row = ContactRow()
    part = int(COMPLIANT)
    if c.roles == 1:
        part = role[w, k]
    violation = distance - pair.margin[w, i] - c.softening
    if part == PENDING or (violation >= real(0.0) and part != STRUCK):
        return row
    a = c.shape_body[c.pair_shapes[i, 0]]
    b = c.shape_body[c.pair_shapes[i, 1]]
    dim = c.pair_dim[i]
    pyramid = wp.where(dim > 1, c.pyramidal, 0)
    friction = pair.friction[w, i]
    mu = friction[0] / c.root_impratio
    translation = body_weight[w, a][0] + body_weight[w, b][0]
    row.acts = 1
    row.dim = dim
    row.pyramid = pyramid
    row.last_a = t.body_last_dof[a]
    row.last_b = t.body_last_dof[b]
    row.arm_a = point - origin[w, t.body_tree[a]]
    row.arm_b = point - origin[w, t.body_tree[b]]
    row.friction = friction
    row.mu = mu
    if part == STRUCK:
        rates = relative_rates(frame, velocity[w, row.last_a], velocity[w, row.last_b], row.arm_a, row.arm_b, dim)
        row.reference = _struck_reference(pair.restitution[w, i], c.impact_speed, lift[w, k], rates)
        row.weight = real(1.0) / (_IMPACT_SOFTNESS * translation)
        return row
    d = soft_impedance(pair.solimp[w, i], violation, c.softening)
    if part == COMPLIANT:
        rates = relative_rates(frame, velocity[w, row.last_a], velocity[w, row.last_b], row.arm_a, row.arm_b, dim)
        row.reference = _compliant_reference(pair, w, i, pyramid, d, violation, rates, h, c.safe)
    if pyramid == 1:
        row.weight = _pyramid_weight(d, translation, friction, mu)
    else:
        row.weight = stiffness_weight(d, translation)
    return row


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
def _pyramid_force(y: vec6, weight: real, friction: vec5, dim: int) -> vec6:
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
def _pyramid_change(y: vec6, z: vec6, weight: real, friction: vec5, dim: int) -> vec6:
    """Derivative of `_pyramid_force` along z: edges that do not push contribute nothing."""
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
def contact_force(row: ContactRow, y: vec6) -> vec6:
    """Force in the contact frame at y = J a − aref."""
    if row.pyramid == 1:
        return _pyramid_force(y, row.weight, row.friction, row.dim)
    return elliptic_force(y, row.weight, row.mu, row.friction, row.dim)


@wp.func
def contact_force_change(row: ContactRow, y: vec6, z: vec6) -> vec6:
    """Derivative of `contact_force` along z, −W z. Not for taped kernels."""
    if row.pyramid == 1:
        return _pyramid_change(y, z, row.weight, row.friction, row.dim)
    return elliptic_change(y, z, row.weight, row.mu, row.friction, row.dim)


@wp.func
def wrench_of(frame: mat33, f: vec6, arm: vec3) -> vec6:
    """Wrench about a tree's reference point of a force in the contact frame."""
    push = wp.transpose(frame) * vec3(f[0], f[1], f[2])
    turn = wp.transpose(frame) * vec3(f[3], f[4], f[5])
    return spatial(turn + wp.cross(arm, push), push)
