"""Membrane of a triangle: St. Venant–Kirchhoff in its plane, with viscosity.

F = Σ xᵢ bᵢᵀ (3×2), E = ½(FᵀF − I); the energy of a triangle of rest area A is

    A [μ‖E‖² + ½λ(tr E)² + (η/2h)‖E(x⁺) − E(x)‖²]

with stress S = 2μE + λ tr(E) I + (η/h)(E(x⁺) − E(x)): viscosity is a stiffness η/2h added to μ and a stress that is
constant within the step. Moduli are per length of an edge (N/m), as plane stress of a sheet of thickness t gives them.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import mat33, real, vec2, vec3, vec6
from warpsim.deformable.types import mat22


@wp.struct
class Membrane:
    """Triangles of all worlds: (n, …) connectivity, (W, n) parameters."""

    count: int
    vertex: wp.array2d(dtype=wp.int32)  # (n, 3)
    place: wp.array2d(dtype=wp.int32)  # (n, 6) see `pattern.places`
    area: wp.array2d(dtype=real)  # m²
    shape: wp.array2d(dtype=mat22)  # rows b₁, b₂, 1/m
    mu: wp.array2d(dtype=real)  # N/m
    lam: wp.array2d(dtype=real)  # N/m
    viscosity: wp.array2d(dtype=real)  # N s/m


@wp.func
def shape_gradient(shape: mat22, i: int) -> vec2:
    """bᵢ, the gradient of corner i's shape function in the rest plane."""
    b1 = vec2(shape[0, 0], shape[0, 1])
    b2 = vec2(shape[1, 0], shape[1, 1])
    if i == 1:
        return b1
    if i == 2:
        return b2
    return -b1 - b2


@wp.func
def column(shape: mat22, x0: vec3, x1: vec3, x2: vec3, c: int) -> vec3:
    """Column c of Σ xᵢ bᵢᵀ."""
    return shape[0, c] * (x1 - x0) + shape[1, c] * (x2 - x0)


@wp.func
def green_strain(f0: vec3, f1: vec3) -> vec3:
    """E as (E₀₀, E₁₁, E₀₁)."""
    half = real(0.5)
    return vec3(half * (wp.dot(f0, f0) - real(1.0)), half * (wp.dot(f1, f1) - real(1.0)), half * wp.dot(f0, f1))


@wp.func
def elastic_stress(e: vec3, mu: real, lam: real) -> vec3:
    """2μE + λ tr(E) I."""
    trace = lam * (e[0] + e[1])
    return vec3(real(2.0) * mu * e[0] + trace, real(2.0) * mu * e[1] + trace, real(2.0) * mu * e[2])


@wp.func
def contract(s: vec3, e: vec3) -> real:
    """S : E of two symmetric matrices."""
    return s[0] * e[0] + s[1] * e[1] + real(2.0) * s[2] * e[2]


@wp.func
def first_variation(f0: vec3, f1: vec3, p0: vec3, p1: vec3) -> vec3:
    """Derivative of E as F moves by P."""
    return vec3(wp.dot(f0, p0), wp.dot(f1, p1), real(0.5) * (wp.dot(f0, p1) + wp.dot(f1, p0)))


@wp.func
def tensile(s: vec3) -> vec3:
    """S without its negative principal stresses."""
    mean, half = real(0.5) * (s[0] + s[1]), real(0.5) * (s[0] - s[1])
    radius = wp.sqrt(half * half + s[2] * s[2])
    high, low = wp.max(mean + radius, real(0.0)), wp.max(mean - radius, real(0.0))
    if radius == real(0.0):
        return vec3(high, high, real(0.0))
    middle, share = real(0.5) * (high + low), real(0.5) * (high - low) / radius
    return vec3(middle + share * half, middle - share * half, share * s[2])


@wp.func
def stiffness_block(left: mat33, shapes: real, stress: real, gi: vec3, gj: vec3, shear: real, bulk: real) -> mat33:
    """Second derivative by corners i and j, whose Fb are g: of the strains' squares, and of the stress."""
    block = shapes * left + wp.outer(shear * gj, gi) + wp.outer(bulk * gi, gj)
    for d in range(3):
        block[d, d] += stress
    return block


