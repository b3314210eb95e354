"""Tetrahedron of stable neo-Hookean material (Smith, de Goes, Kim 2018), with viscosity.

F = Σ xᵢ bᵢᵀ (3×3), J = det F, C = cof F; the energy of a tetrahedron of rest volume V is

    V [μ/2 (|F|² − 3) − μ(J − 1) + λ'/2 (J − 1)² + (η/2h)‖E(x⁺) − E(x)‖²],     λ' = λ + μ, E = ½(FᵀF − I)

It is defined, and pushes back, where the element is inverted. λ' is what makes small strains those of Lamé's λ and μ.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import mat33, real, vec3, vec6


@wp.struct
class Tetrahedra:
    """Tetrahedra of all worlds: (n, …) connectivity, (W, n) parameters."""

    count: int
    vertex: wp.array2d(dtype=wp.int32)  # (n, 4)
    place: wp.array2d(dtype=wp.int32)  # (n, 10)
    volume: wp.array2d(dtype=real)  # m³
    shape: wp.array2d(dtype=mat33)  # rows b₁, b₂, b₃, 1/m
    mu: wp.array2d(dtype=real)  # Pa
    lam: wp.array2d(dtype=real)  # Pa, Lamé's
    viscosity: wp.array2d(dtype=real)  # Pa s


@wp.func
def tet_shape_gradient(shape: mat33, i: int) -> vec3:
    """bᵢ, the gradient of corner i's shape function at rest."""
    if i > 0:
        return shape[i - 1]
    return -shape[0] - shape[1] - shape[2]


@wp.func
def deformation(shape: mat33, x0: vec3, x1: vec3, x2: vec3, x3: vec3) -> mat33:
    """Σ xᵢ bᵢᵀ."""
    return wp.outer(x1 - x0, shape[0]) + wp.outer(x2 - x0, shape[1]) + wp.outer(x3 - x0, shape[2])


@wp.func
def cofactor(f: mat33) -> mat33:
    """The gradient of det F; its rows are cross products of F's rows."""
    return wp.matrix_from_rows(wp.cross(f[1], f[2]), wp.cross(f[2], f[0]), wp.cross(f[0], f[1]))


@wp.func
def tet_strain(f: mat33) -> mat33:
    """½(FᵀF − I)."""
    return real(0.5) * (wp.transpose(f) @ f - wp.identity(n=3, dtype=real))


@wp.func
def tet_deformation(t: Tetrahedra, w: int, e: int, x: wp.array2d(dtype=vec3)) -> mat33:
    """Σ xᵢ bᵢᵀ of one tetrahedron."""
    return deformation(
        t.shape[w, e], x[w, t.vertex[e, 0]], x[w, t.vertex[e, 1]], x[w, t.vertex[e, 2]], x[w, t.vertex[e, 3]]
    )


@wp.func
def tet_energy(t: Tetrahedra, w: int, e: int, x: wp.array2d(dtype=vec3)) -> real:
    """Elastic energy of a tetrahedron at x, J."""
    f = tet_deformation(t, w, e, x)
    mu = t.mu[w, e]
    swell = wp.determinant(f) - real(1.0)
    return t.volume[w, e] * (
        real(0.5) * mu * (wp.ddot(f, f) - real(3.0)) - mu * swell + real(0.5) * (t.lam[w, e] + mu) * swell * swell
    )


@wp.func
def cross_matrix(a: vec3) -> mat33:
    """[a]×: its product with b is a × b."""
    o = real(0.0)
    return mat33(o, -a[2], a[1], a[2], o, -a[0], -a[1], a[0], o)


