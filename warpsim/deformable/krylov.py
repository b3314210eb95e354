"""Solves with pairs of self-contact, whose blocks lie outside the pattern of the factor. Not taped.

With K factored and the pairs' R = Σ wwᵀ ⊗ block, (K + R)x = b by conjugate gradients preconditioned with K. K times a
direction follows by the same recurrence as the direction, so an iteration is one solve with the factor and one pass
over the pairs that touch; where none does it is the factor's own solve.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec3
from warpsim.deformable.matrix import Factor, solve_matrix
from warpsim.deformable.self_contact import SelfContacts, node_sum

_ITERATIONS = wp.constant(2000)
_EXACT, _ENOUGH = wp.constant(real(1e-13)), wp.constant(real(1e-5))
"""The residual, in the norm of K⁻¹, over that at first."""
_NAN = wp.constant(real(float("nan")))


@wp.func
def add_pairs(c: SelfContacts, w: int, x: wp.array2d(dtype=vec3), out: wp.array2d(dtype=vec3)):
    """out += Rx."""
    for k in range(c.pairs[w]):
        if c.block[w, k][0, 0] + c.block[w, k][1, 1] + c.block[w, k][2, 2] > real(0.0):
            pull = c.block[w, k] @ node_sum(c, w, k, x)
            for j in range(4):
                row = c.node[c.corner[w, k, j]]
                if row >= 0:
                    out[w, row] += c.share[w, k][j] * pull


@wp.func
def solve_with_pairs(f: Factor, c: SelfContacts, w: int, exact: int):
    """Solves for the factor's vector in place.

    Args:
        f: With the factor of K.
        c: Pairs, with their blocks.
        w: World.
        exact: 1: to rounding, and numbers that are none where that fails; 0: well enough for Newton's next step.
    """
    active = int(0)
    if c.count > 0:
        active = c.active[w]
    if active == 0:
        solve_matrix(f, w)
        return
    for i in range(f.size):
        c.residual[w, i] = f.vector[w, i]
        c.image[w, i] = f.vector[w, i]
        c.solution[w, i] = vec3()
    solve_matrix(f, w)
    size = real(0.0)
    for i in range(f.size):
        size += wp.dot(c.residual[w, i], f.vector[w, i])
        c.direction[w, i] = f.vector[w, i]
    tolerance, solved = wp.where(exact == 1, _EXACT, _ENOUGH), int(0)
    goal = tolerance * tolerance * size
    if not size > real(0.0):
        return
    for _turn in range(_ITERATIONS):
        # f.vector becomes (K + R)p
        for i in range(f.size):
            f.vector[w, i] = c.image[w, i]
        add_pairs(c, w, c.direction, f.vector)
        curvature = real(0.0)
        for i in range(f.size):
            curvature += wp.dot(c.direction[w, i], f.vector[w, i])
        alpha = size / curvature
        for i in range(f.size):
            c.solution[w, i] = c.solution[w, i] + alpha * c.direction[w, i]
            c.residual[w, i] = c.residual[w, i] - alpha * f.vector[w, i]
            f.vector[w, i] = c.residual[w, i]
        solve_matrix(f, w)
        after = real(0.0)
        for i in range(f.size):
            after += wp.dot(c.residual[w, i], f.vector[w, i])
        if not after > goal:
            solved = 1
            break
        beta = after / size
        size = after
        for i in range(f.size):
            c.direction[w, i] = f.vector[w, i] + beta * c.direction[w, i]
            c.image[w, i] = c.residual[w, i] + beta * c.image[w, i]
    for i in range(f.size):
        f.vector[w, i] = c.solution[w, i]
        if solved == 0 and exact == 1:
            f.vector[w, i] = vec3(_NAN, _NAN, _NAN)
