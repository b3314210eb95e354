"""Search, untaped: which features of pairs with a box, and of sphere and cylinder, touch."""

from __future__ import annotations

import warp as wp

from warpsim.collision.bounds import bounding_radius, bounds_apart
from warpsim.collision.box_box import BELOW_CORNER, CORNER, CROSSING, EDGES, box_box, face_corner
from warpsim.collision.box_contact import (
    EDGE_CROSSING,
    ball_box,
    capsule_box,
    digit,
    face_axis,
    region_rank,
    sphere_cylinder,
    zero_axis,
)
from warpsim.collision.kinds import CAPSULE_BOX, SPHERE_BOX, SPHERE_CYLINDER
from warpsim.collision.maths import TINY, column
from warpsim.precision import mat33, quat, real, vec3
from warpsim.spatial import quat_matrix

wp.set_module_options({"enable_backward": False})

FACE_COSINE = wp.constant(real(0.99))
FACE_FAVOUR = wp.constant(real(0.95))
"""An edge axis within this cosine of the best face normal gives way to the face, whose contacts rest stably, unless its
overlap is less than this share of the face's: the rule MuJoCo's box contacts follow."""


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
    """Parameter in [−1, 1] of the point of a segment (local ± axis, box frame) with the least signed distance to the box.

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
def piercing_feature(local: vec3, axis: vec3, size: vec3) -> int:
    """Feature for a segment that enters the box: the shortest way out, over its faces and its edges (separating axes)."""
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
def deepest_on_box(local: vec3, axis: vec3, size: vec3) -> int:
    """Feature of the closest points of a segment (local ± axis, box frame) and a box."""
    t = deepest_parameter(local, axis, size)
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
def find_capsule_box(
    centre: vec3,
    axis: vec3,
    radius: real,
    position: vec3,
    frame: mat33,
    size: vec3,
    margin: real,
    world: int,
    start: int,
    candidate_feature: wp.array2d(dtype=int),
) -> int:
    """The deepest contact; above a face both ends of the part of the segment that lies over it."""
    inverse = wp.transpose(frame)
    local = inverse @ (centre - position)
    local_axis = inverse @ axis
    feature = deepest_on_box(local, local_axis, size)
    region = (feature % EDGE_CROSSING) // 16
    over_face = region_rank(region) == 1
    count = int(0)
    for i in range(2):
        code = feature
        if over_face:
            code = 16 * region + segment_exit(local, local_axis, size, face_axis(region), real(1 - 2 * i))
        if i == 0 or over_face:
            distance, _point, _normal = capsule_box(centre, axis, radius, position, frame, size, code)
            if distance < margin:
                if count == 0 or code != candidate_feature[world, start]:
                    candidate_feature[world, start + count] = code
                    count += 1
    return count


@wp.func
def sphere_cylinder_feature(centre: vec3, position: vec3, frame: mat33, size: vec3) -> int:
    """The part of a cylinder nearest to a point."""
    local = wp.transpose(frame) @ (centre - position)
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


@wp.func
def separation(axis: vec3, gap: vec3, frame_a: mat33, size_a: vec3, frame_b: mat33, size_b: vec3) -> real:
    """Gap between two boxes along a unit axis, negative where their shadows overlap."""
    reach = real(0.0)
    for k in range(3):
        reach += size_a[k] * wp.abs(wp.dot(column(frame_a, k), axis))
        reach += size_b[k] * wp.abs(wp.dot(column(frame_b, k), axis))
    return wp.abs(wp.dot(gap, axis)) - reach


@wp.func
def support_corner(frame: mat33, way: vec3) -> int:
    """Corner of a box furthest along `way`."""
    corner = int(0)
    for k in range(3):
        if wp.dot(column(frame, k), way) > real(0.0):
            corner += 1 << k
    return corner


@wp.func
def edge_feature(i: int, j: int, frame_a: mat33, frame_b: mat33, normal: vec3) -> int:
    """Feature of the two edges, along axes i and j, that face each other across `normal` (first to second)."""
    corner_a = support_corner(frame_a, normal) & (7 - (1 << i))
    corner_b = support_corner(frame_b, -normal) & (7 - (1 << j))
    return EDGES + (i << 2) + (j << 4) + ((corner_a + (1 << i)) << 6) + ((corner_b + (1 << j)) << 9)


@wp.func
def separating_feature(gap: vec3, frame_a: mat33, size_a: vec3, frame_b: mat33, size_b: vec3, margin: real) -> int:
    """The axis of the separating axis theorem with the largest gap, as the shared bits of a feature; −1: apart."""
    best = real(-1.0e30)
    face = int(0)
    normal = vec3()
    for n in range(6):
        axis = column(frame_a, n % 3)
        if n >= 3:
            axis = column(frame_b, n % 3)
        apart = separation(axis, gap, frame_a, size_a, frame_b, size_b)
        if apart > best:
            best = apart
            face = n
            normal = axis
    if best >= margin:
        return -1
    edge = int(-1)
    best_edge = real(-1.0e30)
    edge_axis = vec3()
    for n in range(9):
        axis = wp.cross(column(frame_a, n // 3), column(frame_b, n % 3))
        length = wp.length(axis)
        if length > real(1e-6):
            axis = axis / length
            apart = separation(axis, gap, frame_a, size_a, frame_b, size_b)
            if apart > best_edge:
                best_edge = apart
                edge = n
                edge_axis = axis
    if best_edge >= margin:
        return -1
    alike = wp.abs(wp.dot(edge_axis, normal)) > FACE_COSINE and best_edge < FACE_FAVOUR * wp.min(best, real(0.0))
    if best_edge > best + real(1e-12) and not alike:
        if wp.dot(edge_axis, gap) < real(0.0):
            edge_axis = -edge_axis
        return edge_feature(edge // 3, edge % 3, frame_a, frame_b, edge_axis)
    side = int(0)
    if (wp.dot(normal, gap) > real(0.0)) == (face < 3):
        side = 1
    return ((face // 3) << 2) + ((face % 3) << 3) + (side << 5)


@wp.func
def incident_bits(feature: int, frame: mat33, incident_frame: mat33) -> int:
    """Adds the other box's face that looks most against the reference face."""
    normal = column(frame, (feature >> 3) & 3) * real(2 * ((feature >> 5) & 1) - 1)
    axis = int(0)
    side = int(0)
    best = real(-1.0)
    for k in range(3):
        cosine = wp.dot(column(incident_frame, k), normal)
        if wp.abs(cosine) > best:
            best = wp.abs(cosine)
            axis = k
            side = 0
            if cosine < real(0.0):
                side = 1
    return feature + (axis << 6) + (side << 8)