@wp.func
def put_block(blocks: wp.array2d(dtype=mat33), w: int, spot: int, block: mat33):
    """Adds a block where `Pattern.places` says."""
    if spot >= 0:
        if spot % 2 == 1:
            blocks[w, spot // 2] += wp.transpose(block)
        else:
            blocks[w, spot // 2] += block


@wp.func
def membrane_energy(m: Membrane, w: int, e: int, x: wp.array2d(dtype=vec3)) -> real:
    """Elastic energy of a triangle at x, J."""
    x0, x1, x2 = x[w, m.vertex[e, 0]], x[w, m.vertex[e, 1]], x[w, m.vertex[e, 2]]
    shape = m.shape[w, e]
    strain = green_strain(column(shape, x0, x1, x2, 0), column(shape, x0, x1, x2, 1))
    return real(0.5) * m.area[w, e] * contract(elastic_stress(strain, m.mu[w, e], m.lam[w, e]), strain)


@wp.func
def membrane_terms(
    m: Membrane,
    w: int,
    h: real,
    x: wp.array2d(dtype=vec3),
    end: wp.array2d(dtype=vec3),
    scale: real,
    convex: int,
    gradient: wp.array2d(dtype=vec3),
    blocks: wp.array2d(dtype=mat33),
):
    """Adds ∇Ψ of all triangles to `gradient` and, unless scale is 0, scale·∇²Ψ, or its convex part, to `blocks`."""
    for e in range(m.count):
        v0, v1, v2 = m.vertex[e, 0], m.vertex[e, 1], m.vertex[e, 2]
        shape, area, mu, lam = m.shape[w, e], m.area[w, e], m.mu[w, e], m.lam[w, e]
        rate = m.viscosity[w, e] / h
        f0 = column(shape, end[w, v0], end[w, v1], end[w, v2], 0)
        f1 = column(shape, end[w, v0], end[w, v1], end[w, v2], 1)
        strain = green_strain(f0, f1)
        stress = elastic_stress(strain, mu, lam)
        if rate != real(0.0):
            before = green_strain(
                column(shape, x[w, v0], x[w, v1], x[w, v2], 0), column(shape, x[w, v0], x[w, v1], x[w, v2], 1)
            )
            stress += rate * (strain - before)
        b1, b2 = shape_gradient(shape, 1), shape_gradient(shape, 2)
        p1 = area * ((stress[0] * b1[0] + stress[2] * b1[1]) * f0 + (stress[2] * b1[0] + stress[1] * b1[1]) * f1)
        p2 = area * ((stress[0] * b2[0] + stress[2] * b2[1]) * f0 + (stress[2] * b2[0] + stress[1] * b2[1]) * f1)
        gradient[w, v1] += p1
        gradient[w, v2] += p2
        gradient[w, v0] += -p1 - p2
        if scale != real(0.0):
            if convex == 1:
                stress = tensile(stress)
            size = scale * area
            shear, bulk = size * (mu + real(0.5) * rate), size * lam
            left = shear * (wp.outer(f0, f0) + wp.outer(f1, f1))
            g1, g2 = b1[0] * f0 + b1[1] * f1, b2[0] * f0 + b2[1] * f1
            s1 = size * vec2(stress[0] * b1[0] + stress[2] * b1[1], stress[2] * b1[0] + stress[1] * b1[1])
            s2 = size * vec2(stress[0] * b2[0] + stress[2] * b2[1], stress[2] * b2[0] + stress[1] * b2[1])
            k11 = stiffness_block(left, wp.dot(b1, b1), wp.dot(s1, b1), g1, g1, shear, bulk)
            k22 = stiffness_block(left, wp.dot(b2, b2), wp.dot(s2, b2), g2, g2, shear, bulk)
            k21 = stiffness_block(left, wp.dot(b2, b1), wp.dot(s2, b1), g2, g1, shear, bulk)
            # those of the first corner follow from the others: moving all three changes nothing
            k10, k20 = -k11 - wp.transpose(k21), -k21 - k22
            put_block(blocks, w, m.place[e, 0], -wp.transpose(k10 + k20))
            put_block(blocks, w, m.place[e, 1], k10)
            put_block(blocks, w, m.place[e, 2], k11)
            put_block(blocks, w, m.place[e, 3], k20)
            put_block(blocks, w, m.place[e, 4], k21)
            put_block(blocks, w, m.place[e, 5], k22)


@wp.func
def membrane_line(
    m: Membrane,
    w: int,
    h: real,
    x: wp.array2d(dtype=vec3),
    end: wp.array2d(dtype=vec3),
    step: wp.array2d(dtype=vec3),
) -> vec6:
    """Coefficients of α … α⁶ of Ψ(end + α·step) − Ψ(end), all triangles; a quartic."""
    total = vec6()
    for e in range(m.count):
        v0, v1, v2 = m.vertex[e, 0], m.vertex[e, 1], m.vertex[e, 2]
        shape, area, mu, lam = m.shape[w, e], m.area[w, e], m.mu[w, e], m.lam[w, e]
        rate = m.viscosity[w, e] / h
        f0 = column(shape, end[w, v0], end[w, v1], end[w, v2], 0)
        f1 = column(shape, end[w, v0], end[w, v1], end[w, v2], 1)
        p0 = column(shape, step[w, v0], step[w, v1], step[w, v2], 0)
        p1 = column(shape, step[w, v0], step[w, v1], step[w, v2], 1)
        strain = green_strain(f0, f1)
        stress = elastic_stress(strain, mu, lam)
        if rate != real(0.0):
            before = green_strain(
                column(shape, x[w, v0], x[w, v1], x[w, v2], 0), column(shape, x[w, v0], x[w, v1], x[w, v2], 1)
            )
            stress += rate * (strain - before)
        shear = mu + real(0.5) * rate
        e1 = first_variation(f0, f1, p0, p1)
        e2 = real(0.5) * vec3(wp.dot(p0, p0), wp.dot(p1, p1), wp.dot(p0, p1))
        s1, s2 = elastic_stress(e1, shear, lam), elastic_stress(e2, shear, lam)
        total[0] += area * contract(stress, e1)
        total[1] += area * (contract(stress, e2) + real(0.5) * contract(s1, e1))
        total[2] += area * contract(s1, e2)
        total[3] += real(0.5) * area * contract(s2, e2)
    return total


@wp.kernel
def membrane_work(
    # corners
    x: wp.array3d(dtype=vec3),
    end: wp.array3d(dtype=vec3),
    multiplier: wp.array3d(dtype=vec3),
    h: wp.array2d(dtype=real),
    # parameters
    area: wp.array2d(dtype=real),
    shape: wp.array2d(dtype=mat22),
    mu: wp.array2d(dtype=real),
    lam: wp.array2d(dtype=real),
    viscosity: wp.array2d(dtype=real),
    # out
    work: wp.array2d(dtype=real),
):
    """λᵀ∇Ψ of each triangle, whose derivatives by all else are what the adjoint needs."""
    w, e = wp.tid()
    b = shape[w, e]
    f0 = column(b, end[w, e, 0], end[w, e, 1], end[w, e, 2], 0)
    f1 = column(b, end[w, e, 0], end[w, e, 1], end[w, e, 2], 1)
    strain = green_strain(f0, f1)
    before = green_strain(
        column(b, x[w, e, 0], x[w, e, 1], x[w, e, 2], 0), column(b, x[w, e, 0], x[w, e, 1], x[w, e, 2], 1)
    )
    stress = elastic_stress(strain, mu[w, e], lam[w, e]) + (viscosity[w, e] / h[w, e]) * (strain - before)
    l0 = column(b, multiplier[w, e, 0], multiplier[w, e, 1], multiplier[w, e, 2], 0)
    l1 = column(b, multiplier[w, e, 0], multiplier[w, e, 1], multiplier[w, e, 2], 1)
    work[w, e] = area[w, e] * contract(stress, first_variation(f0, f1, l0, l1))
