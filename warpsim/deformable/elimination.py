"""Directions of bodies and deformables: these are eliminated, then the bodies' own factor is used. Not taped.

With the bodies' Hessian H (masses and their own rows, factored as ever), the deformables' K and the border B, what is
left for q̈ is H + T, T = C − BᵀK⁻¹B over the dofs that touch. Its inverse comes from H⁻¹ over these, LLᵀ, by
p = z − H⁻¹w, z = H⁻¹g, w = L⁻ᵀ(u − G⁻¹u), Lu = z, G = 1 + LᵀTL: as large as the number of dofs that touch, and positive
definite if and only if the whole matrix is.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec3
from warpsim.deformable.border import Border, System
from warpsim.deformable.krylov import solve_with_pairs
from warpsim.deformable.matrix import factor_matrix


@wp.func
def cholesky(n: int, w: int, m: wp.array3d(dtype=real)) -> int:
    """Factors the lower triangle of world w in place; 1 if it is not positive definite."""
    for i in range(n):
        for j in range(i + 1):
            total = m[w, i, j]
            for k in range(j):
                total -= m[w, i, k] * m[w, j, k]
            if i == j:
                if not total > real(0.0):
                    return 1
                m[w, i, i] = wp.sqrt(total)
            else:
                m[w, i, j] = total / m[w, j, j]
    return 0


@wp.func
def lower_solve(n: int, w: int, m: wp.array3d(dtype=real), x: wp.array2d(dtype=real)):
    """x = L⁻¹x."""
    for i in range(n):
        total = x[w, i]
        for k in range(i):
            total -= m[w, i, k] * x[w, k]
        x[w, i] = total / m[w, i, i]


@wp.func
def upper_solve(n: int, w: int, m: wp.array3d(dtype=real), x: wp.array2d(dtype=real)):
    """x = L⁻ᵀx."""
    for j in range(n):
        i = n - 1 - j
        total = x[w, i]
        for k in range(i + 1, n):
            total -= m[w, k, i] * x[w, k]
        x[w, i] = total / m[w, i, i]


@wp.func
def eliminate(s: System, b: Border, w: int):
    """T −= BᵀK⁻¹B of one system, whose matrix must have been factored."""
    for d in range(b.count[w]):
        for i in range(s.factor.size):
            s.factor.vector[w, i] = s.border[w, d, i]
        solve_with_pairs(s.factor, s.pairs, w, 1)
        for e in range(d + 1):
            total = real(0.0)
            for i in range(s.factor.size):
                total += wp.dot(s.border[w, e, i], s.factor.vector[w, i])
            b.own[w, d, e] = b.own[w, d, e] - total


@wp.func
def factor_middle(b: Border, w: int) -> int:
    """L and G from the columns of H⁻¹ and T; 1 if the whole matrix is not positive definite."""
    n = b.count[w]
    for i in range(n):
        for j in range(i + 1):
            b.root[w, i, j] = b.inverse[i, w, b.active[w, j]]
    if cholesky(n, w, b.root) == 1:
        return 1
    for j in range(n):
        for i in range(n):  # T L[:, j]
            total = real(0.0)
            for k in range(j, n):
                value = b.own[w, wp.max(i, k), wp.min(i, k)]
                total += value * b.root[w, k, j]
            b.small[w, i] = total
        for i in range(j, n):  # Lᵀ of that
            total = real(0.0)
            for k in range(i, n):
                total += b.root[w, k, i] * b.small[w, k]
            if i == j:
                total += real(1.0)
            b.middle[w, i, j] = total
    return cholesky(n, w, b.middle)


@wp.func
def reduce_right(s: System, b: Border, w: int):
    """b.right −= BᵀK⁻¹g of one system, g in its factor's vector, which receives K⁻¹g."""
    solve_with_pairs(s.factor, s.pairs, w, 1)
    for d in range(b.count[w]):
        total = real(0.0)
        for i in range(s.factor.size):
            total += wp.dot(s.border[w, d, i], s.factor.vector[w, i])
        b.right[w, b.active[w, d]] = b.right[w, b.active[w, d]] - total


@wp.func
def complete_bodies(nv: int, b: Border, w: int):
    """p in b.right, which holds z."""
    n = b.count[w]
    for d in range(n):
        b.small[w, d] = b.right[w, b.active[w, d]]
    lower_solve(n, w, b.root, b.small)
    for d in range(n):
        b.reduced[w, d] = b.small[w, d]
    lower_solve(n, w, b.middle, b.reduced)
    upper_solve(n, w, b.middle, b.reduced)
    for d in range(n):
        b.small[w, d] = b.small[w, d] - b.reduced[w, d]
    upper_solve(n, w, b.root, b.small)
    for d in range(n):
        for i in range(nv):
            b.right[w, i] = b.right[w, i] - b.inverse[d, w, i] * b.small[w, d]


@wp.func
def complete_system(s: System, b: Border, w: int, right: wp.array2d(dtype=vec3), sign: real):
    """K⁻¹(sign·right − Bp) in the factor's vector, p in b.right."""
    for i in range(right.shape[1]):
        node = s.inertia.node[i]
        if node >= 0:
            total = sign * right[w, i]
            for d in range(b.count[w]):
                total -= b.right[w, b.active[w, d]] * s.border[w, d, node]
            s.factor.vector[w, node] = total
    solve_with_pairs(s.factor, s.pairs, w, 1)


@wp.func
def load_right(s: System, w: int, right: wp.array2d(dtype=vec3), sign: real):
    """sign·right of free vertices to the factor's vector."""
    for i in range(right.shape[1]):
        if s.inertia.node[i] >= 0:
            s.factor.vector[w, s.inertia.node[i]] = sign * right[w, i]


@wp.func
def factor_systems(systems: wp.array(dtype=System), w: int, raised: int) -> int:
    """Factors the matrices of all systems; how many pivots were not positive."""
    wrong = int(0)
    for k in range(systems.shape[0]):
        s = systems[k]
        wrong += factor_matrix(s.factor, w, raised)
    return wrong


@wp.func
def start_border(nv: int, b: Border, w: int):
    """No dof touches yet."""
    b.count[w] = 0
    for d in range(nv):
        b.column[w, d] = -1


@wp.func
def clear_own(b: Border, w: int):
    """T = 0, for the dofs that touch."""
    for d in range(b.count[w]):
        for e in range(b.count[w]):
            b.own[w, d, e] = real(0.0)


@wp.func
def unit_column(nv: int, b: Border, w: int, d: int):
    """The unit vector of a dof that touches, to be solved for."""
    for i in range(nv):
        b.inverse[d, w, i] = wp.where(i == b.active[w, d], real(1.0), real(0.0))
