"""Tetrahedron of stable neo-Hookean material (Smith, de Goes, Kim 2018), with viscosity.

F = Σ xᵢ bᵢᵀ (3×3), J = det F, C = cof F; the energy of a tetrahedron of rest volume V is

    V [μ/2 (|F|² − 3) − μ(J − 1) + λ'/2 (J − 1)² + (η/2h)‖E(x⁺) − E(x)‖²],     λ' = λ + μ, E = ½(FᵀF − I)

It is defined, and pushes back, where the element is inverted. λ' is what makes small strains those of Lamé's λ and μ.
A linear tetrahedron has four corners and one F. A quadratic one has ten (its corners, then the middles of its edges)
and four points of quadrature, each of which is an element here, with a quarter of its volume and its own bᵢ.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import mat33, real, vec3, vec6


@wp.struct
class Tetrahedra:
    """Tetrahedra of all worlds: (n, …) connectivity, (W, n) parameters."""

    count: int
    corners: int  # 4 or 10
    vertex: wp.array2d(dtype=wp.int32)  # (n, corners)
    place: wp.array2d(dtype=wp.int32)  # (n, corners · (corners + 1) / 2)
    volume: wp.array2d(dtype=real)  # m³
    shape: wp.array3d(dtype=vec3)  # (W, n, corners) bᵢ, the gradient of a corner's shape function at rest, 1/m
    mu: wp.array2d(dtype=real)  # Pa
    lam: wp.array2d(dtype=real)  # Pa, Lamé's
    viscosity: wp.array2d(dtype=real)  # Pa s


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
    """Σ xᵢ bᵢᵀ of one element; places are taken from the first corner, which the sum does not see."""
    total, first = mat33(), x[w, t.vertex[e, 0]]
    for i in range(1, t.corners):
        total += wp.outer(x[w, t.vertex[e, i]] - first, t.shape[w, e, i])
    return total


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
        volume = t.volume[w, e]
        piola = volume * (mu * f + k * c + f @ stress)
        for i in range(t.corners):
            gradient[w, t.vertex[e, i]] += piola @ t.shape[w, e, i]
        if scale != real(0.0):
            if convex == 1:
                k = real(0.0)
                stress = mat33()
            left = (real(0.5) * rate) * (f @ wp.transpose(f))
            for i in range(t.corners):
                bi = t.shape[w, e, i]
                fi, ci, si = f @ bi, c @ bi, stress @ bi
                for j in range(i + 1):
                    spot = t.place[e, i * (i + 1) // 2 + j]
                    if spot >= 0:
                        bj = t.shape[w, e, j]
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


@wp.func
def corner_deformation(shape: wp.array3d(dtype=vec3), x: wp.array3d(dtype=vec3), w: int, e: int) -> mat33:
    """Σ xᵢ bᵢᵀ from copies of the corners."""
    total = mat33()
    for i in range(1, shape.shape[2]):
        total += wp.outer(x[w, e, i] - x[w, e, 0], shape[w, e, i])
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
    shape: wp.array3d(dtype=vec3),
    mu: wp.array2d(dtype=real),
    lam: wp.array2d(dtype=real),
    viscosity: wp.array2d(dtype=real),
    # out
    work: wp.array2d(dtype=real),
):
    """λᵀ∇Ψ of each tetrahedron."""
    w, e = wp.tid()
    f = corner_deformation(shape, end, w, e)
    before = corner_deformation(shape, x, w, e)
    k = (lam[w, e] + mu[w, e]) * (wp.determinant(f) - real(1.0)) - mu[w, e]
    stress = (viscosity[w, e] / h[w, e]) * (tet_strain(f) - tet_strain(before))
    piola = mu[w, e] * f + k * cofactor(f) + f @ stress
    along = corner_deformation(shape, multiplier, w, e)
    work[w, e] = volume[w, e] * wp.ddot(piola, along)
