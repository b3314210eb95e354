"""Shapes, springs' ends and pinned places of a step from the bodies at its start, and what bodies feel. Taped.

Where bodies are solved for together with the deformable, accelerations (of both) come from that solve and are held
fixed here: its adjoint has seen to them. One thread does a world, in a fixed order.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.core.spatial import angular, linear, quat_mul, quat_rotate, spatial
from warpsim.deformable.contact import Contacts, row_gradient
from warpsim.deformable.samples import sampled
from warpsim.deformable.springs import pull


@wp.func
def carried(position: vec3, rotation: quat, anchor: vec3) -> vec3:
    """A point of a body in the world."""
    return position + quat_rotate(rotation, anchor)


@wp.func
def carried_velocity(velocity: vec6, arm: vec3) -> vec3:
    """Of a point of a body that is `arm` from its origin, world axes."""
    return linear(velocity) + wp.cross(angular(velocity), arm)


@wp.kernel
def shapes_kernel(
    shape: wp.array(dtype=wp.int32),
    body: wp.array(dtype=wp.int32),
    local_position: wp.array2d(dtype=vec3),
    local_rotation: wp.array2d(dtype=quat),
    local_size: wp.array2d(dtype=vec3),
    body_position: wp.array2d(dtype=vec3),
    body_rotation: wp.array2d(dtype=quat),
    body_velocity: wp.array2d(dtype=vec6),
    # out
    position: wp.array2d(dtype=vec3),
    rotation: wp.array2d(dtype=quat),
    velocity: wp.array2d(dtype=vec6),
    size: wp.array2d(dtype=vec3),
):
    """Shapes in the world, as `Contacts` has them."""
    w = wp.tid()
    for k in range(shape.shape[0]):
        s, b = shape[k], body[k]
        place = carried(body_position[w, b], body_rotation[w, b], local_position[w, s])
        spin = angular(body_velocity[w, b])
        speed = carried_velocity(body_velocity[w, b], place - body_position[w, b])
        position[w, k] = place
        rotation[w, k] = quat_mul(body_rotation[w, b], local_rotation[w, s])
        velocity[w, k] = vec6(spin[0], spin[1], spin[2], speed[0], speed[1], speed[2])
        size[w, k] = local_size[w, s]


@wp.kernel
def springs_kernel(
    body: wp.array(dtype=wp.int32),
    anchor: wp.array2d(dtype=vec3),
    body_position: wp.array2d(dtype=vec3),
    body_rotation: wp.array2d(dtype=quat),
    body_velocity: wp.array2d(dtype=vec6),
    # out
    place: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec3),
):
    """Where springs are attached, and how that moves."""
    w = wp.tid()
    for k in range(body.shape[0]):
        b = body[k]
        at = carried(body_position[w, b], body_rotation[w, b], anchor[w, k])
        place[w, k] = at
        velocity[w, k] = carried_velocity(body_velocity[w, b], at - body_position[w, b])


@wp.kernel
def pins_kernel(
    body: wp.array(dtype=wp.int32),
    control: wp.array(dtype=wp.int32),
    anchor: wp.array2d(dtype=vec3),
    move: wp.array2d(dtype=vec3),
    time_step: wp.array(dtype=real),
    body_position: wp.array2d(dtype=vec3),
    body_rotation: wp.array2d(dtype=quat),
    body_velocity: wp.array2d(dtype=vec6),
    # out
    hold: wp.array2d(dtype=vec3),
    target: wp.array2d(dtype=vec3),
):
    """Where pinned vertices are at the end of the step: moved by the control, or carried by a body from `hold` on."""
    w = wp.tid()
    for k in range(body.shape[0]):
        b = body[k]
        if control[k] >= 0:
            target[w, k] = anchor[w, k] + move[w, control[k]]
        else:
            at = carried(body_position[w, b], body_rotation[w, b], anchor[w, k])
            speed = carried_velocity(body_velocity[w, b], at - body_position[w, b])
            hold[w, k] = at
            target[w, k] = at + time_step[w] * speed


@wp.kernel
def shape_acceleration_kernel(
    body: wp.array(dtype=wp.int32),
    position: wp.array2d(dtype=vec3),
    body_position: wp.array2d(dtype=vec3),
    body_acceleration: wp.array2d(dtype=vec6),
    # out
    acceleration: wp.array2d(dtype=vec6),
):
    """Jq̈ of shapes, as their velocities."""
    w = wp.tid()
    for k in range(body.shape[0]):
        b = body[k]
        moved = carried_velocity(body_acceleration[w, b], position[w, k] - body_position[w, b])
        acceleration[w, k] = spatial(angular(body_acceleration[w, b]), moved)


@wp.kernel
def spring_acceleration_kernel(
    body: wp.array(dtype=wp.int32),
    place: wp.array2d(dtype=vec3),
    body_position: wp.array2d(dtype=vec3),
    body_acceleration: wp.array2d(dtype=vec6),
    # out
    acceleration: wp.array2d(dtype=vec3),
):
    """Jq̈ where springs are attached."""
    w = wp.tid()
    for k in range(body.shape[0]):
        b = body[k]
        acceleration[w, k] = carried_velocity(body_acceleration[w, b], place[w, k] - body_position[w, b])


@wp.kernel
def pin_end_kernel(
    body: wp.array(dtype=wp.int32),
    hold: wp.array2d(dtype=vec3),
    target: wp.array2d(dtype=vec3),
    time_step: wp.array(dtype=real),
    body_position: wp.array2d(dtype=vec3),
    body_acceleration: wp.array2d(dtype=vec6),
    # out
    end: wp.array2d(dtype=vec3),
):
    """Where pinned vertices are at the end of the step, with what their bodies accelerate."""
    w = wp.tid()
    h = time_step[w]
    for k in range(body.shape[0]):
        b = body[k]
        end[w, k] = target[w, k]
        if b > 0:
            end[w, k] = target[w, k] + (h * h) * carried_velocity(
                body_acceleration[w, b], hold[w, k] - body_position[w, b]
            )


@wp.kernel
def rate_kernel(
    time_step: wp.array(dtype=real),
    v: wp.array2d(dtype=vec3),
    next_v: wp.array2d(dtype=vec3),
    # out
    a: wp.array2d(dtype=vec3),
):
    """Acceleration of vertices, from what they reach."""
    w, i = wp.tid()
    a[w, i] = (next_v[w, i] - v[w, i]) / time_step[w]


@wp.kernel(enable_backward=False)
def clear_kernel(force: wp.array2d(dtype=vec3)):
    """Zero, before contacts are added."""
    w = wp.tid()
    for i in range(force.shape[1]):
        force[w, i] = vec3()


@wp.func
def on_body(force: vec3, arm: vec3) -> vec6:
    """A force and its torque, as the bodies' step has them."""
    return spatial(wp.cross(arm, force), force)


