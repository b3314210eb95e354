"""MuJoCo's muscle: active force over length and velocity, passive force over length, activation dynamics.

Lengths are normalized so that `range` of the resting length L₀ spans `length_range` of the transmission. The active
force is −force · FL(L) · FV(V), the passive one −force · FP(L); activation follows the control with a time constant
that depends on it (Millard et al. 2013).
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec2, vec5
from warpsim.core.spatial import clamp_range

_TINY = wp.constant(real(1e-15))


@wp.func
def resting_length(normal: vec2, length_range: vec2) -> real:
    """L₀, m."""
    return wp.max(_TINY, (length_range[1] - length_range[0]) / wp.max(_TINY, normal[1] - normal[0]))


@wp.func
def _half_square(x: real, width: real) -> real:
    ratio = x / wp.max(_TINY, width)
    return real(0.5) * ratio * ratio


@wp.func
def _length_curve(x: real, low: real, high: real) -> real:
    """FL: bell of parabolas between `low` and `high`, 1 at 1."""
    one = real(1.0)
    half = real(0.5)
    if x < low or x > high:
        return real(0.0)
    if x <= half * (low + one):
        return _half_square(x - low, half * (one - low))
    if x <= one:
        return one - _half_square(one - x, half * (one - low))
    if x <= half * (one + high):
        return one - _half_square(x - one, half * (high - one))
    return _half_square(high - x, half * (high - one))


@wp.func
def _velocity_curve(v: real, top: real) -> real:
    """FV: 0 for fast shortening, 1 at rest, `top` for fast lengthening."""
    y = top - real(1.0)
    if v <= real(-1.0):
        return real(0.0)
    if v <= real(0.0):
        return (v + real(1.0)) * (v + real(1.0))
    if v <= y:
        return top - (y - v) * (y - v) / wp.max(_TINY, y)
    return top


@wp.func
def _velocity_slope(v: real, top: real) -> real:
    y = top - real(1.0)
    if v <= real(-1.0) or v > wp.max(y, real(0.0)):
        return real(0.0)
    if v <= real(0.0):
        return real(2.0) * (v + real(1.0))
    return real(2.0) * (y - v) / wp.max(_TINY, y)


@wp.func
def muscle_gain(force: real, normal: vec2, length_range: vec2, curve: vec5, length: real, rate: real) -> real:
    """Active force per unit of activation, N; `curve` is (lmin, lmax, vmax, fpmax, fvmax)."""
    rest = resting_length(normal, length_range)
    x = normal[0] + (length - length_range[0]) / rest
    v = rate / wp.max(_TINY, rest * curve[2])
    return -force * _length_curve(x, curve[0], curve[1]) * _velocity_curve(v, curve[4])


@wp.func
def muscle_gain_slope(force: real, normal: vec2, length_range: vec2, curve: vec5, length: real, rate: real) -> real:
    """d gain / d rate, N·s/m."""
    rest = resting_length(normal, length_range)
    x = normal[0] + (length - length_range[0]) / rest
    speed = wp.max(_TINY, rest * curve[2])
    return -force * _length_curve(x, curve[0], curve[1]) * _velocity_slope(rate / speed, curve[4]) / speed


@wp.func
def muscle_bias(force: real, normal: vec2, length_range: vec2, curve: vec5, length: real) -> real:
    """Passive force, N: from the resting length on, a parabola and then a line."""
    x = normal[0] + (length - length_range[0]) / resting_length(normal, length_range)
    one = real(1.0)
    middle = real(0.5) * (one + curve[1])
    width = wp.max(_TINY, middle - one)
    if x <= one:
        return real(0.0)
    if x <= middle:
        return -force * curve[3] * real(0.5) * ((x - one) / width) * ((x - one) / width)
    return -force * curve[3] * (real(0.5) + (x - middle) / width)


@wp.func
def _step(x: real) -> real:
    """Smooth step of fifth degree from 0 at 0 to 1 at 1."""
    if x <= real(0.0):
        return real(0.0)
    if x >= real(1.0):
        return real(1.0)
    return x * x * x * (real(10.0) + x * (real(6.0) * x - real(15.0)))


@wp.func
def muscle_rate(control: real, activation: real, rise: real, fall: real, smoothing: real) -> real:
    """d activation / dt, 1/s; `rise` and `fall` are time constants, switched over a width of `smoothing`."""
    level = real(0.5) + real(1.5) * clamp_range(activation, real(0.0), real(1.0))
    excess = clamp_range(control, real(0.0), real(1.0)) - activation
    up = rise * level
    down = fall / level
    tau = down
    if smoothing < _TINY:
        if excess > real(0.0):
            tau = up
    else:
        tau = down + (up - down) * _step(excess / smoothing + real(0.5))
    return excess / wp.max(_TINY, tau)
