"""Bending that is quadratic in the places of up to four vertices: ½k|Σ cᵢxᵢ|².

Hinges of a sheet, flat at rest (Bergou and others 2006, "A quadratic bending model for inextensible surfaces"), and
joints of a cable, straight at rest, are of this form. Constant Hessian; unchanged by rigid motions, since Σ cᵢ = 0 and
a rotation turns the sum.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import mat33, real, vec3, vec6
from warpsim.deformable.types import vec4


@wp.struct
class Bends:
    """Stencils of all worlds: (n, …) connectivity, (W, n) parameters; three vertices repeat one with c = 0."""

    count: int
    vertex: wp.array2d(dtype=wp.int32)  # (n, 4)
    place: wp.array2d(dtype=wp.int32)  # (n, 10)
    coefficient: wp.array2d(dtype=vec4)  # c
    stiffness: wp.array2d(dtype=real)  # k; c and k are such that k|Σ cx|² is J


@wp.func
def bend_sum(b: Bends, w: int, e: int, x: wp.array2d(dtype=vec3)) -> vec3:
    """Σ cᵢxᵢ of one stencil."""
    c = b.coefficient[w, e]
    return (
        c[0] * x[w, b.vertex[e, 0]]
        + c[1] * x[w, b.vertex[e, 1]]
        + c[2] * x[w, b.vertex[e, 2]]
        + c[3] * x[w, b.vertex[e, 3]]
    )


@wp.func
def bend_energy(b: Bends, w: int, e: int, x: wp.array2d(dtype=vec3)) -> real:
    """Energy of a stencil at x, J."""
    q = bend_sum(b, w, e, x)
    return real(0.5) * b.stiffness[w, e] * wp.dot(q, q)


@wp.func
def bend_gradient(b: Bends, w: int, end: wp.array2d(dtype=vec3), gradient: wp.array2d(dtype=vec3)):
    """Adds ∇Ψ of all stencils."""
    for e in range(b.count):
        c = b.coefficient[w, e]
        q = b.stiffness[w, e] * bend_sum(b, w, e, end)
        for i in range(4):
            gradient[w, b.vertex[e, i]] += c[i] * q


@wp.func
def bend_hessian(b: Bends, w: int, scale: real, blocks: wp.array2d(dtype=mat33)):
    """Adds scale·∇²Ψ, which is convex and the same everywhere."""
    for e in range(b.count):
        c, k = b.coefficient[w, e], scale * b.stiffness[w, e]
        for i in range(4):
            for j in range(i + 1):
                spot = b.place[e, i * (i + 1) // 2 + j]
                if spot >= 0:
                    for d in range(3):
                        blocks[w, spot // 2][d, d] += k * c[i] * c[j]


@wp.func
def bend_line(b: Bends, w: int, end: wp.array2d(dtype=vec3), step: wp.array2d(dtype=vec3)) -> vec6:
    """Coefficients of α … α⁶ of Ψ(end + α·step) − Ψ(end), all stencils; quadratic."""
    total = vec6()
    for e in range(b.count):
        q, p = bend_sum(b, w, e, end), bend_sum(b, w, e, step)
        total[0] += b.stiffness[w, e] * wp.dot(q, p)
        total[1] += real(0.5) * b.stiffness[w, e] * wp.dot(p, p)
    return total


@wp.kernel
def bend_work(
    # corners
    end: wp.array3d(dtype=vec3),
    multiplier: wp.array3d(dtype=vec3),
    # parameters
    coefficient: wp.array2d(dtype=vec4),
    stiffness: wp.array2d(dtype=real),
    # out
    work: wp.array2d(dtype=real),
):
    """λᵀ∇Ψ of each stencil."""
    w, e = wp.tid()
    c = coefficient[w, e]
    q = c[0] * end[w, e, 0] + c[1] * end[w, e, 1] + c[2] * end[w, e, 2] + c[3] * end[w, e, 3]
    p = (
        c[0] * multiplier[w, e, 0]
        + c[1] * multiplier[w, e, 1]
        + c[2] * multiplier[w, e, 2]
        + c[3] * multiplier[w, e, 3]
    )
    work[w, e] = stiffness[w, e] * wp.dot(q, p)
