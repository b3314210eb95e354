"""Force of the elliptic friction cone as a differentiable function of a contact's rows.

Rows are (normal, two tangents, torsion, two rolling axes), of which `dim` count. With y = J a − aref, U = S y,
S = diag(μ, friction), N = U₀, T = ‖U₁…‖: no force above the cone (N ≥ μT), −D y below its polar (μN + T ≤ 0), and the
projection in between. The solver's native code has the same three zones and their second derivative.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec5, vec6


@wp.func
def _tangent_norm2(u: vec6, dim: int) -> real:
    total = real(0.0)
    for j in range(1, dim):
        total += u[j] * u[j]
    return total


@wp.func
def _scaled(y: vec6, mu: real, friction: vec5) -> vec6:
    return vec6(
        mu * y[0], friction[0] * y[1], friction[1] * y[2], friction[2] * y[3], friction[3] * y[4], friction[4] * y[5]
    )


@wp.func
def _sticking_force(y: vec6, weight: real, mu: real, friction: vec5) -> vec6:
    """−D y with D_j = D₀·friction_j²/μ²: the rows' regularization falls with the square of their friction."""
    c = weight / (mu * mu)
    return vec6(
        -weight * y[0],
        -c * friction[0] * friction[0] * y[1],
        -c * friction[1] * friction[1] * y[2],
        -c * friction[2] * friction[2] * y[3],
        -c * friction[3] * friction[3] * y[4],
        -c * friction[4] * friction[4] * y[5],
    )


@wp.func
def _sliding_force(u: vec6, t: real, weight: real, mu: real, friction: vec5) -> vec6:
    """The force on the cone's surface, where T > 0."""
    k = weight / (mu * mu * (real(1.0) + mu * mu)) * (u[0] - mu * t) * mu
    c = k / t
    return vec6(
        -k,
        c * friction[0] * u[1],
        c * friction[1] * u[2],
        c * friction[2] * u[3],
        c * friction[3] * u[4],
        c * friction[4] * u[5],
    )


@wp.func
def elliptic_force(y: vec6, weight: real, mu: real, friction: vec5, dim: int) -> vec6:
    """Constraint force on each row; rows from `dim` on must be zero in y.

    Args:
        y: J a − aref per row.
        weight: D of the normal row.
        mu: friction₀/√impratio.
        friction: Sliding (2), torsional (m), rolling (2, m).
        dim: 1, 3, 4 or 6.
    """
    if dim == 1:
        if y[0] < real(0.0):
            return vec6(-weight * y[0], real(0.0), real(0.0), real(0.0), real(0.0), real(0.0))
        return vec6()
    u = _scaled(y, mu, friction)
    t2 = _tangent_norm2(u, dim)
    # squares of the zone borders: no square root at T = 0, whose derivative is infinite
    if u[0] >= real(0.0) and u[0] * u[0] >= mu * mu * t2:
        return vec6()
    if u[0] <= real(0.0) and mu * mu * u[0] * u[0] >= t2:
        return _sticking_force(y, weight, mu, friction)
    return _sliding_force(u, wp.sqrt(t2), weight, mu, friction)


@wp.func
def elliptic_change(y: vec6, z: vec6, weight: real, mu: real, friction: vec5, dim: int) -> vec6:
    """Derivative of `elliptic_force` along z, −W z: W is symmetric, so this also is its transpose's product."""
    if dim == 1:
        if y[0] < real(0.0):
            return vec6(-weight * z[0], real(0.0), real(0.0), real(0.0), real(0.0), real(0.0))
        return vec6()
    u = _scaled(y, mu, friction)
    t2 = _tangent_norm2(u, dim)
    if u[0] >= real(0.0) and u[0] * u[0] >= mu * mu * t2:
        return vec6()
    if u[0] <= real(0.0) and mu * mu * u[0] * u[0] >= t2:
        return _sticking_force(z, weight, mu, friction)
    t = wp.sqrt(t2)
    v = _scaled(z, mu, friction)
    along = (wp.dot(u, v) - u[0] * v[0]) / t
    ratio = mu * u[0] / t
    c = -weight / (mu * mu * (real(1.0) + mu * mu))
    radial = (ratio * along - mu * v[0]) / t
    rest = mu * mu - ratio
    return vec6(
        c * (v[0] - mu * along) * mu,
        c * (radial * u[1] + rest * v[1]) * friction[0],
        c * (radial * u[2] + rest * v[2]) * friction[1],
        c * (radial * u[3] + rest * v[3]) * friction[2],
        c * (radial * u[4] + rest * v[4]) * friction[3],
        c * (radial * u[5] + rest * v[5]) * friction[4],
    )
