"""Which features of a box touch a sphere or capsule, and those of a cylinder a sphere. Never taped."""

from __future__ import annotations

import warp as wp

from warpsim.collision.box_contact import (
    EDGE_CROSSING,
    capsule_box,
    digit,
    face_axis,
    region_rank,
    segment_on_box,
    zero_axis,
)
from warpsim.collision.maths import TINY
from warpsim.core.precision import mat33, real, vec3


@wp.func
def side_of(x: real, half: real) -> int:
    """−1, 0 or +1: below, within or above [−half, half]."""
    if x > half:
        return 1
    if x < -half:
        return -1
    return 0


@wp.func
def box_region(local: vec3, size: vec3) -> int:
    """Region of the box nearest to a point; the nearest face for a point inside."""
    i = side_of(local[0], size[0])
    j = side_of(local[1], size[1])
    k = side_of(local[2], size[2])
    if i != 0 or j != 0 or k != 0:
        return (i + 1) + 3 * (j + 1) + 9 * (k + 1)
    axis = int(0)
    best = real(-1.0e30)
    for n in range(3):
        depth = wp.abs(local[n]) - size[n]
        if depth > best:
            best = depth
            axis = n
    step = 1 + 2 * axis * axis  # 3ᵃˣⁱˢ
    if local[axis] < real(0.0):
        return 13 - step
    return 13 + step


@wp.func
def box_slope(local: vec3, axis: vec3, size: vec3) -> real:
    """Derivative of the box's signed distance along `axis`, up to a positive factor."""
    region = box_region(local, size)
    slope = real(0.0)
    for n in range(3):
        side = digit(region, n)
        if side != 0:
            excess = local[n] * real(side) - size[n]
            if region_rank(region) == 1:
                excess = real(1.0)
            slope += excess * real(side) * axis[n]
    return slope


@wp.func
def deepest_parameter(local: vec3, axis: vec3, size: vec3) -> real:
    """Parameter in [−1, 1] of the point of a segment (local ± axis, box frame) nearest to the box, or deepest in it.

    The distance to a convex shape is convex along a line, so bisection on its slope finds the point.
    """
    if box_slope(local - axis, axis, size) >= real(0.0):
        return real(-1.0)
    if box_slope(local + axis, axis, size) <= real(0.0):
        return real(1.0)
    low = real(-1.0)
    high = real(1.0)
    for _i in range(44):
        middle = real(0.5) * (low + high)
        if box_slope(local + axis * middle, axis, size) < real(0.0):
            low = middle
        else:
            high = middle
    return real(0.5) * (low + high)


@wp.func
def inner_end(local: vec3, axis: vec3, size: vec3) -> int:
    """Place of the end of a segment (local ± axis, box frame) that lies inside the box, the first of two; −1: none."""
    for i in range(2):
        end = local + axis * real(2 * i - 1)
        if wp.abs(end[0]) < size[0] and wp.abs(end[1]) < size[1] and wp.abs(end[2]) < size[2]:
            return 2 * i
    return -1


@wp.func
def piercing_feature(local: vec3, axis: vec3, size: vec3) -> int:
    """Feature for a segment through the box: the shortest way out, across a face or an edge (separating axes)."""
    best = real(-1.0e30)
    feature = int(0)
    for k in range(3):
        apart = wp.abs(local[k]) - size[k] - wp.abs(axis[k])
        if apart > best:
            best = apart
            step = 1 + 2 * k * k
            feature = 16 * (13 + step)
            if local[k] < real(0.0):
                feature = 16 * (13 - step)
    for k in range(3):
        i = (k + 1) % 3
        j = (k + 2) % 3
        length = wp.sqrt(axis[i] * axis[i] + axis[j] * axis[j])
        if length > real(1e-6) * wp.length(axis):
            ni = axis[j] / length
            nj = -axis[i] / length
            shift = local[i] * ni + local[j] * nj
            apart = wp.abs(shift) - size[i] * wp.abs(ni) - size[j] * wp.abs(nj)
            if apart > best + real(1e-12) and wp.abs(ni) > real(0.0) and wp.abs(nj) > real(0.0):
                best = apart
                step_i = int(wp.sign(ni * shift)) * (1 + 2 * i * i)
                step_j = int(wp.sign(nj * shift)) * (1 + 2 * j * j)
                feature = EDGE_CROSSING + 16 * (13 + step_i + step_j)
    return feature


