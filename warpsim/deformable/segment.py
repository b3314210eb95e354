"""Stretch of a cable's segment: a quadratic energy of Green's strain, with viscosity.

E = ½(|x₁ − x₀|²/ℓ² − 1); the energy of a segment of rest length ℓ is ℓ[½kE² + (η/2h)(E(x⁺) − E(x))²], k in N.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import mat33, real, vec3, vec6


@wp.struct
class Segments:
    """Segments of all worlds: (n, …) connectivity, (W, n) parameters."""

    count: int
    vertex: wp.array2d(dtype=wp.int32)  # (n, 2)
    place: wp.array2d(dtype=wp.int32)  # (n, 3)
    length: wp.array2d(dtype=real)  # m
    stiffness: wp.array2d(dtype=real)  # N
    viscosity: wp.array2d(dtype=real)  # N s


@wp.func
def segment_strain(d: vec3, length: real) -> real:
    """Green's strain of a segment whose ends are d apart."""
    return real(0.5) * (wp.dot(d, d) / (length * length) - real(1.0))


@wp.func
def segment_energy(s: Segments, w: int, e: int, x: wp.array2d(dtype=vec3)) -> real:
    """Elastic energy of a segment at x, J."""
    strain = segment_strain(x[w, s.vertex[e, 1]] - x[w, s.vertex[e, 0]], s.length[w, e])
    return real(0.5) * s.length[w, e] * s.stiffness[w, e] * strain * strain


@wp.func
def segment_force(s: Segments, w: int, h: real, e: int, x: wp.array2d(dtype=vec3), strain: real) -> real:
    """Axial force at a strain: elastic and viscous."""
    force = s.stiffness[w, e] * strain
    if s.viscosity[w, e] != real(0.0):
        before = segment_strain(x[w, s.vertex[e, 1]] - x[w, s.vertex[e, 0]], s.length[w, e])
        force += s.viscosity[w, e] / h * (strain - before)
    return force


@wp.func
def segment_terms(
    s: Segments,
    w: int,
    h: real,
    x: wp.array2d(dtype=vec3),
    end: wp.array2d(dtype=vec3),
    scale: real,
    convex: int,
    gradient: wp.array2d(dtype=vec3),
    blocks: wp.array2d(dtype=mat33),
):
    """Adds ∇Ψ of all segments to `gradient` and, unless scale is 0, scale·∇²Ψ, or its convex part, to `blocks`."""
    for e in range(s.count):
        v0, v1, length = s.vertex[e, 0], s.vertex[e, 1], s.length[w, e]
        d = end[w, v1] - end[w, v0]
        force = segment_force(s, w, h, e, x, segment_strain(d, length))
        pull = (force / length) * d
        gradient[w, v1] += pull
        gradient[w, v0] += -pull
        if scale != real(0.0):
            tangent = s.stiffness[w, e] + s.viscosity[w, e] / h
            if convex == 1:
                force = wp.max(force, real(0.0))
            block = (tangent / (length * length * length)) * wp.outer(d, d)
            for i in range(3):
                block[i, i] += force / length
            block = scale * block
            if s.place[e, 0] >= 0:
                blocks[w, s.place[e, 0] // 2] += block
            if s.place[e, 1] >= 0:
                blocks[w, s.place[e, 1] // 2] += -block
            if s.place[e, 2] >= 0:
                blocks[w, s.place[e, 2] // 2] += block


@wp.func
def segment_line(
    s: Segments,
    w: int,
    h: real,
    x: wp.array2d(dtype=vec3),
    end: wp.array2d(dtype=vec3),
    step: wp.array2d(dtype=vec3),
) -> vec6:
    """Coefficients of α … α⁶ of Ψ(end + α·step) − Ψ(end), all segments; a quartic."""
    total = vec6()
    for e in range(s.count):
        v0, v1, length = s.vertex[e, 0], s.vertex[e, 1], s.length[w, e]
        d, p = end[w, v1] - end[w, v0], step[w, v1] - step[w, v0]
        force = segment_force(s, w, h, e, x, segment_strain(d, length))
        tangent = s.stiffness[w, e] + s.viscosity[w, e] / h
        e1 = wp.dot(d, p) / (length * length)
        e2 = real(0.5) * wp.dot(p, p) / (length * length)
        total[0] += length * force * e1
        total[1] += length * (force * e2 + real(0.5) * tangent * e1 * e1)
        total[2] += length * tangent * e1 * e2
        total[3] += real(0.5) * length * tangent * e2 * e2
    return total


@wp.kernel
def segment_work(
    # corners
    x: wp.array3d(dtype=vec3),
    end: wp.array3d(dtype=vec3),
    multiplier: wp.array3d(dtype=vec3),
    h: wp.array2d(dtype=real),
    # parameters
    length: wp.array2d(dtype=real),
    stiffness: wp.array2d(dtype=real),
    viscosity: wp.array2d(dtype=real),
    # out
    work: wp.array2d(dtype=real),
):
    """λᵀ∇Ψ of each segment."""
    w, e = wp.tid()
    d = end[w, e, 1] - end[w, e, 0]
    strain = segment_strain(d, length[w, e])
    before = segment_strain(x[w, e, 1] - x[w, e, 0], length[w, e])
    force = stiffness[w, e] * strain + viscosity[w, e] / h[w, e] * (strain - before)
    work[w, e] = force / length[w, e] * wp.dot(d, multiplier[w, e, 1] - multiplier[w, e, 0])
