"""Sensors of what bodies bear: touch in the volume of a site, force and torque that a parent passes to its child.

As in MuJoCo, what a parent passes on is what moves the subtree less what contacts and applied wrenches give it.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import mat33, quat, real, vec3, vec6
from warpsim.core.spatial import angular, linear, point_rate, quat_mul, quat_rotate, quat_rotate_back, sym_mul
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import SiteParameters
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.sensors.layout import SensorTopology
from warpsim.rigid.sensors.volumes import ray_meets
from warpsim.rigid.work.state import Work


@wp.struct
class Touches:
    """Contacts of a step and their forces, as in `ConstraintWork`."""

    pair_shapes: wp.array2d(dtype=wp.int32)
    count: wp.array(dtype=wp.int32)
    pair: wp.array2d(dtype=wp.int32)
    distance: wp.array2d(dtype=real)
    point: wp.array2d(dtype=vec3)
    frame: wp.array2d(dtype=mat33)
    force: wp.array2d(dtype=vec6)


@wp.struct
class Load:
    """Motion of the bodies and what is applied to them."""

    origin: wp.array2d(dtype=vec3)
    com: wp.array2d(dtype=vec3)
    inertia: wp.array2d(dtype=vec6)
    velocity: wp.array2d(dtype=vec6)
    acceleration: wp.array2d(dtype=vec6)
    applied: wp.array2d(dtype=vec6)  # force, torque at the com, world axes


@wp.func
def _in_subtree(c: SensorTopology, i: int, b: int) -> int:
    found = int(0)
    for k in range(c.subtree_start[i], c.subtree_start[i + 1]):
        if c.subtree_body[k] == b:
            found = 1
    return found


@wp.func
def _touch(c: SensorTopology, x: Touches, w: int, i: int, b: int, p: vec3, r: quat) -> real:
    """Sum of normal forces of contacts of body b that push into the volume of a site at p, turned by r."""
    total = real(0.0)
    for k in range(wp.min(x.count[w], x.pair.shape[1])):
        a0 = c.shape_body[x.pair_shapes[x.pair[w, k], 0]]
        a1 = c.shape_body[x.pair_shapes[x.pair[w, k], 1]]
        push = x.force[w, k][0]
        if (a0 == b or a1 == b) and push > real(0.0):
            f = x.frame[w, k]
            along = vec3(f[0, 0], f[0, 1], f[0, 2])
            if a1 == b:
                along = -along
            o = quat_rotate_back(r, x.point[w, k] - p)
            if ray_meets(c.form[c.target[i]], c.extent[c.target[i]], o, quat_rotate_back(r, along)) == 1:
                total += push
    return total


@wp.func
def _moving_force(c: SensorTopology, t: Topology, x: Load, mass: wp.array2d(dtype=real), w: int, i: int) -> vec3:
    """Σ m a − applied forces over a subtree, gravity included, N."""
    total = vec3()
    for k in range(c.subtree_start[i], c.subtree_start[i + 1]):
        b = c.subtree_body[k]
        v = x.velocity[w, t.body_last_dof[b]]
        g = x.acceleration[w, t.body_last_dof[b]]
        fall = point_rate(g, x.com[w, b]) + wp.cross(angular(v), point_rate(v, x.com[w, b]))
        total += fall * mass[w, b] - angular(x.applied[w, b])  # of a control, the first three are the force
    return total


@wp.func
def _moving_torque(
    c: SensorTopology, t: Topology, x: Load, mass: wp.array2d(dtype=real), w: int, i: int, p: vec3
) -> vec3:
    """Σ d(angular momentum about p)/dt − applied torques over a subtree, N·m."""
    total = vec3()
    for k in range(c.subtree_start[i], c.subtree_start[i + 1]):
        b = c.subtree_body[k]
        v = x.velocity[w, t.body_last_dof[b]]
        g = x.acceleration[w, t.body_last_dof[b]]
        fall = point_rate(g, x.com[w, b]) + wp.cross(angular(v), point_rate(v, x.com[w, b]))
        net = fall * mass[w, b] - angular(x.applied[w, b])
        arm = x.origin[w, t.body_tree[b]] + x.com[w, b] - p
        spin = sym_mul(x.inertia[w, b], angular(g)) + wp.cross(angular(v), sym_mul(x.inertia[w, b], angular(v)))
        total += spin + wp.cross(arm, net) - linear(x.applied[w, b])
    return total


@wp.func
def _contact_part(c: SensorTopology, x: Touches, w: int, i: int, p: vec3, turning: int) -> vec3:
    """Force (turning 0) or torque about p (1) of contacts on a subtree."""
    total = vec3()
    for k in range(wp.min(x.count[w], x.pair.shape[1])):
        f = x.force[w, k]
        axes = wp.transpose(x.frame[w, k])
        push = axes * vec3(f[0], f[1], f[2])
        value = push
        if turning == 1:
            value = axes * vec3(f[3], f[4], f[5]) + wp.cross(x.point[w, k] - p, push)
        on = _in_subtree(c, i, c.shape_body[x.pair_shapes[x.pair[w, k], 1]]) - _in_subtree(
            c, i, c.shape_body[x.pair_shapes[x.pair[w, k], 0]]
        )
        total += value * real(on)
    return total


@wp.kernel
def _load_kernel(
    # topology, parameters
    c: SensorTopology,
    t: Topology,
    site: SiteParameters,
    mass: wp.array2d(dtype=real),
    # work in
    x: Touches,
    load: Load,
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    # out
    out: wp.array2d(dtype=real),
):
    # One thread per world: sensors add to the adjoints of the same bodies in a fixed order.
    w = natural(wp.tid())
    for i in range(c.kind.shape[0]):
        kind = c.kind[i]
        if kind >= 26 and kind <= 28:
            s = c.target[i]
            b = c.site_body[s]
            turn = link_rotation[w, t.body_link[b]]
            p = link_position[w, t.body_link[b]] + quat_rotate(turn, site.position[w, s])
            r = quat_mul(turn, site.rotation[w, s])
            if kind == 26:
                out[w, c.start[i]] = _touch(c, x, w, i, b, p, r)
            else:
                value = vec3()
                if kind == 27:
                    value = _moving_force(c, t, load, mass, w, i) - _contact_part(c, x, w, i, p, 0)
                else:
                    value = _moving_torque(c, t, load, mass, w, i, p) - _contact_part(c, x, w, i, p, 1)
                local = quat_rotate_back(r, value)
                for e in range(3):
                    out[w, c.start[i] + e] = local[e]


def measure_loads(
    m: Model, c: SensorTopology, work: Work, touches: Touches, acceleration: wp.array, applied: wp.array, out: wp.array
) -> None:
    """Writes them to the measurement vector (W, size)."""
    load = Load()
    load.origin, load.com, load.inertia, load.velocity = work.origin, work.com, work.inertia, work.velocity
    load.acceleration, load.applied = acceleration, applied
    wp.launch(
        _load_kernel,
        dim=m.worlds,
        inputs=[c, m.topology, m.site, m.body.mass, touches, load, work.link_position, work.link_rotation],
        outputs=[out],
        device=m.device,
    )
