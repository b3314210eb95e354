"""Bending of hinges with an angle of rest: ½K(θ − θ̄)² of discrete shells (Grinspun and others 2003).

θ is the angle between the normals of both triangles about their edge: positive where they bend away from the side to
which the first one's normal points, as at the edges of a box whose normals point outward. K = k|e|² at rest, with the
stiffness k of a flat hinge (`bend`), so that both cost the same where they hardly bend.

With e = x₁ − x₀ and, of one triangle, d = x₂ − x₀, n = e × d, a = n/|n|², u = e·d/|e|² the gradient of θ is
g₂ = −|e|a at the opposite vertex, −u g₂ and −(1 − u)g₂ at the edge's; the second derivative follows by one more step.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import mat33, real, vec3
from warpsim.deformable.membrane import put_block
from warpsim.deformable.tetrahedron import cross_matrix

_HALF, _WHOLE = wp.constant(real(3.141592653589793)), wp.constant(real(6.283185307179586))


@wp.struct
class Folds:
    """Stencils of all worlds: (n, …) connectivity, (W, n) parameters."""

    count: int
    vertex: wp.array2d(dtype=wp.int32)  # (n, 4) the edge, along the first triangle's sense, then the opposite vertices
    place: wp.array2d(dtype=wp.int32)  # (n, 10)
    stiffness: wp.array2d(dtype=real)  # K, J
    angle: wp.array2d(dtype=real)  # θ̄, rad


@wp.func
def fold_angle(x0: vec3, x1: vec3, x2: vec3, x3: vec3) -> real:
    """θ, from −π to π."""
    e = x1 - x0
    a, b = wp.cross(e, x2 - x0), wp.cross(x3 - x0, e)
    return wp.atan2(wp.dot(e, wp.cross(a, b)) / wp.length(e), wp.dot(a, b))


@wp.func
def turned(angle: real, rest: real) -> real:
    """θ − θ̄, the shorter way round."""
    difference = angle - rest
    if difference > _HALF:
        difference -= _WHOLE
    if difference < -_HALF:
        difference += _WHOLE
    return difference


@wp.func
def opposite_gradient(e: vec3, n: vec3) -> vec3:
    """g at the vertex across from the edge; n is its triangle's normal, twice the area long."""
    return (-wp.length(e) / wp.dot(n, n)) * n


@wp.func
def fold_gradient(x0: vec3, x1: vec3, x2: vec3, x3: vec3, p0: vec3, p1: vec3, p2: vec3, p3: vec3) -> real:
    """∇θ·p."""
    e = x1 - x0
    size = wp.dot(e, e)
    a, b = (
        opposite_gradient(e, wp.cross(e, x2 - x0)),
        opposite_gradient(e, wp.cross(x3 - x0, e)),
    )
    u, v = wp.dot(e, x2 - x0) / size, wp.dot(e, x3 - x0) / size
    one = real(1.0)
    return wp.dot(a, p2 - (one - u) * p0 - u * p1) + wp.dot(b, p3 - (one - v) * p0 - v * p1)


@wp.func
def fold_energy(f: Folds, w: int, e: int, x: wp.array2d(dtype=vec3)) -> real:
    """Energy of a hinge at x, J."""
    angle = fold_angle(x[w, f.vertex[e, 0]], x[w, f.vertex[e, 1]], x[w, f.vertex[e, 2]], x[w, f.vertex[e, 3]])
    difference = turned(angle, f.angle[w, e])
    return real(0.5) * f.stiffness[w, e] * difference * difference


