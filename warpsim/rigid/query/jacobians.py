"""How dofs move points: velocity and Jacobian of a point fixed to a body, and twists of all dofs at one point."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from warpsim.core.errors import InputError, unknown_name
from warpsim.core.precision import numpy_real, quat, real, vec3, vec6
from warpsim.core.spatial import angular, linear, quat_rotate, spatial
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.query.motion import evaluate
from warpsim.rigid.work.state import State, Work


@wp.func
def _at_point(twist: vec6, point: vec3) -> vec6:
    """The same motion as (angular velocity, velocity of the matter at `point`)."""
    return spatial(angular(twist), linear(twist) + wp.cross(angular(twist), point))


@wp.func
def _point_on_body(
    t: Topology,
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    w: int,
    body: int,
    local: vec3,
) -> vec3:
    """World position of a body's point less the tree's reference point."""
    link = t.body_link[body]
    return link_position[w, link] + quat_rotate(link_rotation[w, link], local) - origin[w, t.body_tree[body]]


@wp.kernel
def _velocity_kernel(
    # topology, arguments
    t: Topology,
    body: int,
    local: wp.array(dtype=vec3),
    # motion
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    velocity: wp.array2d(dtype=vec6),
    # out
    twist: wp.array(dtype=vec6),
):
    w = wp.tid()
    point = _point_on_body(t, origin, link_position, link_rotation, w, body, local[w])
    twist[w] = _at_point(velocity[w, t.body_last_dof[body]], point)


@wp.kernel
def _jacobian_kernel(
    # topology, arguments
    t: Topology,
    body: int,
    local: wp.array(dtype=vec3),
    # motion
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    axis: wp.array2d(dtype=vec6),
    # out
    jacobian: wp.array3d(dtype=real),
):
    w = wp.tid()
    last = t.body_last_dof[body]
    if last > 0:
        point = _point_on_body(t, origin, link_position, link_rotation, w, body, local[w])
        for e in range(t.row_start[last - 1], t.row_start[last]):
            d = t.row_column[e]
            column = _at_point(axis[w, d], point)
            for k in range(6):
                jacobian[w, k, d] = column[k]


@wp.kernel
def _dof_twist_kernel(
    t: Topology,
    point: wp.array(dtype=vec3),
    origin: wp.array2d(dtype=vec3),
    axis: wp.array2d(dtype=vec6),
    twist: wp.array2d(dtype=vec6),
):
    w, d = wp.tid()
    twist[w, d] = _at_point(axis[w, d], point[w] - origin[w, t.body_tree[t.dof_body[d]]])


def _points(model: Model, point: Any) -> wp.array:
    """(W,) vec3 from (3,) or (W, 3) numbers; a device array, which may carry a gradient, is taken as it is."""
    if isinstance(point, wp.array):
        if point.shape != (model.worlds,) or point.dtype is not vec3:
            raise InputError(f"point is {point.shape} {point.dtype.__name__}; give ({model.worlds},) vec3")
        return point
    values = np.asarray(point, numpy_real)
    if values.shape not in ((3,), (model.worlds, 3)):
        raise InputError(f"point has shape {values.shape}; give (3,) or ({model.worlds}, 3)")
    full = np.ascontiguousarray(np.broadcast_to(values, (model.worlds, 3)))
    return wp.array(full, dtype=vec3, device=model.device)


def _body_index(model: Model, body: str) -> int:
    if body not in model.layout.body_names:
        raise unknown_name("body", body, model.layout.body_names[1:])
    return model.layout.body_names.index(body)


def point_velocity(
    model: Model, state: State, body: str, point: Any = (0.0, 0.0, 0.0), *, motion: Work | None = None
) -> wp.array:
    """Velocity of a point fixed to a body.

    Args:
        model: The model.
        state: The state.
        body: Name of the body.
        point: In the body's frame, m: (3,), (W, 3), or a (W,) vec3 device array.
        motion: What `evaluate` gave for this state.

    Returns:
        (W,) vec6: angular velocity, rad/s, then the point's velocity, m/s, world axes.
    """
    motion = motion or evaluate(model, state)
    twist = wp.zeros(model.worlds, dtype=vec6, device=model.device, requires_grad=True)
    wp.launch(
        _velocity_kernel,
        dim=model.worlds,
        inputs=[
            model.topology,
            _body_index(model, body),
            _points(model, point),
            motion.origin,
            motion.link_position,
            motion.link_rotation,
            motion.velocity,
        ],
        outputs=[twist],
        device=model.device,
    )
    return twist


def body_jacobian(
    model: Model, state: State, body: str, point: Any = (0.0, 0.0, 0.0), *, motion: Work | None = None
) -> wp.array:
    """Jacobian of a point fixed to a body: J·qd is `point_velocity`.

    Args:
        model: The model.
        state: The state; only `q` counts.
        body: Name of the body.
        point: In the body's frame, m: (3,), (W, 3), or a (W,) vec3 device array.
        motion: What `evaluate` gave for this state.

    Returns:
        (W, 6, nv): rows 0 to 2 rotation, 3 to 5 translation, world axes.
    """
    motion = motion or evaluate(model, state)
    shape = (model.worlds, 6, model.nv)
    jacobian = wp.zeros(shape, dtype=real, device=model.device, requires_grad=True)
    wp.launch(
        _jacobian_kernel,
        dim=model.worlds,
        inputs=[
            model.topology,
            _body_index(model, body),
            _points(model, point),
            motion.origin,
            motion.link_position,
            motion.link_rotation,
            motion.axis,
        ],
        outputs=[jacobian],
        device=model.device,
    )
    return jacobian


def dof_twists(model: Model, state: State, point: Any = (0.0, 0.0, 0.0), *, motion: Work | None = None) -> wp.array:
    """What each dof, moving at unit rate, does to matter at a point of the world.

    The Jacobian of a body at that point has these columns for the dofs between it and the world, and zeros elsewhere.

    Args:
        model: The model.
        state: The state; only `q` counts.
        point: World, m: (3,), (W, 3), or a (W,) vec3 device array.
        motion: What `evaluate` gave for this state.

    Returns:
        (W, nv) vec6: angular velocity, then velocity at the point, world axes, per unit of the dof's rate.
    """
    motion = motion or evaluate(model, state)
    twists = wp.zeros((model.worlds, model.nv), dtype=vec6, device=model.device, requires_grad=True)
    wp.launch(
        _dof_twist_kernel,
        dim=(model.worlds, model.nv),
        inputs=[model.topology, _points(model, point), motion.origin, motion.axis],
        outputs=[twists],
        device=model.device,
    )
    return twists