@wp.func
def within_face(point: vec3, axis: int, size: vec3, slack: real) -> bool:
    """Whether a point (box frame) lies over the face across `axis`."""
    for k in range(3):
        if k != axis and wp.abs(point[k]) > size[k] + slack:
            return False
    return True


@wp.func
def over_incident(corner: vec3, normal: vec3, axis: int, side: int, size: vec3) -> bool:
    """Whether the line from a reference corner along the normal meets the incident face (its box's frame)."""
    if wp.abs(normal[axis]) < real(1e-9):
        return False
    t = (real(2 * side - 1) * size[axis] - corner[axis]) / normal[axis]
    return within_face(corner + normal * t, axis, size, real(0.0))


@wp.func
def crosses_side(start: vec3, end: vec3, axis: int, k: int, bound: real, size: vec3) -> bool:
    """Whether an edge crosses the plane x_k = bound within the face across `axis` (reference frame)."""
    a = start[k] - bound
    b = end[k] - bound
    if a * b >= real(0.0):
        return False
    point = start + (end - start) * (a / (a - b))
    other = 3 - axis - k
    return wp.abs(point[other]) <= size[other]


@wp.func
def clip_code(
    base: int,
    i: int,
    position: vec3,
    frame: mat33,
    size: vec3,
    incident_position: vec3,
    incident_frame: mat33,
    incident_size: vec3,
) -> int:
    """Feature number i (0…23) of the clipped incident face, or −1 where it is clipped away."""
    axis = (base >> 3) & 3
    side = (base >> 5) & 1
    incident_axis = (base >> 6) & 3
    incident_side = (base >> 8) & 1
    inverse = wp.transpose(frame)
    k = i & 3
    if i >= 20:
        incident_inverse = wp.transpose(incident_frame)
        corner = position + frame @ face_corner(axis, side, k, size) - incident_position
        normal = incident_inverse @ column(frame, axis)
        if over_incident(incident_inverse @ corner, normal, incident_axis, incident_side, incident_size):
            return base + BELOW_CORNER + (k << 9)
        return -1
    start = incident_frame @ face_corner(incident_axis, incident_side, k, incident_size)
    start = inverse @ (incident_position + start - position)
    if i < 4:
        if within_face(start, axis, size, real(0.0)):
            return base + CORNER + (k << 11)
        return -1
    m = (i - 4) // 4
    end = incident_frame @ face_corner(incident_axis, incident_side, (k + 1) & 3, incident_size)
    end = inverse @ (incident_position + end - position)
    from_corner = face_corner(axis, side, m, size)
    to_corner = face_corner(axis, side, (m + 1) & 3, size)
    for n in range(3):
        if n != axis and from_corner[n] == to_corner[n]:
            if crosses_side(start, end, axis, n, from_corner[n], size):
                return base + CROSSING + (m << 9) + (k << 11)
    return -1