@wp.kernel
def contact_kernel(
    c: Contacts,
    body: wp.array(dtype=wp.int32),
    time_step: wp.array(dtype=real),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    a: wp.array2d(dtype=vec3),
    node: wp.array(dtype=wp.int32),
    tree: wp.array(dtype=wp.int32),
    origin: wp.array2d(dtype=vec3),
    # in and out
    wrench: wp.array2d(dtype=vec6),
    force: wp.array2d(dtype=vec3),
):
    """Adds the contact forces on bodies, about the reference points of their trees, or those on vertices, N."""
    w = wp.tid()
    h = time_step[w]
    for k in range(c.kind.shape[0]):
        b = body[k]
        count = c.corner.shape[0]
        if b == 0 and not force:
            count = 0
        for i in range(count):
            if node[c.corner[i, 0]] >= 0:
                at = sampled(c.corner, c.share, i, w, x)
                speed, rate = sampled(c.corner, c.share, i, w, v), sampled(c.corner, c.share, i, w, a)
                row = row_gradient(c, w, k, i, h, at, speed, rate)
                if force:
                    for e in range(3):
                        force[w, c.corner[i, e]] += -c.share[i, e] * row
                if wrench:
                    if b > 0:
                        wrench[w, b] += on_body(row, at - origin[w, tree[b]])


