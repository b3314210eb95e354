"""How a tendon wraps around a circle: which way it goes (integers, untaped) and where it touches (differentiable).

A sphere is wrapped in the plane of its center and the two sites, a cylinder in the plane across its axis, as in MuJoCo
(see its documentation, "Spatial tendons"). In that plane the sites are d0 and d1, and the circle is about the origin.
Outside, a tendon whose straight way would cross the circle takes the shorter way around it; one whose straight way
passes behind the circle, seen from the side site, takes the longer. A side site inside the shape makes the tendon pass
through it: it then touches the circle from within, where the way is shortest and reflected.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import EPSILON, real, vec2, vec3

STRAIGHT = wp.constant(0)
CLOCKWISE = wp.constant(1)
COUNTERCLOCKWISE = wp.constant(2)
INSIDE = wp.constant(3)
MIDDLE = wp.constant(4)
"""Inside, where the search for the point fails: the circle's point between both sites."""

_TINY = wp.constant(real(1e-15))
_START = wp.constant(real(1.0 - 1e-7))
_ROUNDING = wp.constant(real(4.0 * EPSILON))
_TOLERANCE = wp.constant(real(1e-6))


@wp.func
def unit2(v: vec2) -> vec2:
    """v over its length; (1, 0) for none."""
    n = wp.length(v)
    if n < _TINY:
        return vec2(real(1.0), real(0.0))
    return v / n


@wp.func
def cross2(a: vec2, b: vec2) -> real:
    """z component of a × b."""
    return a[0] * b[1] - a[1] * b[0]


@wp.func
def _across(v: vec3) -> vec3:
    """A unit vector across v, which is a unit vector; MuJoCo's choice."""
    other = vec3(real(0.0), real(1.0), real(1.0))
    if wp.abs(v[1]) > wp.abs(v[0]) and wp.abs(v[1]) > wp.abs(v[2]):
        other = vec3(real(1.0), real(0.0), real(1.0))
    if wp.abs(v[2]) > wp.abs(v[0]) and wp.abs(v[2]) > wp.abs(v[1]):
        other = vec3(real(1.0), real(1.0), real(0.0))
    return wp.normalize(wp.cross(v, other))


@wp.func
def first_axis(cylinder: int, p0: vec3) -> vec3:
    """First axis of the circle's plane, in the shape's frame."""
    if cylinder == 1:
        return vec3(real(1.0), real(0.0), real(0.0))
    return p0 / wp.length(p0)


@wp.func
def second_axis(cylinder: int, x: vec3, p0: vec3, p1: vec3) -> vec3:
    """Second axis of the circle's plane; x is the first."""
    if cylinder == 1:
        return vec3(real(0.0), real(1.0), real(0.0))
    normal = wp.cross(p0, p1)
    if wp.length(normal) < _TINY:
        return wp.cross(_across(x), x)
    return wp.normalize(wp.cross(normal, x))


@wp.func
def tangent_point(d: vec2, radius: real, sign: real) -> vec2:
    """Where the tangent from d touches the circle; sign +1: the touch lies clockwise of d."""
    square = wp.dot(d, d)
    reach = wp.sqrt(wp.max(square - radius * radius, real(0.0)))
    return (d * (radius * radius) + vec2(d[1], -d[0]) * (sign * radius * reach)) / square


@wp.func
def _meet(a: vec2, b: vec2, c: vec2, d: vec2) -> int:
    """Whether the segments ab and cd meet."""
    u = b - a
    v = d - c
    det = u[0] * v[1] - v[0] * u[1]
    if wp.abs(det) < _TINY:
        return 0
    s = (v[0] * (a[1] - c[1]) - v[1] * (a[0] - c[0])) / det
    t = (u[0] * (a[1] - c[1]) - u[1] * (a[0] - c[0])) / det
    if s >= real(0.0) and s <= real(1.0) and t >= real(0.0) and t <= real(1.0):
        return 1
    return 0


@wp.func
def _behind(d0: vec2, d1: vec2, side: vec2) -> int:
    """Whether the straight way passes the circle on the side away from the side site."""
    a = cross2(side, d0)
    b = cross2(side, d1)
    if a * b >= real(0.0):
        return 0
    if wp.dot(side, d0 + (d1 - d0) * (a / (a - b))) < real(0.0):
        return 1
    return 0


