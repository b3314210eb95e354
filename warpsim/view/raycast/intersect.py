"""Where a ray meets a shape, in the shape's own frame: Warp functions, float32, never differentiated.

A ray is o + t·d. Its direction need not be a unit vector, so t is the same in the shape's frame and in the world.
"""

from __future__ import annotations

import warp as wp

from warpsim.view.items import item as items

SPHERE = wp.constant(items.SPHERE)
BOX = wp.constant(items.BOX)
CAPSULE = wp.constant(items.CAPSULE)
TAPERED = wp.constant(items.TAPERED)
PLANE = wp.constant(items.PLANE)
MISS = wp.constant(1.0e30)
"""The t of a ray that meets nothing."""


@wp.func
def _earlier(t: float, best: float, near: float) -> float:
    """The smaller of t, if it lies beyond `near`, and `best`; a t that is NaN counts for nothing."""
    if t > near and t < best:
        return t
    return best


@wp.func
def _hit_sphere(o: wp.vec3, d: wp.vec3, radius: float, near: float) -> float:
    a = wp.dot(d, d)
    b = wp.dot(o, d)
    rest = b * b - a * (wp.dot(o, o) - radius * radius)
    if rest < 0.0:
        return MISS
    root = wp.sqrt(rest)
    return _earlier((-b - root) / a, _earlier((-b + root) / a, MISS, near), near)


@wp.func
def _hit_box(o: wp.vec3, d: wp.vec3, half: wp.vec3, near: float) -> float:
    enter = float(-MISS)
    leave = float(MISS)
    for i in range(3):
        if wp.abs(d[i]) < 1.0e-20:
            if wp.abs(o[i]) > half[i]:
                return MISS
        else:
            middle = -o[i] / d[i]
            reach = wp.abs(half[i] / d[i])
            enter = wp.max(enter, middle - reach)
            leave = wp.min(leave, middle + reach)
    if enter > leave:
        return MISS
    return _earlier(enter, _earlier(leave, MISS, near), near)


@wp.func
def _hit_side(o: wp.vec3, d: wp.vec3, low: float, high: float, half: float, near: float) -> float:
    """The side of a tapered cylinder: ρ = m + s·z, |z| ≤ half, with radius `low` at −half and `high` at +half."""
    s = 0.5 * (high - low) / half
    m = 0.5 * (high + low) + s * o[2]
    a = d[0] * d[0] + d[1] * d[1] - s * s * d[2] * d[2]
    b = o[0] * d[0] + o[1] * d[1] - s * d[2] * m
    c = o[0] * o[0] + o[1] * o[1] - m * m
    rest = b * b - a * c
    if rest < 0.0:
        return MISS
    # The stable roots of a·t² + 2·b·t + c; a zero divisor gives an infinity or NaN, which is no hit.
    q = -(b + wp.where(b < 0.0, -1.0, 1.0) * wp.sqrt(rest))
    best = float(MISS)
    if wp.abs(o[2] + q / a * d[2]) <= half:
        best = _earlier(q / a, best, near)
    if wp.abs(o[2] + c / q * d[2]) <= half:
        best = _earlier(c / q, best, near)
    return best


@wp.func
def _hit_disc(o: wp.vec3, d: wp.vec3, height: float, radius: float, near: float) -> float:
    t = (height - o[2]) / d[2]
    x = o[0] + t * d[0]
    y = o[1] + t * d[1]
    if x * x + y * y <= radius * radius:
        return _earlier(t, MISS, near)
    return MISS


@wp.func
def _hit_tapered(o: wp.vec3, d: wp.vec3, size: wp.vec3, near: float) -> float:
    side = _hit_side(o, d, size[0], size[1], size[2], near)
    ends = wp.min(_hit_disc(o, d, -size[2], size[0], near), _hit_disc(o, d, size[2], size[1], near))
    return wp.min(side, ends)


@wp.func
def _hit_capsule(o: wp.vec3, d: wp.vec3, radius: float, half: float, near: float) -> float:
    center = wp.vec3(0.0, 0.0, half)
    caps = wp.min(_hit_sphere(o - center, d, radius, near), _hit_sphere(o + center, d, radius, near))
    if half <= 0.0:
        return caps
    return wp.min(caps, _hit_side(o, d, radius, radius, half, near))


@wp.func
def _hit_plane(o: wp.vec3, d: wp.vec3, size: wp.vec3) -> float:
    t = -o[2] / d[2]
    if wp.abs(o[0] + t * d[0]) <= size[0] and wp.abs(o[1] + t * d[1]) <= size[1]:
        return _earlier(t, MISS, 0.0)
    return MISS


@wp.func
def hit_shape(kind: int, size: wp.vec3, mesh: wp.uint64, o: wp.vec3, d: wp.vec3) -> float:
    """The least t > 0 at which a ray meets a shape, or MISS."""
    if kind == PLANE:
        return _hit_plane(o, d, size)
    # From the point of the ray nearest the shape's origin, so that far rays keep a small shape's digits; planes are
    # left out, as they may be met far from their origin.
    shift = -wp.dot(o, d) / wp.dot(d, d)
    p = o + shift * d
    near = -shift
    t = float(MISS)
    if kind == SPHERE:
        t = _hit_sphere(p, d, size[0], near)
    elif kind == BOX:
        t = _hit_box(p, d, size, near)
    elif kind == CAPSULE:
        t = _hit_capsule(p, d, size[0], size[1], near)
    elif kind == TAPERED:
        t = _hit_tapered(p, d, size, near)
    else:
        query = wp.mesh_query_ray(mesh, o, d, MISS)
        if query.result:
            return query.t
        return MISS
    if t < MISS:
        return t + shift
    return MISS


@wp.func
def _box_normal(p: wp.vec3, half: wp.vec3) -> wp.vec3:
    depth = wp.vec3(wp.abs(p[0]) - half[0], wp.abs(p[1]) - half[1], wp.abs(p[2]) - half[2])
    if depth[0] >= depth[1] and depth[0] >= depth[2]:
        return wp.vec3(wp.sign(p[0]), 0.0, 0.0)
    if depth[1] >= depth[2]:
        return wp.vec3(0.0, wp.sign(p[1]), 0.0)
    return wp.vec3(0.0, 0.0, wp.sign(p[2]))


@wp.func
def _tapered_normal(p: wp.vec3, size: wp.vec3) -> wp.vec3:
    slope = 0.5 * (size[1] - size[0]) / size[2]
    distance = wp.sqrt(p[0] * p[0] + p[1] * p[1])
    beyond_side = distance - 0.5 * (size[0] + size[1]) - slope * p[2]
    if wp.abs(p[2]) - size[2] > beyond_side:
        return wp.vec3(0.0, 0.0, wp.sign(p[2]))
    return wp.vec3(p[0], p[1], -slope * distance)


@wp.func
def shape_normal(kind: int, size: wp.vec3, mesh: wp.uint64, o: wp.vec3, d: wp.vec3, t: float) -> wp.vec3:
    """Outward normal, of any length, where the ray meets the shape at t."""
    p = o + t * d
    if kind == SPHERE:
        return p
    elif kind == BOX:
        return _box_normal(p, size)
    elif kind == CAPSULE:
        return p - wp.vec3(0.0, 0.0, wp.clamp(p[2], -size[1], size[1]))
    elif kind == TAPERED:
        return _tapered_normal(p, size)
    elif kind == PLANE:
        return wp.vec3(0.0, 0.0, 1.0)
    query = wp.mesh_query_ray(mesh, o, d, MISS)
    return wp.mesh_eval_velocity(mesh, query.face, query.u, query.v)  # the corners' normals: see Triangles
