"""Masses, loads and the time step of a matter: the quadratic part of its objective, and the map a ↦ x⁺, v⁺.

x⁺ = x + hv + h²a and v⁺ = v + ha where a vertex is free; a fixed one stays, a pinned one goes where its control says.
The residual is r(a) = m(a − g) + αm v⁺ − f + ∇Ψ(x⁺), the Hessian m(1 + αh) + h²∇²Ψ.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec3
from warpsim.deformable.types import FIXED, FREE, PINNED


@wp.struct
class Inertia:
    """What moves the vertices, besides their elements."""

    kind: wp.array(dtype=wp.int32)  # (n,) FREE, FIXED or PINNED
    node: wp.array(dtype=wp.int32)  # (n,) place in the matrix, −1 without unknowns
    pin: wp.array(dtype=wp.int32)  # (n,) place among the pinned
    mass: wp.array2d(dtype=real)  # (W, n) kg
    damping: wp.array(dtype=real)  # (W,) α, 1/s
    gravity: wp.array(dtype=vec3)  # (W,) m/s²
    time_step: wp.array(dtype=real)  # (W,) s


@wp.func
def place_after(
    m: Inertia,
    w: int,
    i: int,
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    target: wp.array2d(dtype=vec3),
    a: vec3,
) -> vec3:
    """x⁺ of vertex i under the acceleration a, which counts where it is free."""
    if m.kind[i] == FIXED:
        return x[w, i]
    if m.kind[i] == PINNED:
        return target[w, m.pin[i]]
    h = m.time_step[w]
    return x[w, i] + h * (v[w, i] + h * a)


@wp.func
def velocity_after(
    m: Inertia, w: int, i: int, x: wp.array2d(dtype=vec3), v: wp.array2d(dtype=vec3), end: vec3, a: vec3
) -> vec3:
    """v⁺ of vertex i."""
    if m.kind[i] == FREE:
        return v[w, i] + m.time_step[w] * a
    return (end - x[w, i]) / m.time_step[w]


@wp.func
def inertia_at(m: Inertia, w: int, i: int) -> real:
    """Diagonal entry of the quadratic part, m(1 + αh)."""
    return m.mass[w, i] * (real(1.0) + m.damping[w] * m.time_step[w])


@wp.func
def load_at(m: Inertia, w: int, i: int, v: wp.array2d(dtype=vec3), force: wp.array2d(dtype=vec3), a: vec3) -> vec3:
    """m(a − g) + αm(v + ha) − f of a free vertex, N."""
    end = v[w, i] + m.time_step[w] * a
    return m.mass[w, i] * (a - m.gravity[w] + m.damping[w] * end) - force[w, i]
