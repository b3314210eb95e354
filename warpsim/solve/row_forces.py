"""Forces of constraint rows at given J v and J a, as differentiable functions of everything they depend on.

The solver's native code has the same forces as functions of y = J a − aref, with their second derivatives.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec2, vec3, vec5
from warpsim.solve.impedance import impedance, reference_acceleration, spring_damper, stiffness_weight


@wp.func
def unilateral_force(
    solref: vec2, solimp: vec5, inverse: real, violation: real, rate: real, acceleration: real, h: real, safe: int
) -> real:
    """Force of a one-sided row at J a = acceleration, J v = rate."""
    d = impedance(solimp, violation)
    y = acceleration - reference_acceleration(spring_damper(solref, solimp, h, safe), d, violation, rate)
    if y < real(0.0):
        return -stiffness_weight(d, inverse) * y
    return real(0.0)


@wp.func
def bilateral_force(
    solref: vec2, solimp: vec5, inverse: real, violation: real, rate: real, acceleration: real, h: real, safe: int
) -> real:
    """Force of a row that holds its violation at zero from both sides."""
    d = impedance(solimp, violation)
    y = acceleration - reference_acceleration(spring_damper(solref, solimp, h, safe), d, violation, rate)
    return -stiffness_weight(d, inverse) * y


@wp.func
def bilateral_forces(
    solref: vec2,
    solimp: vec5,
    inverse: real,
    size: real,
    violation: vec3,
    rate: vec3,
    acceleration: vec3,
    h: real,
    safe: int,
) -> vec3:
    """Forces of three rows held at zero, as soft as `size`, the norm of all violations of their constraint, says."""
    d = impedance(solimp, size)
    kb = spring_damper(solref, solimp, h, safe)
    y = acceleration + kb[1] * rate + (kb[0] * d) * violation
    return -stiffness_weight(d, inverse) * y


@wp.func
def dry_force(
    loss: real, solref: vec2, solimp: vec5, inverse: real, rate: real, acceleration: real, h: real, safe: int
) -> real:
    """Huber's force: −D y, at most the friction loss."""
    d = impedance(solimp, real(0.0))
    b = spring_damper(solref, solimp, h, safe)[1]
    f = -stiffness_weight(d, inverse) * (acceleration + b * rate)
    if f > loss:
        return loss
    if f < -loss:
        return -loss
    return f