@wp.func
def tet_terms(
    t: Tetrahedra,
    w: int,
    h: real,
    x: wp.array2d(dtype=vec3),
    end: wp.array2d(dtype=vec3),
    scale: real,
    convex: int,
    gradient: wp.array2d(dtype=vec3),
    blocks: wp.array2d(dtype=mat33),
):
    """Adds ∇Ψ of all tetrahedra to `gradient` and, unless scale is 0, scale·∇²Ψ, or its convex part, to `blocks`."""
    for e in range(t.count):
        f = tet_deformation(t, w, e, end)
        c = cofactor(f)
        mu, rate = t.mu[w, e], t.viscosity[w, e] / h
        bulk = t.lam[w, e] + mu
        k = bulk * (wp.determinant(f) - real(1.0)) - mu
        stress = mat33()
        if rate != real(0.0):
            stress = rate * (tet_strain(f) - tet_strain(tet_deformation(t, w, e, x)))
        shape, volume = t.shape[w, e], t.volume[w, e]
        piola = volume * (mu * f + k * c + f @ stress)
        for i in range(4):
            gradient[w, t.vertex[e, i]] += piola @ tet_shape_gradient(shape, i)
        if scale != real(0.0):
            if convex == 1:
                k = real(0.0)
                stress = mat33()
            left = (real(0.5) * rate) * (f @ wp.transpose(f))
            for i in range(4):
                bi = tet_shape_gradient(shape, i)
                fi, ci, si = f @ bi, c @ bi, stress @ bi
                for j in range(i + 1):
                    spot = t.place[e, i * (i + 1) // 2 + j]
                    if spot >= 0:
                        bj = tet_shape_gradient(shape, j)
                        block = bulk * wp.outer(ci, c @ bj) - k * cross_matrix(f @ wp.cross(bi, bj))
                        if rate != real(0.0):
                            block += wp.dot(bi, bj) * left + (real(0.5) * rate) * wp.outer(f @ bj, fi)
                        diagonal = mu * wp.dot(bi, bj) + wp.dot(si, bj)
                        for d in range(3):
                            block[d, d] += diagonal
                        block = (scale * volume) * block
                        if spot % 2 == 1:
                            block = wp.transpose(block)
                        blocks[w, spot // 2] += block


@wp.func
def tet_line(
    t: Tetrahedra,
    w: int,
    h: real,
    x: wp.array2d(dtype=vec3),
    end: wp.array2d(dtype=vec3),
    step: wp.array2d(dtype=vec3),
) -> vec6:
    """Coefficients of α … α⁶ of Ψ(end + α·step) − Ψ(end), all tetrahedra: det(F + αP) is a cubic."""
    total = vec6()
    for e in range(t.count):
        f, p = tet_deformation(t, w, e, end), tet_deformation(t, w, e, step)
        mu, rate, volume = t.mu[w, e], t.viscosity[w, e] / h, t.volume[w, e]
        bulk = t.lam[w, e] + mu
        k = bulk * (wp.determinant(f) - real(1.0)) - mu
        j1, j2, j3 = wp.ddot(cofactor(f), p), wp.ddot(cofactor(p), f), wp.determinant(p)
        half = real(0.5) * bulk
        total[0] += volume * (mu * wp.ddot(f, p) + k * j1)
        total[1] += volume * (real(0.5) * mu * wp.ddot(p, p) + k * j2 + half * j1 * j1)
        total[2] += volume * (k * j3 + bulk * j1 * j2)
        total[3] += volume * half * (j2 * j2 + real(2.0) * j1 * j3)
        total[4] += volume * bulk * j2 * j3
        total[5] += volume * half * j3 * j3
        if rate != real(0.0):
            stress = rate * (tet_strain(f) - tet_strain(tet_deformation(t, w, e, x)))
            cross = wp.transpose(f) @ p
            e1 = real(0.5) * (cross + wp.transpose(cross))
            e2 = real(0.5) * (wp.transpose(p) @ p)
            total[0] += volume * wp.ddot(stress, e1)
            total[1] += volume * (wp.ddot(stress, e2) + real(0.5) * rate * wp.ddot(e1, e1))
            total[2] += volume * rate * wp.ddot(e1, e2)
            total[3] += real(0.5) * volume * rate * wp.ddot(e2, e2)
    return total


@wp.kernel
def tet_work(
    # corners
    x: wp.array3d(dtype=vec3),
    end: wp.array3d(dtype=vec3),
    multiplier: wp.array3d(dtype=vec3),
    h: wp.array2d(dtype=real),
    # parameters
    volume: wp.array2d(dtype=real),
    shape: wp.array2d(dtype=mat33),
    mu: wp.array2d(dtype=real),
    lam: wp.array2d(dtype=real),
    viscosity: wp.array2d(dtype=real),
    # out
    work: wp.array2d(dtype=real),
):
    """λᵀ∇Ψ of each tetrahedron."""
    w, e = wp.tid()
    b = shape[w, e]
    f = deformation(b, end[w, e, 0], end[w, e, 1], end[w, e, 2], end[w, e, 3])
    before = deformation(b, x[w, e, 0], x[w, e, 1], x[w, e, 2], x[w, e, 3])
    k = (lam[w, e] + mu[w, e]) * (wp.determinant(f) - real(1.0)) - mu[w, e]
    stress = (viscosity[w, e] / h[w, e]) * (tet_strain(f) - tet_strain(before))
    piola = mu[w, e] * f + k * cofactor(f) + f @ stress
    along = deformation(b, multiplier[w, e, 0], multiplier[w, e, 1], multiplier[w, e, 2], multiplier[w, e, 3])
    work[w, e] = volume[w, e] * wp.ddot(piola, along)
