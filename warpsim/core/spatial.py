"""Quaternions, spatial vectors and small guards as Warp functions, each safe to differentiate.

Spatial vectors are Featherstone's (Rigid Body Dynamics Algorithms, ch. 2), angular part first, in world axes, about one
reference point per kinematic tree.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import PRECISION, mat33, quat, real, vec2, vec3, vec6

# Below this squared half angle the series is exact to rounding, and its derivative has no 0/0.
SMALL_ANGLE2 = wp.constant(real(1e-4 if PRECISION == "float64" else 1e-2))


@wp.func
def clamp_range(x: real, lower: real, upper: real) -> real:
    """x kept in [lower, upper]; the derivative is 1 in the closed range and 0 outside."""
    if x < lower:
        return lower
    if x > upper:
        return upper
    return x


@wp.func
def outside(x: real, limits: vec2) -> int:
    """−1 below the limits, 1 above them, 0 where they do not cut."""
    if x < limits[0]:
        return -1
    if x > limits[1]:
        return 1
    return 0


@wp.func
def sinc_of_square(s: real) -> real:
    """sin(√s)/√s, smooth in s at 0."""
    if s < SMALL_ANGLE2:
        return real(1.0) - s / real(6.0) * (real(1.0) - s / real(20.0) * (real(1.0) - s / real(42.0)))
    r = wp.sqrt(s)
    return wp.sin(r) / r


@wp.func
def cos_of_square(s: real) -> real:
    """cos(√s), smooth in s at 0."""
    if s < SMALL_ANGLE2:
        return real(1.0) - s / real(2.0) * (real(1.0) - s / real(12.0) * (real(1.0) - s / real(30.0)))
    return wp.cos(wp.sqrt(s))


@wp.func
def quat_mul(a: quat, b: quat) -> quat:
    """Product: first b, then a."""
    return quat(
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


@wp.func
def quat_conj(a: quat) -> quat:
    """Inverse of a unit quaternion."""
    return quat(a[0], -a[1], -a[2], -a[3])


@wp.func
def quat_unit(a: quat) -> quat:
    """a / |a|, so that the derivative with respect to a stored quaternion is tangent to the sphere."""
    return a * (real(1.0) / wp.sqrt(wp.dot(a, a)))


@wp.func
def read_quat(q: wp.array2d(dtype=real), w: int, i: int) -> quat:
    """The quaternion stored in q from i, normalized."""
    return quat_unit(quat(q[w, i], q[w, i + 1], q[w, i + 2], q[w, i + 3]))


@wp.func
def quat_rotate(r: quat, v: vec3) -> vec3:
    """R(r) v for a unit quaternion."""
    u = vec3(r[1], r[2], r[3])
    t = real(2.0) * wp.cross(u, v)
    return v + r[0] * t + wp.cross(u, t)


@wp.func
def quat_rotate_back(r: quat, v: vec3) -> vec3:
    """R(r)ᵀ v for a unit quaternion."""
    u = vec3(r[1], r[2], r[3])
    t = real(2.0) * wp.cross(v, u)
    return v + r[0] * t + wp.cross(t, u)


@wp.func
def quat_matrix(r: quat) -> mat33:
    """Rotation matrix of a unit quaternion."""
    w = r[0]
    x = r[1]
    y = r[2]
    z = r[3]
    two = real(2.0)
    one = real(1.0)
    return mat33(
        one - two * (y * y + z * z), two * (x * y - w * z), two * (x * z + w * y),
        two * (x * y + w * z), one - two * (x * x + z * z), two * (y * z - w * x),
        two * (x * z - w * y), two * (y * z + w * x), one - two * (x * x + y * y),
    )  # fmt: skip


@wp.func
def quat_about(axis: vec3, angle: real) -> quat:
    """Rotation by angle (rad) about a unit axis."""
    half = real(0.5) * angle
    s = wp.sin(half)
    return quat(wp.cos(half), s * axis[0], s * axis[1], s * axis[2])


@wp.func
def quat_exp(v: vec3) -> quat:
    """Rotation by the rotation vector v (rad), with the right derivative at v = 0."""
    s = real(0.25) * wp.dot(v, v)
    k = real(0.5) * sinc_of_square(s)
    return quat(cos_of_square(s), k * v[0], k * v[1], k * v[2])


@wp.func
def quat_log(r: quat) -> vec3:
    """Rotation vector (rad, shorter than π) of a unit quaternion, with the right derivative at the identity."""
    sign = real(1.0)
    if r[0] < real(0.0):
        sign = real(-1.0)
    w = sign * r[0]
    v = sign * vec3(r[1], r[2], r[3])
    s = wp.dot(v, v)
    if s < SMALL_ANGLE2:
        # 2·asin(√s)/√s with √s = sin(θ/2); written in s, since w = √(1−s) there
        return v * (real(2.0) + s * (real(1.0) / real(3.0) + s * (real(3.0) / real(20.0) + s * real(5.0) / real(56.0))))
    n = wp.sqrt(s)
    return v * (real(2.0) * wp.atan2(n, w) / n)


@wp.func
def angular(v: vec6) -> vec3:
    """ω of a twist, torque of a wrench."""
    return vec3(v[0], v[1], v[2])


@wp.func
def linear(v: vec6) -> vec3:
    """v of a twist, force of a wrench."""
    return vec3(v[3], v[4], v[5])


@wp.func
def spatial(top: vec3, bottom: vec3) -> vec6:
    """Spatial vector from its angular and its linear part."""
    return vec6(top[0], top[1], top[2], bottom[0], bottom[1], bottom[2])


@wp.func
def point_rate(twist: vec6, arm: vec3) -> vec3:
    """Velocity of the point at `arm` from the reference point of a twist."""
    return linear(twist) + wp.cross(angular(twist), arm)


@wp.func
def motion_cross(v: vec6, s: vec6) -> vec6:
    """v × s of two twists: the rate of s carried along by v (Featherstone eq. 2.31)."""
    w = angular(v)
    return spatial(wp.cross(w, angular(s)), wp.cross(w, linear(s)) + wp.cross(linear(v), angular(s)))


@wp.func
def sym_mul(a: vec6, v: vec3) -> vec3:
    """Symmetric 3×3 matrix (xx, yy, zz, xy, xz, yz) times a vector."""
    return vec3(
        a[0] * v[0] + a[3] * v[1] + a[4] * v[2],
        a[3] * v[0] + a[1] * v[1] + a[5] * v[2],
        a[4] * v[0] + a[5] * v[1] + a[2] * v[2],
    )


@wp.func
def sym_rotate(r: mat33, a: vec6) -> vec6:
    """R A Rᵀ of a symmetric matrix (xx, yy, zz, xy, xz, yz)."""
    c0 = sym_mul(a, vec3(r[0, 0], r[0, 1], r[0, 2]))
    c1 = sym_mul(a, vec3(r[1, 0], r[1, 1], r[1, 2]))
    c2 = sym_mul(a, vec3(r[2, 0], r[2, 1], r[2, 2]))
    r0 = vec3(r[0, 0], r[0, 1], r[0, 2])
    r1 = vec3(r[1, 0], r[1, 1], r[1, 2])
    r2 = vec3(r[2, 0], r[2, 1], r[2, 2])
    return vec6(wp.dot(r0, c0), wp.dot(r1, c1), wp.dot(r2, c2), wp.dot(r0, c1), wp.dot(r0, c2), wp.dot(r1, c2))


@wp.func
def sym_point_mass(m: real, r: vec3) -> vec6:
    """Inertia of a point mass m at r about the origin, as (xx, yy, zz, xy, xz, yz)."""
    return vec6(
        m * (r[1] * r[1] + r[2] * r[2]),
        m * (r[0] * r[0] + r[2] * r[2]),
        m * (r[0] * r[0] + r[1] * r[1]),
        -m * r[0] * r[1],
        -m * r[0] * r[2],
        -m * r[1] * r[2],
    )
