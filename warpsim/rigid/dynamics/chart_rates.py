"""Rates of positions in the chart at a step's start, which make Runge–Kutta rules keep their order on rotations.

Within a step a rotation is q₀·exp(u). If the body turns at ω, u changes at dexp⁻¹(u) ω, not at ω: averaging the ω
themselves would leave a method of second order (Munthe-Kaas 1998, "Runge–Kutta methods on Lie groups"; MuJoCo does the
same).
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import PRECISION, real, vec3
from warpsim.core.stages import stage
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.topology import BALL, FREE, Topology

# Below this squared angle the series is exact to rounding, and its derivative has no 0/0.
_SMALL_ANGLE2 = wp.constant(real(1e-2 if PRECISION == "float64" else 0.25))


@wp.func
def _second_coefficient(s: real) -> real:
    """(1 − θ/2·cot(θ/2))/θ² with θ² = s, smooth in s at 0."""
    if s < _SMALL_ANGLE2:
        tail = real(1.0) / real(30240.0) + s * (real(1.0) / real(1209600.0) + s / real(47900160.0))
        return real(1.0) / real(12.0) + s * (real(1.0) / real(720.0) + s * tail)
    half = real(0.5) * wp.sqrt(s)
    return (real(1.0) - half * wp.cos(half) / wp.sin(half)) / s


@wp.func
def dexp_inverse(u: vec3, omega: vec3) -> vec3:
    """Rate of the rotation vector u of q₀·exp(u), given the angular velocity in the turned frame."""
    turned = wp.cross(u, omega)
    return omega + real(0.5) * turned + _second_coefficient(wp.dot(u, u)) * wp.cross(u, turned)


@wp.func
def _rotation_rate(
    before: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    rate: wp.array2d(dtype=real),
    w: int,
    d: int,
    h: real,
):
    u = vec3(before[w, d], before[w, d + 1], before[w, d + 2]) * h
    k = dexp_inverse(u, vec3(qd[w, d], qd[w, d + 1], qd[w, d + 2]))
    rate[w, d] = k[0]
    rate[w, d + 1] = k[1]
    rate[w, d + 2] = k[2]


@wp.kernel
def _chart_rate_kernel(
    # topology, parameters
    t: Topology,
    timestep: wp.array(dtype=real),
    fraction: real,
    # the rate that led here, and the velocity found here
    before: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    # out
    rate: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    h = timestep[w] * fraction
    for i in range(1, t.nlink):
        kind = t.link_kind[i]
        d = t.link_dof[i]
        if kind == BALL:
            _rotation_rate(before, qd, rate, w, d, h)
        elif kind == FREE:
            for e in range(3):
                rate[w, d + e] = qd[w, d + e]
            _rotation_rate(before, qd, rate, w, d + 3, h)
        elif kind > 0:
            rate[w, d] = qd[w, d]


@stage
def chart_rate(m: Model, before: wp.array, qd: wp.array, rate: wp.array, *, fraction: float) -> None:
    """Rates (W, nv) at the state reached by moving fraction·h along `before`, where the velocities are `qd`."""
    wp.launch(
        _chart_rate_kernel,
        dim=m.worlds,
        inputs=[m.topology, m.world.timestep, fraction, before, qd],
        outputs=[rate],
        device=m.device,
    )
