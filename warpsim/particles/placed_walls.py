"""Shapes of a scene as walls: placed where their bodies are, and the wrench that goes back to these.

A wrench is kept as torque about the world's origin and force, which add up over bodies and steps whatever moves; bodies
take it as force and torque at the center of mass that they have when it acts.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import quat, vec3, vec6
from warpsim.core.spatial import angular, linear, quat_mul, quat_rotate, spatial
from warpsim.matter.matter import Bodies, Shapes
from warpsim.particles.walls import WallMotion


@wp.kernel
def _place_walls_kernel(
    # topology
    shape: wp.array(dtype=wp.int32),
    body: wp.array(dtype=wp.int32),
    # parameters
    local_position: wp.array2d(dtype=vec3),
    local_rotation: wp.array2d(dtype=quat),
    local_size: wp.array2d(dtype=vec3),
    # bodies
    body_position: wp.array2d(dtype=vec3),
    body_rotation: wp.array2d(dtype=quat),
    body_velocity: wp.array2d(dtype=vec6),
    # work written
    position: wp.array2d(dtype=vec3),
    rotation: wp.array2d(dtype=quat),
    twist: wp.array2d(dtype=vec6),
    size: wp.array2d(dtype=vec3),
):
    w = natural(wp.tid())
    # One thread per world: walls of one body add to the adjoint of one pose, in a fixed order.
    for s in range(shape.shape[0]):
        i = shape[s]
        b = body[s]
        r = body_rotation[w, b]
        arm = quat_rotate(r, local_position[w, i])
        velocity = body_velocity[w, b]
        position[w, s] = body_position[w, b] + arm
        rotation[w, s] = quat_mul(r, local_rotation[w, i])
        twist[w, s] = spatial(angular(velocity), linear(velocity) + wp.cross(angular(velocity), arm))
        size[w, s] = local_size[w, i]


@wp.kernel
def _to_bodies_kernel(
    pending: wp.array2d(dtype=vec6),
    com: wp.array2d(dtype=vec3),
    wrench: wp.array2d(dtype=vec6),
):
    w, b = wp.tid()
    w = natural(w)
    b = natural(b)
    if b > 0:
        force = linear(pending[w, b])
        torque = angular(pending[w, b]) - wp.cross(com[w, b], force)
        wrench[w, b] = vec6(force[0], force[1], force[2], torque[0], torque[1], torque[2])


@wp.kernel
def _keep_kernel(total: wp.array2d(dtype=vec6), pending: wp.array2d(dtype=vec6)):
    w, b = wp.tid()
    pending[natural(w), natural(b)] = total[natural(w), natural(b)]


def place_walls(
    shape: wp.array, body: wp.array, shapes: Shapes, bodies: Bodies, motion: WallMotion, size: wp.array
) -> None:
    """Poses, twists and sizes of walls, (W, walls).

    Args:
        shape: (walls,) which of the scene's shapes each is.
        body: (walls,) whose.
        shapes: Of the scene.
        bodies: Where they are and how they move.
        motion: Written.
        size: Written, m.
    """
    wp.launch(
        _place_walls_kernel,
        dim=size.shape[0],
        inputs=[shape, body, shapes.position, shapes.rotation, shapes.size]
        + [bodies.position, bodies.rotation, bodies.velocity],
        outputs=[*motion.arrays, size],
        device=size.device,
    )


def wrench_on_bodies(pending: wp.array, bodies: Bodies) -> None:
    """Writes `bodies.wrench` from a pending wrench, (W, bodies): torque about the world's origin N·m, force N."""
    wp.launch(
        _to_bodies_kernel,
        dim=pending.shape,
        inputs=[pending, bodies.com],
        outputs=[bodies.wrench],
        device=pending.device,
    )


def keep_wrench(total: wp.array, pending: wp.array) -> None:
    """Copies what a step summed to the state that it leaves."""
    wp.launch(_keep_kernel, dim=total.shape, inputs=[total], outputs=[pending], device=total.device)