@wp.func
def deepest_on_box(local: vec3, axis: vec3, size: vec3, t: real) -> int:
    """Feature of the closest points of a segment (local ± axis, box frame) and a box; t from `deepest_parameter`."""
    point = local + axis * t
    if wp.abs(point[0]) < size[0] and wp.abs(point[1]) < size[1] and wp.abs(point[2]) < size[2]:
        return piercing_feature(local, axis, size)
    region = box_region(point, size)
    if t == real(-1.0):
        return 16 * region
    if t == real(1.0):
        return 2 + 16 * region
    if region_rank(region) == 3:
        return 1 + 16 * region
    if region_rank(region) == 2:
        along = axis[zero_axis(region)]
        if wp.dot(axis, axis) - along * along > real(1e-12) * wp.dot(axis, axis):
            return EDGE_CROSSING + 16 * region
        return 16 * box_region(local - axis, size)
    return 16 * region


@wp.func
def segment_exit(local: vec3, axis: vec3, size: vec3, across: int, end: real) -> int:
    """Place code of the last point of a segment, toward its end ±1, that lies above a face (across axis `across`)."""
    place = int(1 + int(end))
    least = real(1.0)
    for k in range(3):
        step = axis[k] * end
        if k != across and wp.abs(step) > TINY:
            side = int(0)
            if step > real(0.0):
                side = 1
            t = (real(2 * side - 1) * size[k] - local[k]) / step
            if t < least:
                least = t
                place = 3 + 2 * k + side
    return place


@wp.func
def facing_region(point: vec3, size: vec3) -> int:
    """The face of a box that a point outside it looks at most squarely."""
    best = real(-1.0e30)
    region = int(14)
    for k in range(3):
        excess = wp.abs(point[k]) - size[k]
        if excess > best:
            best = excess
            step = 1 + 2 * k * k
            region = 13 + step
            if point[k] < real(0.0):
                region = 13 - step
    return region


@wp.func
def over_face_elsewhere(point: vec3, local: vec3, axis: vec3, size: vec3, region: int, t: real) -> bool:
    """Whether a point (box frame) of the segment lies over a face, well away from the segment's parameter t."""
    across = face_axis(region)
    for k in range(3):
        if k != across and wp.abs(point[k]) > size[k] + real(1e-9):
            return False
    there = wp.dot(point - local, axis) / wp.max(wp.dot(axis, axis), TINY)
    if wp.abs(there) > real(1.000000001):
        return False
    return wp.abs(there - t) > real(0.05)


@wp.func
def find_capsule_box(
    center: vec3,
    axis: vec3,
    radius: real,
    position: vec3,
    frame: mat33,
    size: vec3,
    margin: real,
    world: int,
    start: int,
    candidate_feature: wp.array2d(dtype=wp.int64),
) -> int:
    """Up to two contacts: the ends of the part of the segment that lies over the face it touches.

    Where the deepest point is on an edge or corner, it is the first, and the far end over the nearest face the second.
    A segment that ends inside the box touches by that end alone, across the face nearest to it, as in MuJoCo.
    """
    inverse = wp.transpose(frame)
    local = inverse @ (center - position)
    local_axis = inverse @ axis
    inner = inner_end(local, local_axis, size)
    if inner >= 0:
        candidate_feature[world, start] = wp.int64(inner + 16 * box_region(local + local_axis * real(inner - 1), size))
        return 1
    t = deepest_parameter(local, local_axis, size)
    feature = deepest_on_box(local, local_axis, size, t)
    region = (feature % EDGE_CROSSING) // 16
    over_face = region_rank(region) == 1
    count = int(0)
    if not over_face:
        nearest = local + local_axis * t
        region = facing_region(nearest, size)
        distance, _point, _normal = capsule_box(center, axis, radius, position, frame, size, feature)
        if distance < margin:
            candidate_feature[world, start] = wp.int64(feature)
            count = 1
        side = face_axis(region)
        if wp.abs(nearest[side]) < size[side]:  # the segment pierces the box, and looks at no face more than another
            return count
    for i in range(2):
        place = segment_exit(local, local_axis, size, face_axis(region), real(1 - 2 * i))
        code = 16 * region + place
        ball = segment_on_box(place, center, axis, position, frame, size, region)
        if over_face or over_face_elsewhere(inverse @ (ball - position), local, local_axis, size, region, t):
            distance, _point, _normal = capsule_box(center, axis, radius, position, frame, size, code)
            if distance < margin and count < 2:
                if count == 0 or wp.int64(code) != candidate_feature[world, start]:
                    candidate_feature[world, start + count] = wp.int64(code)
                    count += 1
    return count


@wp.func
def sphere_cylinder_feature(center: vec3, position: vec3, frame: mat33, size: vec3) -> int:
    """The part of a cylinder nearest to a point."""
    local = wp.transpose(frame) @ (center - position)
    radial = wp.sqrt(local[0] * local[0] + local[1] * local[1])
    cap = 1
    if local[2] < real(0.0):
        cap = 2
    beyond_cap = wp.abs(local[2]) - size[1]
    beyond_side = radial - size[0]
    if beyond_cap > real(0.0) and beyond_side > real(0.0):
        return 2 + cap
    if beyond_cap > beyond_side:
        return cap
    return 0
