"""Shapes, springs' ends and pinned places of a step from the bodies at its start, and what bodies feel. Taped.

Within a step a body goes on at the velocity it has at the start; the forces of the converged step act on it in the same
step. One thread does a world, in a fixed order.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.core.spatial import angular, linear, quat_mul, quat_rotate
from warpsim.deformable.contact import Contacts, Surfaces, closing, contact_normal, row_gradient, velocity_at
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


@wp.func
def contacts_on(
    surfaces: Surfaces,
    s: int,
    corner: wp.array2d(dtype=wp.int32),
    share: wp.array2d(dtype=real),
    kind: int,
    position: vec3,
    rotation: quat,
    velocity: vec6,
    size: vec3,
    w: int,
    h: real,
    radius: wp.array2d(dtype=real),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
) -> real:
    """How many samples touch a shape within the step, counted smoothly; 1 more, for those that come in between."""
    total = real(1.0)
    for i in range(corner.shape[0]):
        at = sampled(corner, share, i, w, x)
        distance, n = contact_normal(surfaces, s, kind, position, rotation, size, at)
        u = sampled(corner, share, i, w, v) - velocity_at(velocity, position, at)
        total += closing(distance - radius[w, i] + h * wp.dot(n, u))
    return total


@wp.kernel
def yielding_kernel(
    surfaces: Surfaces,
    corner: wp.array2d(dtype=wp.int32),
    share: wp.array2d(dtype=real),
    kind: wp.array(dtype=wp.int32),
    body: wp.array(dtype=wp.int32),
    mass: wp.array2d(dtype=real),
    position: wp.array2d(dtype=vec3),
    rotation: wp.array2d(dtype=quat),
    velocity: wp.array2d(dtype=vec6),
    size: wp.array2d(dtype=vec3),
    time_step: wp.array(dtype=real),
    radius: wp.array2d(dtype=real),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    # out
    yielding: wp.array2d(dtype=real),
):
    """σ of each shape: two over the share of its body's mass that a contact has; 0 for what stands still."""
    w = wp.tid()
    for k in range(kind.shape[0]):
        b = body[k]
        if b > 0 and mass[w, b] > real(0.0):
            count = contacts_on(
                surfaces,
                k,
                corner,
                share,
                kind[k],
                position[w, k],
                rotation[w, k],
                velocity[w, k],
                size[w, k],
                w,
                time_step[w],
                radius,
                x,
                v,
            )
            yielding[w, k] = real(2.0) * count / mass[w, b]
        else:
            yielding[w, k] = real(0.0)


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
    target: wp.array2d(dtype=vec3),
):
    """Where pinned vertices are at the end of the step: moved by the control, or carried by a body."""
    w = wp.tid()
    for k in range(body.shape[0]):
        b = body[k]
        if control[k] >= 0:
            target[w, k] = anchor[w, k] + move[w, control[k]]
        else:
            at = carried(body_position[w, b], body_rotation[w, b], anchor[w, k])
            speed = carried_velocity(body_velocity[w, b], at - body_position[w, b])
            target[w, k] = at + time_step[w] * speed


@wp.kernel(enable_backward=False)
def clear_kernel(force: wp.array2d(dtype=vec3)):
    """Zero, before contacts are added."""
    w = wp.tid()
    for i in range(force.shape[1]):
        force[w, i] = vec3()


@wp.func
def on_body(force: vec3, arm: vec3) -> vec6:
    """A force and its torque."""
    torque = wp.cross(arm, force)
    return vec6(force[0], force[1], force[2], torque[0], torque[1], torque[2])


@wp.kernel
def contact_kernel(
    c: Contacts,
    body: wp.array(dtype=wp.int32),
    time_step: wp.array(dtype=real),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    next_v: wp.array2d(dtype=vec3),
    com: wp.array2d(dtype=vec3),
    # in and out
    wrench: wp.array2d(dtype=vec6),
    force: wp.array2d(dtype=vec3),
):
    """Adds the contact forces on bodies, and those on vertices where they are asked for, N."""
    w = wp.tid()
    h = time_step[w]
    for k in range(c.kind.shape[0]):
        b = body[k]
        for i in range(c.corner.shape[0]):
            at, speed = sampled(c.corner, c.share, i, w, x), sampled(c.corner, c.share, i, w, v)
            row = row_gradient(c, w, k, i, h, at, speed, (sampled(c.corner, c.share, i, w, next_v) - speed) / h)
            if force:
                for e in range(3):
                    force[w, c.corner[i, e]] += -c.share[i, e] * row
            if wrench:
                if b > 0:
                    wrench[w, b] += on_body(row, at - com[w, b])


@wp.kernel
def spring_wrench_kernel(
    vertex: wp.array(dtype=wp.int32),
    body: wp.array(dtype=wp.int32),
    place: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec3),
    stiffness: wp.array2d(dtype=real),
    damping: wp.array2d(dtype=real),
    time_step: wp.array(dtype=real),
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    next_v: wp.array2d(dtype=vec3),
    com: wp.array2d(dtype=vec3),
    # in and out
    wrench: wp.array2d(dtype=vec6),
):
    """Adds what springs exert on bodies."""
    w = wp.tid()
    h = time_step[w]
    for k in range(vertex.shape[0]):
        i, b = vertex[k], body[k]
        if b > 0:
            a = (next_v[w, i] - v[w, i]) / h
            force = pull(place[w, k], velocity[w, k], stiffness[w, k], damping[w, k], h, x[w, i], v[w, i], a)
            wrench[w, b] += on_body(force, place[w, k] - com[w, b])


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
    next_v: wp.array2d(dtype=vec3),
    given: wp.array2d(dtype=vec3),
    com: wp.array2d(dtype=vec3),
    # in and out
    wrench: wp.array2d(dtype=vec6),
):
    """Adds what vertices that bodies hold exert on these: their weight and inertia, and what pulls at them."""
    w = wp.tid()
    for k in range(vertex.shape[0]):
        i, b = vertex[k], body[k]
        if b > 0:
            a = (next_v[w, i] - v[w, i]) / time_step[w]
            force = given[w, i] - elastic[w, k] - mass[w, i] * (a - gravity[w] + mass_damping[w] * next_v[w, i])
            wrench[w, b] += on_body(force, x[w, i] - com[w, b])


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
    """One value of a world to each element, times the element's own factor where there are any."""
    w, e = wp.tid()
    if scale:
        out[w, e] = value[w] * scale[w, e]
    else:
        out[w, e] = value[w]