@wp.func
def choose_outside(d0: vec2, d1: vec2, radius: real, sided: int, side: vec2) -> int:
    """STRAIGHT, CLOCKWISE or COUNTERCLOCKWISE."""
    square = radius * radius
    gap = d1 - d0
    if wp.dot(d0, d0) < square or wp.dot(d1, d1) < square or radius < _TINY or wp.dot(gap, gap) < _TINY:
        return STRAIGHT
    share = wp.clamp(-wp.dot(gap, d0) / wp.dot(gap, gap), real(0.0), real(1.0))
    nearest = d0 + gap * share
    if wp.dot(nearest, nearest) > square and (sided == 0 or _behind(d0, d1, side) == 0):
        return STRAIGHT
    longer = int(0)
    if sided == 1:
        longer = _behind(d0, d1, side)
    branch = COUNTERCLOCKWISE
    sign = real(-1.0)
    if (cross2(d0, d1) < real(0.0)) != (longer == 1):
        branch = CLOCKWISE
        sign = real(1.0)
    if _meet(d0, tangent_point(d0, radius, sign), d1, tangent_point(d1, radius, -sign)) == 1:
        return STRAIGHT
    return branch


@wp.func
def arc_length(a: vec2, b: vec2, radius: real, branch: int) -> real:
    """Length of the arc from a to b, both on the circle, the way the branch goes."""
    angle = wp.atan2(cross2(a, b), wp.dot(a, b))
    if branch == CLOCKWISE:
        angle = -angle
    if angle < real(0.0):
        angle = angle + real(wp.static(6.283185307179586))
    return radius * angle


@wp.func
def _angle_between(d0: vec2, d1: vec2) -> real:
    return wp.atan2(wp.abs(cross2(d0, d1)), wp.dot(d0, d1))


@wp.func
def defect(d0: vec2, d1: vec2, radius: real, z: real) -> real:
    """Of the law of reflection, z being the sine of the angle of incidence: 0 at the shortest way."""
    a = radius / wp.length(d0)
    b = radius / wp.length(d1)
    return wp.asin(a * z) + wp.asin(b * z) - real(2.0) * wp.asin(z) + _angle_between(d0, d1)


@wp.func
def _defect_slope(d0: vec2, d1: vec2, radius: real, z: real) -> real:
    a = radius / wp.length(d0)
    b = radius / wp.length(d1)
    one = real(1.0)
    root_a = wp.max(_TINY, wp.sqrt(one - z * z * a * a))
    root_b = wp.max(_TINY, wp.sqrt(one - z * z * b * b))
    return a / root_a + b / root_b - real(2.0) / wp.max(_TINY, wp.sqrt(one - z * z))


@wp.func
def choose_inside(d0: vec2, d1: vec2, radius: real) -> int:
    """STRAIGHT, INSIDE (to be searched) or MIDDLE."""
    if wp.length(d0) <= radius or wp.length(d1) <= radius or radius < _TINY:
        return STRAIGHT
    gap = d1 - d0
    square = wp.dot(gap, gap)
    if square > _TINY:
        share = -wp.dot(gap, d0) / square
        if share > real(0.0) and share < real(1.0) and wp.length(d0 + gap * share) <= radius:
            return STRAIGHT
    cosine = wp.dot(d0, d1) / (wp.length(d0) * wp.length(d1))
    if cosine < real(-1.0) + _TINY:
        return STRAIGHT
    if cosine > real(1.0) - _TINY or defect(d0, d1, radius, _START) > real(0.0):
        return MIDDLE
    return INSIDE


@wp.func
def search_inside(d0: vec2, d1: vec2, radius: real) -> real:
    """z of the reflection, by Newton's method; −1 where it fails. Not differentiable.

    From near 1 down the defect rises from below 0, and Newton's steps never pass its root. It is solved to rounding,
    where MuJoCo stops at a tolerance (some 1e-7 rad of the point's place).
    """
    z = _START
    f = defect(d0, d1, radius, z)
    failed = int(0)
    for _ in range(40):
        if f < -_ROUNDING and failed == 0:
            slope = _defect_slope(d0, d1, radius, z)
            if slope > -_TINY or f / slope >= z:
                failed = 1
            else:
                z = z - f / slope
                f = defect(d0, d1, radius, z)
    if failed == 1 or wp.abs(f) > _TOLERANCE:
        return real(-1.0)
    return z


@wp.func
def inside_point(d0: vec2, d1: vec2, radius: real, z0: real, defect0: real) -> vec2:
    """The point of reflection, given what the search found: z0 and the defect it left, both held fixed.

    One Newton step for the change of the defect, which is none in value: z keeps the bits of the search and gets its
    derivative by the implicit function theorem.
    """
    z = z0 - (defect(d0, d1, radius, z0) - defect0) / _defect_slope(d0, d1, radius, z0)
    start = d1
    if cross2(d0, d1) > real(0.0):
        start = d0
    angle = wp.asin(z) - wp.asin(radius / wp.length(start) * z)
    v = start / wp.length(start)
    c = wp.cos(angle)
    s = wp.sin(angle)
    return vec2(c * v[0] - s * v[1], s * v[0] + c * v[1]) * radius


@wp.func
def middle_point(d0: vec2, d1: vec2, radius: real) -> vec2:
    """The circle's point between both."""
    return unit2((d0 + d1) * real(0.5)) * radius
