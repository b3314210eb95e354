"""Centered B-splines and their upper tails, by the distance from the middle in cells.

T(s) = ∫ₛ^∞ B is the share of a kernel about a point that lies beyond a plane at distance s.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real


@wp.func
def _power(base: real, exponent: int) -> real:
    """base₊ⁿ for n of 2, 3, 6."""
    if base <= real(0.0):
        return real(0.0)
    square = base * base
    if exponent == 2:
        return square
    if exponent == 3:
        return square * base
    return square * square * square


@wp.func
def quadratic(s: real) -> real:
    """B₂, the weight of the transfers."""
    a = wp.abs(s)
    return real(0.5) * (_power(real(1.5) - a, 2) - real(3.0) * _power(real(0.5) - a, 2))


@wp.func
def _upper_quadratic(s: real) -> real:
    return (_power(real(1.5) - s, 3) - real(3.0) * _power(real(0.5) - s, 3)) / real(6.0)


@wp.func
def quadratic_tail(s: real) -> real:
    """T₂."""
    if s < real(0.0):
        return real(1.0) - _upper_quadratic(-s)
    return _upper_quadratic(s)


@wp.func
def _upper_quintic(s: real) -> real:
    total = _power(real(3.0) - s, 6) - real(6.0) * _power(real(2.0) - s, 6) + real(15.0) * _power(real(1.0) - s, 6)
    return total / real(720.0)


@wp.func
def quintic_tail(s: real) -> real:
    """T₅: B₅ is the kernel of a transfer to the grid and back, B₂ ∗ B₂."""
    if s < real(0.0):
        return real(1.0) - _upper_quintic(-s)
    return _upper_quintic(s)
