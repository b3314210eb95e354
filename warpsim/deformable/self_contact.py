"""Contact of a matter with itself: vertices with faces, edges with edges, by the same cone as with shapes.

A pair is four vertices with shares w (`closest`) of the start of the step: d = Σ wᵢxᵢ from one to the other, n = d/|d|,
r = |d| − `distance`, u = Σ wᵢvᵢ, and y = Σ wᵢaᵢ + bias as in `contact`. So a pair that has not passed through itself is
pushed apart along the side on which it started. Vertices that are held or moved from outside count with the velocity
they have at the start; pairs with a vertex that a body carries are left out.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import mat33, real, vec3
from warpsim.deformable.cells import Cells
from warpsim.deformable.closest import nearest_shares, pair_weight
from warpsim.deformable.contact import (
    contact_bias,
    contact_cost,
    contact_gradient,
    contact_hessian,
    contact_weight,
)
from warpsim.deformable.types import vec4


@wp.struct
class SelfContacts:
    """Features that touch each other, the law, and the pairs of a step."""

    count: int  # of faces; 0: it does not touch itself
    room: int  # for pairs
    vertex: wp.array(dtype=wp.int32)  # (n,) that touch faces
    face: wp.array2d(dtype=wp.int32)  # (m, 3)
    owner: wp.array(dtype=wp.int32)  # (m,) see `features`
    edge: wp.array2d(dtype=wp.int32)  # (k, 2)
    star: wp.array(dtype=wp.int32)  # faces around each vertex, see `features`
    star_first: wp.array(dtype=wp.int32)  # (vertices + 1,)
    node: wp.array(dtype=wp.int32)  # (vertices,) row in the matrix; −1 without unknowns
    carried: wp.array(dtype=wp.int32)  # (vertices,) 0 or more: a body carries it
    rest: wp.array2d(dtype=vec3)  # (W, vertices) m
    stiffness: wp.array(dtype=real)  # (W,) k of a pair, N/m
    damping: wp.array(dtype=real)  # (W,) c, N s/m
    distance: wp.array(dtype=real)  # (W,) at which a pair touches, m
    friction: wp.array(dtype=real)  # (W,) μ
    faces: Cells
    edges: Cells
    pairs: wp.array(dtype=wp.int32)  # (W,) how many are near
    kind: wp.array2d(dtype=wp.int32)  # (W, room) see `closest`
    corner: wp.array3d(dtype=wp.int32)  # (W, room, 4) vertices
    share: wp.array2d(dtype=vec4)  # (W, room)
    weight: wp.array2d(dtype=real)  # (W, room) what a pair counts, see `closest.pair_weight`
    normal: wp.array2d(dtype=vec3)  # (W, room)
    bias: wp.array2d(dtype=vec3)  # (W, room) y − Σ wᵢaᵢ
    block: wp.array2d(dtype=mat33)  # (W, room) second derivative of the cost, kg
    active: wp.array(dtype=wp.int32)  # (W,) how many of these are not zero
    stiff: wp.array2d(dtype=real)  # (W, vertices) what the pairs add to a vertex's inertia, kg
    solution: wp.array2d(dtype=vec3)  # (W, size) of `krylov`, with the following
    residual: wp.array2d(dtype=vec3)
    direction: wp.array2d(dtype=vec3)
    image: wp.array2d(dtype=vec3)


@wp.func
def free_sum(c: SelfContacts, w: int, k: int, values: wp.array2d(dtype=vec3)) -> vec3:
    """Σ wᵢ over vertices with unknowns."""
    total = vec3()
    for j in range(4):
        i = c.corner[w, k, j]
        if c.node[i] >= 0:
            total += c.share[w, k][j] * values[w, i]
    return total


@wp.func
def node_sum(c: SelfContacts, w: int, k: int, values: wp.array2d(dtype=vec3)) -> vec3:
    """Σ wᵢ of a vector over the rows of the matrix."""
    total = vec3()
    for j in range(4):
        row = c.node[c.corner[w, k, j]]
        if row >= 0:
            total += c.share[w, k][j] * values[w, row]
    return total


@wp.func
def pair_normal(d: vec3) -> vec3:
    """Unit vector along the difference of nearest points."""
    return d / wp.max(wp.length(d), real(1e-12))


@wp.func
def add_self(c: SelfContacts, w: int, h: real, a: wp.array2d(dtype=vec3), gradient: wp.array2d(dtype=vec3)):
    """Adds the rows of all pairs to the gradient; their second derivatives stay with them, see `krylov`."""
    if c.count > 0:
        for i in range(c.stiff.shape[1]):
            c.stiff[w, i] = real(0.0)
        full, mu = contact_weight(c.stiffness[w], c.damping[w], h), c.friction[w]
        active = int(0)
        for k in range(c.pairs[w]):
            y, weight = c.bias[w, k] + free_sum(c, w, k, a), full * c.weight[w, k]
            row = contact_gradient(c.normal[w, k], y, weight, mu)
            block = contact_hessian(c.normal[w, k], y, weight, mu)
            c.block[w, k] = block
            size = wp.trace(block) / real(3.0)
            if size > real(0.0):
                active += 1
                for j in range(4):
                    i = c.corner[w, k, j]
                    if c.node[i] >= 0:
                        gradient[w, i] += c.share[w, k][j] * row
                        c.stiff[w, i] = c.stiff[w, i] + wp.abs(c.share[w, k][j]) * size
        c.active[w] = active


@wp.func
def self_line(
    c: SelfContacts, w: int, h: real, a: wp.array2d(dtype=vec3), step: wp.array2d(dtype=vec3), alpha: real
) -> vec3:
    """Cost of all pairs at a + αp, its slope and curvature along p, over the matrix's rows."""
    cost, slope, curvature = real(0.0), real(0.0), real(0.0)
    full, mu = contact_weight(c.stiffness[w], c.damping[w], h), c.friction[w]
    for k in range(c.pairs[w]):
        p, weight = node_sum(c, w, k, step), full * c.weight[w, k]
        n, y = c.normal[w, k], c.bias[w, k] + free_sum(c, w, k, a) + alpha * p
        cost += contact_cost(n, y, weight, mu)
        slope += wp.dot(p, contact_gradient(n, y, weight, mu))
        curvature += wp.dot(p, contact_hessian(n, y, weight, mu) @ p)
    return vec3(cost, slope, curvature)