@wp.func
def put(f: Folds, blocks: wp.array2d(dtype=mat33), w: int, e: int, i: int, j: int, block: mat33):
    """Adds a block of corners i ≥ j."""
    put_block(blocks, w, f.place[e, i * (i + 1) // 2 + j], block)


@wp.func
def add_side(
    f: Folds,
    blocks: wp.array2d(dtype=mat33),
    w: int,
    e: int,
    corner: int,
    edge: vec3,
    d: vec3,
    sign: real,
    scale: real,
):
    """scale·∇²θ of one triangle's part; its normal is sign·e × d."""
    one, two = real(1.0), real(2.0)
    length, size = wp.length(edge), wp.dot(edge, edge)
    n = sign * wp.cross(edge, d)
    area = wp.dot(n, n)
    u, g = wp.dot(edge, d) / size, (-length / area) * n
    mirror = (-length * sign / area) * (wp.identity(n=3, dtype=real) - (two / area) * wp.outer(n, n))
    # derivatives of g by e and by d, and of u
    by_edge = -wp.outer(n / area, edge / length) - mirror @ cross_matrix(d)
    by_far = mirror @ cross_matrix(edge)
    u_edge, u_far = (d - (two * u) * edge) / size, edge / size
    by_start, u_start = -by_edge - by_far, -u_edge - u_far
    put(f, blocks, w, e, corner, corner, scale * by_far)
    put(f, blocks, w, e, corner, 0, scale * by_start)
    put(f, blocks, w, e, corner, 1, scale * by_edge)
    put(f, blocks, w, e, 0, 0, scale * (wp.outer(g, u_start) - (one - u) * by_start))
    put(f, blocks, w, e, 1, 0, -scale * (u * by_start + wp.outer(g, u_start)))
    put(f, blocks, w, e, 1, 1, -scale * (u * by_edge + wp.outer(g, u_edge)))


@wp.func
def fold_terms(
    f: Folds,
    w: int,
    end: wp.array2d(dtype=vec3),
    scale: real,
    convex: int,
    gradient: wp.array2d(dtype=vec3),
    blocks: wp.array2d(dtype=mat33),
):
    """Adds ∇Ψ of all hinges to `gradient` and, unless scale is 0, scale·∇²Ψ, or its convex part, to `blocks`."""
    one = real(1.0)
    for k in range(f.count):
        x0, x1 = end[w, f.vertex[k, 0]], end[w, f.vertex[k, 1]]
        x2, x3 = end[w, f.vertex[k, 2]], end[w, f.vertex[k, 3]]
        e = x1 - x0
        d2, d3 = x2 - x0, x3 - x0
        size = wp.dot(e, e)
        u, v = wp.dot(e, d2) / size, wp.dot(e, d3) / size
        g2, g3 = opposite_gradient(e, wp.cross(e, d2)), opposite_gradient(e, wp.cross(d3, e))
        g0, g1 = (u - one) * g2 + (v - one) * g3, -u * g2 - v * g3
        stiffness = f.stiffness[w, k]
        moment = stiffness * turned(fold_angle(x0, x1, x2, x3), f.angle[w, k])
        gradient[w, f.vertex[k, 0]] += moment * g0
        gradient[w, f.vertex[k, 1]] += moment * g1
        gradient[w, f.vertex[k, 2]] += moment * g2
        gradient[w, f.vertex[k, 3]] += moment * g3
        if scale != real(0.0):
            rows = wp.matrix_from_rows(g0, g1, g2, g3)
            for i in range(4):
                for j in range(i + 1):
                    put(f, blocks, w, k, i, j, (scale * stiffness) * wp.outer(rows[i], rows[j]))
            if convex == 0:
                add_side(f, blocks, w, k, 2, e, d2, one, scale * moment)
                add_side(f, blocks, w, k, 3, e, d3, -one, scale * moment)


@wp.func
def fold_line(f: Folds, w: int, end: wp.array2d(dtype=vec3), step: wp.array2d(dtype=vec3), alpha: real) -> vec3:
    """Energy of all hinges at end + α·step, its slope along the step, and the convex part of its curvature."""
    cost, slope, curvature = real(0.0), real(0.0), real(0.0)
    for k in range(f.count):
        i0, i1, i2, i3 = f.vertex[k, 0], f.vertex[k, 1], f.vertex[k, 2], f.vertex[k, 3]
        p0, p1, p2, p3 = step[w, i0], step[w, i1], step[w, i2], step[w, i3]
        x0, x1 = end[w, i0] + alpha * p0, end[w, i1] + alpha * p1
        x2, x3 = end[w, i2] + alpha * p2, end[w, i3] + alpha * p3
        difference = turned(fold_angle(x0, x1, x2, x3), f.angle[w, k])
        rate = fold_gradient(x0, x1, x2, x3, p0, p1, p2, p3)
        cost += real(0.5) * f.stiffness[w, k] * difference * difference
        slope += f.stiffness[w, k] * difference * rate
        curvature += f.stiffness[w, k] * rate * rate
    return vec3(cost, slope, curvature)


@wp.kernel
def fold_work(
    # corners
    end: wp.array3d(dtype=vec3),
    multiplier: wp.array3d(dtype=vec3),
    # parameters
    stiffness: wp.array2d(dtype=real),
    angle: wp.array2d(dtype=real),
    # out
    work: wp.array2d(dtype=real),
):
    """λᵀ∇Ψ of each hinge."""
    w, e = wp.tid()
    x0, x1, x2, x3 = end[w, e, 0], end[w, e, 1], end[w, e, 2], end[w, e, 3]
    along = fold_gradient(
        x0, x1, x2, x3, multiplier[w, e, 0], multiplier[w, e, 1], multiplier[w, e, 2], multiplier[w, e, 3]
    )
    work[w, e] = stiffness[w, e] * turned(fold_angle(x0, x1, x2, x3), angle[w, e]) * along