@wp.func
def find_box_box(
    position_a: vec3,
    frame_a: mat33,
    size_a: vec3,
    position_b: vec3,
    frame_b: mat33,
    size_b: vec3,
    margin: real,
    world: int,
    start: int,
    candidate_feature: wp.array2d(dtype=int),
) -> int:
    """Up to eight contacts: one of two edges, or the incident face clipped by the reference face."""
    feature = separating_feature(position_b - position_a, frame_a, size_a, frame_b, size_b, margin)
    if feature < 0:
        return 0
    if (feature & 3) == EDGES:
        candidate_feature[world, start] = feature
        return 1
    count = int(0)
    second = (feature >> 2) & 1
    base = int(0)
    if second == 0:
        base = incident_bits(feature, frame_a, frame_b)
    else:
        base = incident_bits(feature, frame_b, frame_a)
    for i in range(24):
        code = int(-1)
        if second == 0:
            code = clip_code(base, i, position_a, frame_a, size_a, position_b, frame_b, size_b)
        else:
            code = clip_code(base, i, position_b, frame_b, size_b, position_a, frame_a, size_a)
        if code >= 0 and count < 8:
            distance, _point, _normal = box_box(position_a, frame_a, size_a, position_b, frame_b, size_b, code)
            if distance < margin:
                candidate_feature[world, start + count] = code
                count += 1
    return count


@wp.kernel(enable_backward=False)
def narrow_box_kernel(
    # topology
    first_pair: int,
    shape_kind: wp.array(dtype=int),
    shape_unit_radius: wp.array(dtype=real),
    pair_shapes: wp.array2d(dtype=int),
    pair_case: wp.array(dtype=int),
    pair_start: wp.array(dtype=int),
    # state
    shape_position: wp.array2d(dtype=vec3),
    shape_rotation: wp.array2d(dtype=quat),
    shape_size: wp.array2d(dtype=vec3),
    pair_margin: wp.array2d(dtype=real),
    # out
    pair_count: wp.array2d(dtype=int),
    candidate_feature: wp.array2d(dtype=int),
):
    world, local = wp.tid()
    pair = first_pair + local
    a = pair_shapes[pair, 0]
    b = pair_shapes[pair, 1]
    position_a = shape_position[world, a]
    position_b = shape_position[world, b]
    size_a = shape_size[world, a]
    size_b = shape_size[world, b]
    margin = pair_margin[world, pair]
    radius_a = bounding_radius(shape_kind[a], size_a, shape_unit_radius[a])
    radius_b = bounding_radius(shape_kind[b], size_b, shape_unit_radius[b])
    pair_count[world, pair] = 0
    if bounds_apart(shape_kind[a], position_a, quat(), radius_a, position_b, radius_b, margin):
        return
    case = pair_case[pair]
    start = pair_start[pair]
    frame_a = quat_matrix(shape_rotation[world, a])
    frame_b = quat_matrix(shape_rotation[world, b])
    if case == CAPSULE_BOX:
        axis = column(frame_a, 2) * size_a[1]
        pair_count[world, pair] = find_capsule_box(
            position_a, axis, size_a[0], position_b, frame_b, size_b, margin, world, start, candidate_feature
        )
    elif case == SPHERE_BOX or case == SPHERE_CYLINDER:
        feature = int(0)
        distance = real(0.0)
        if case == SPHERE_BOX:
            feature = box_region(wp.transpose(frame_b) @ (position_a - position_b), size_b)
            distance, _p, _n = ball_box(position_a, size_a[0], position_b, frame_b, size_b, feature)
        else:
            feature = sphere_cylinder_feature(position_a, position_b, frame_b, size_b)
            distance, _p, _n = sphere_cylinder(
                position_a, size_a[0], column(frame_a, 2), position_b, frame_b, size_b, feature
            )
        if distance < margin:
            candidate_feature[world, start] = feature
            pair_count[world, pair] = 1
    else:
        pair_count[world, pair] = find_box_box(
            position_a, frame_a, size_a, position_b, frame_b, size_b, margin, world, start, candidate_feature
        )