@wp.kernel
def self_work(
    c: SelfContacts,
    time_step: wp.array(dtype=real),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    a: wp.array2d(dtype=vec3),
    multiplier: wp.array2d(dtype=vec3),
    # out
    work: wp.array(dtype=real),
):
    """λᵀ∇s of all pairs of a world, at fixed a, from all that it depends on."""
    w = wp.tid()
    h, mu = time_step[w], c.friction[w]
    k, damping = c.stiffness[w], c.damping[w]
    total = real(0.0)
    for p in range(c.pairs[w]):
        i0, i1, i2, i3 = c.corner[w, p, 0], c.corner[w, p, 1], c.corner[w, p, 2], c.corner[w, p, 3]
        s = nearest_shares(c.kind[w, p], x[w, i0], x[w, i1], x[w, i2], x[w, i3])
        f0, f1 = wp.where(c.node[i0] >= 0, s[0], real(0.0)), wp.where(c.node[i1] >= 0, s[1], real(0.0))
        f2, f3 = wp.where(c.node[i2] >= 0, s[2], real(0.0)), wp.where(c.node[i3] >= 0, s[3], real(0.0))
        d = s[0] * x[w, i0] + s[1] * x[w, i1] + s[2] * x[w, i2] + s[3] * x[w, i3]
        u = s[0] * v[w, i0] + s[1] * v[w, i1] + s[2] * v[w, i2] + s[3] * v[w, i3]
        rate = f0 * a[w, i0] + f1 * a[w, i1] + f2 * a[w, i2] + f3 * a[w, i3]
        n = pair_normal(d)
        bias = contact_bias(n, wp.length(d) - c.distance[w], u, mu, k, damping, h)
        counts = pair_weight(c.kind[w, p], s, x[w, i0], x[w, i1], x[w, i2], x[w, i3], c.distance[w])
        row = contact_gradient(n, rate + bias, counts * contact_weight(k, damping, h), mu)
        pull = f0 * multiplier[w, i0] + f1 * multiplier[w, i1] + f2 * multiplier[w, i2] + f3 * multiplier[w, i3]
        total += wp.dot(pull, row)
    work[w] = total