@wp.kernel
def spring_wrench_kernel(
    vertex: wp.array(dtype=wp.int32),
    body: wp.array(dtype=wp.int32),
    place: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec3),
    acceleration: wp.array2d(dtype=vec3),
    stiffness: wp.array2d(dtype=real),
    damping: wp.array2d(dtype=real),
    time_step: wp.array(dtype=real),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    a: wp.array2d(dtype=vec3),
    node: wp.array(dtype=wp.int32),
    tree: wp.array(dtype=wp.int32),
    origin: wp.array2d(dtype=vec3),
    # in and out
    wrench: wp.array2d(dtype=vec6),
):
    """Adds what springs exert on bodies."""
    w = wp.tid()
    h = time_step[w]
    for k in range(vertex.shape[0]):
        i, b = vertex[k], body[k]
        if b > 0 and node[i] >= 0:
            force = pull(
                place[w, k],
                velocity[w, k],
                acceleration[w, k],
                stiffness[w, k],
                damping[w, k],
                h,
                x[w, i],
                v[w, i],
                a[w, i],
            )
            wrench[w, b] += on_body(force, place[w, k] - origin[w, tree[b]])


@wp.kernel
def pin_wrench_kernel(
    vertex: wp.array(dtype=wp.int32),
    body: wp.array(dtype=wp.int32),
    elastic: wp.array2d(dtype=vec3),
    mass: wp.array2d(dtype=real),
    mass_damping: wp.array(dtype=real),
    gravity: wp.array(dtype=vec3),
    time_step: wp.array(dtype=real),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    given: wp.array2d(dtype=vec3),
    hold: wp.array2d(dtype=vec3),
    end: wp.array2d(dtype=vec3),
    tree: wp.array(dtype=wp.int32),
    origin: wp.array2d(dtype=vec3),
    # in and out
    wrench: wp.array2d(dtype=vec6),
):
    """Adds what vertices that bodies carry exert on these: their weight and inertia, and what pulls at them."""
    w = wp.tid()
    h = time_step[w]
    for k in range(vertex.shape[0]):
        i, b = vertex[k], body[k]
        if b > 0:
            next_v = (end[w, k] - x[w, i]) / h
            a = (next_v - v[w, i]) / h
            force = given[w, i] - elastic[w, k] - mass[w, i] * (a - gravity[w] + mass_damping[w] * next_v)
            wrench[w, b] += on_body(force, hold[w, k] - origin[w, tree[b]])


@wp.kernel
def copy_kernel(
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    # out
    next_x: wp.array2d(dtype=vec3),
    next_v: wp.array2d(dtype=vec3),
):
    """The solution becomes the next state."""
    w, i = wp.tid()
    next_x[w, i] = x[w, i]
    next_v[w, i] = v[w, i]


@wp.kernel
def center_kernel(mass: wp.array2d(dtype=real), x: wp.array2d(dtype=vec3), center: wp.array2d(dtype=vec3)):
    """Center of mass."""
    w = wp.tid()
    center[w, 0] = mass_moment(mass, x, w) / total_mass(mass, w)


@wp.func
def mass_moment(mass: wp.array2d(dtype=real), x: wp.array2d(dtype=vec3), w: int) -> vec3:
    """Σ mx, kg m."""
    total = vec3()
    for i in range(x.shape[1]):
        total += mass[w, i] * x[w, i]
    return total


@wp.func
def total_mass(mass: wp.array2d(dtype=real), w: int) -> real:
    """Σ m, kg."""
    total = real(0.0)
    for i in range(mass.shape[1]):
        total += mass[w, i]
    return total


@wp.kernel
def spread_kernel(value: wp.array(dtype=real), scale: wp.array2d(dtype=real), out: wp.array2d(dtype=real)):
    """One value of a world to each element, times the element's own factor where there are any; some share one."""
    w, e = wp.tid()
    if scale:
        out[w, e] = value[w] * scale[w, e // (out.shape[1] // scale.shape[1])]
    else:
        out[w, e] = value[w]
