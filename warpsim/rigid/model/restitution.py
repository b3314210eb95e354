"""Springs and dampers that rebound with a given coefficient of restitution.

A contact whose impedance is constant moves like a damped oscillator, r″ = −ω² r − 2ζω r′, while its force pushes. It
cannot pull, so it lets go when the force (not the penetration) crosses zero. From r = 0, r′ = −v the force vanishes at
the phase 2 arccos ζ of the damped oscillation, and the speed is then e·v with (Schwager and Pöschel 2007, "Coefficient
of restitution and linear-dashpot model revisited")

    e = exp(−2 β cot β),  ζ = cos β   (ζ < 1),        e = exp(−2 η coth η),  ζ = cosh η   (ζ > 1).

e falls from 1 at ζ = 0 through exp(−2) at ζ = 1 toward 0. The bilateral formula e = exp(−πζ/√(1 − ζ²)), which waits
until the penetration is gone, has the contact pull at the end.

The relation is exact for a body whose inverse inertia at the contact is the weight its row is scaled by (a ball, any
body hit through its center), without gravity and in the limit of small steps. With ten steps a contact (`STEPS`) single
rebounds scatter about it by up to 0.05 in e, depending on where in a step the impact falls, and by 0.002 as e → 1.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import PRECISION, real, vec2

STEPS = wp.constant(real(10.0))
"""Time steps that an undamped contact lasts: half a period of its oscillation."""

_SERIES = wp.constant(real(1e-3 if PRECISION == "float64" else 1e-1))
_PI = wp.constant(real(3.141592653589793))
_LEAST = wp.constant(real(1e-6))  # keeps ln e finite; a contact this dead does not rebound visibly


@wp.func
def _log_rebound(s: real) -> real:
    """−½ ln e = √s cot √s, with s = β² (or −η²)."""
    if wp.abs(s) < _SERIES:
        return real(1.0) - s / real(3.0) * (
            real(1.0) + s / real(15.0) * (real(1.0) + s * real(2.0) / real(21.0) * (real(1.0) + s / real(10.0)))
        )
    if s > real(0.0):
        b = wp.sqrt(s)
        return b * wp.cos(b) / wp.sin(b)
    n = wp.sqrt(-s)
    return n / wp.tanh(n)


@wp.func
def _log_rebound_slope(s: real) -> real:
    """Derivative of `_log_rebound`."""
    if wp.abs(s) < _SERIES:
        return real(-1.0) / real(3.0) - s * (
            real(2.0) / real(45.0) + s * (real(2.0) / real(315.0) + s * real(4.0) / real(4725.0))
        )
    f = _log_rebound(s)
    # d(b cot b)/ds = (b cot b − b² (1 + cot² b)) / 2s
    return (f - s - f * f) / (real(2.0) * s)


@wp.func
def _ratio(s: real) -> real:
    """ζ = cos √s."""
    if s > real(0.0):
        return wp.cos(wp.sqrt(s))
    return wp.cosh(wp.sqrt(-s))


@wp.func
def _ratio_slope(s: real) -> real:
    """dζ/ds = −sin √s / 2√s."""
    if wp.abs(s) < _SERIES:
        return real(-0.5) + s / real(12.0) * (real(1.0) - s / real(20.0) * (real(1.0) - s / real(42.0)))
    if s > real(0.0):
        b = wp.sqrt(s)
        return real(-0.5) * wp.sin(b) / b
    n = wp.sqrt(-s)
    return real(-0.5) * wp.sinh(n) / n


@wp.func
def _squared_phase(e: real) -> real:
    """s with `_log_rebound`(s) = −½ ln e, by Newton: the function is concave and falls, so the iterates do too."""
    goal = real(-0.5) * wp.log(e)
    s = real(2.4674011002723395) * (real(1.0) - goal)  # exact at e = 1 and ζ = 1
    if goal > real(1.0):
        s = -(goal * goal - real(1.0))  # η coth η ≈ η for large η
    for _ in range(12):
        s = s - (_log_rebound(s) - goal) / _log_rebound_slope(s)
    return s


@wp.func
def damping_ratio(restitution: real) -> real:
    """ζ of the contact that rebounds with e = restitution, 0 < e ≤ 1."""
    return _ratio(_squared_phase(wp.max(restitution, _LEAST)))


@wp.func_grad(damping_ratio)
def _damping_ratio_adjoint(restitution: real, adjoint: real):
    # dζ/de = (dζ/ds) / (d(−½ ln e)/ds) · (−1/2e): the iterations are not differentiated
    if restitution > _LEAST:
        s = _squared_phase(restitution)
        wp.adjoint[restitution] += adjoint * _ratio_slope(s) / _log_rebound_slope(s) * real(-0.5) / restitution


@wp.func
def rebound_of(zeta: real) -> real:
    """e of the contact with damping ratio ζ ≥ 0."""
    if zeta < real(1.0):
        b = wp.acos(zeta)
        return wp.exp(real(-2.0) * _log_rebound(b * b))
    n = wp.log(zeta + wp.sqrt(zeta * zeta - real(1.0)))
    return wp.exp(real(-2.0) * _log_rebound(-n * n))


@wp.func_grad(rebound_of)
def _rebound_of_adjoint(zeta: real, adjoint: real):
    # de/dζ = −2e (d(−½ ln e)/ds) / (dζ/ds): smooth at ζ = 1, where arccos is not
    e = rebound_of(zeta)
    s = _squared_phase(wp.max(e, _LEAST))
    wp.adjoint[zeta] += adjoint * real(-2.0) * e * _log_rebound_slope(s) / _ratio_slope(s)


@wp.func
def bouncing_solref(restitution: real, timestep: real) -> vec2:
    """solref in its direct form, (−stiffness, −damping) per unit of mass, 1/s² and 1/s.

    ω = π/(STEPS·h), lowered with growing ζ so that the damping 2ζω stays below 1/h, where explicit steps are sound.
    """
    zeta = damping_ratio(restitution)
    lag = real(2.0) * _PI * zeta / STEPS
    omega = _PI / (STEPS * timestep * wp.sqrt(real(1.0) + lag * lag))
    return vec2(-omega * omega, real(-2.0) * zeta * omega)
