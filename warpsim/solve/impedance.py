"""How soft a constraint row is: MuJoCo's solref and solimp as Warp functions (its docs, "Solver parameters").

A row with violation r (negative where it is violated) has impedance d(r), regularization R = (1 − d)/d·Â with Â the
inverse inertia it acts on, and reference acceleration aref = −b·(J v) − k·d·r.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec2, vec5
from warpsim.core.spatial import clamp_range

_MIN_IMPEDANCE = wp.constant(real(1e-4))
_MAX_IMPEDANCE = wp.constant(real(0.9999))
_SMALL = wp.constant(real(1e-15))


@wp.func
def impedance(solimp: vec5, violation: real) -> real:
    """d(r), between solimp's first number at r = 0 and its second from |r| = width on."""
    d0 = clamp_range(solimp[0], _MIN_IMPEDANCE, _MAX_IMPEDANCE)
    dw = clamp_range(solimp[1], _MIN_IMPEDANCE, _MAX_IMPEDANCE)
    width = solimp[2]
    if width <= _SMALL:
        return real(0.5) * (d0 + dw)
    x = wp.abs(violation) / width
    if x >= real(1.0):
        return dw
    if x <= _SMALL:
        return d0  # x^p has no derivative in p here, and log x none at all
    mid = clamp_range(solimp[3], _MIN_IMPEDANCE, _MAX_IMPEDANCE)
    p = wp.max(solimp[4], real(1.0))
    if x <= mid:
        return d0 + (dw - d0) * wp.pow(x, p) / wp.pow(mid, p - real(1.0))
    far = real(1.0) - wp.pow(real(1.0) - x, p) / wp.pow(real(1.0) - mid, p - real(1.0))
    return d0 + (dw - d0) * far


@wp.func
def spring_damper(solref: vec2, solimp: vec5, h: real, safe: int) -> vec2:
    """Stiffness k (1/s²) and damping b (1/s); `safe` keeps time constants at two steps or more."""
    dw = clamp_range(solimp[1], _MIN_IMPEDANCE, _MAX_IMPEDANCE)
    if solref[0] > real(0.0):
        tc = solref[0]
        if safe == 1 and tc < real(2.0) * h:
            tc = real(2.0) * h
        scaled = dw * tc
        return vec2(real(1.0) / (scaled * scaled * solref[1] * solref[1]), real(2.0) / scaled)
    return vec2(-solref[0] / (dw * dw), -solref[1] / dw)


@wp.func
def stiffness_weight(d: real, inverse_inertia: real) -> real:
    """D = 1/R."""
    return real(1.0) / wp.max((real(1.0) - d) / d * inverse_inertia, _SMALL)


@wp.func
def reference_acceleration(kb: vec2, d: real, violation: real, rate: real) -> real:
    """aref of a row with violation r and rate J v."""
    return -kb[1] * rate - kb[0] * d * violation
