"""Drives of joints that close loops: the force of the step's start, with the velocity's part of its end.

As for drives of the tree (`rigid.dynamics.actuation`), what multiplies the acceleration is left to the solver, here
as a row (`rigid.constraint.loop_rows`): the coordinate is not a dof, and the matrix has no place for it.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import quat, real, vec2, vec3, vec6
from warpsim.core.spatial import clamp_range, outside, quat_mul, quat_rotate
from warpsim.core.stages import stage
from warpsim.rigid.dynamics.loop_coordinates import loop_direction, loop_value, loop_wrench
from warpsim.rigid.model.actuators import DriveTopology
from warpsim.rigid.model.equalities import EqualityTopology
from warpsim.rigid.model.loops import LoopTopology
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import DriveParameters, EqualityParameters
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.state import Control, Work


@wp.kernel
def _loop_drive_kernel(
    # topology, parameters
    t: Topology,
    x: EqualityTopology,
    l: LoopTopology,
    d: DriveTopology,
    e: EqualityParameters,
    drive: DriveParameters,
    timestep: wp.array(dtype=real),
    implicit: int,
    place: int,
    # control
    target: wp.array2d(dtype=real),
    target_velocity: wp.array2d(dtype=real),
    # work in
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    velocity: wp.array2d(dtype=vec6),
    # work out
    wrench: wp.array2d(dtype=vec6),
    saturated: wp.array2d(dtype=wp.int32),
):
    w = natural(wp.tid())
    h = timestep[w] * real(implicit)
    for n in range(d.count):
        if d.loop[n] >= 0:
            c = d.loop[n]
            q = l.equality[c]
            body_a = x.a[q]
            body_b = x.b[q]
            ra = link_rotation[w, t.body_link[body_a]]
            rb = link_rotation[w, t.body_link[body_b]]
            a = quat_mul(quat_mul(ra, e.relative_rotation[w, q]), e.axes[w, q])
            b = quat_mul(rb, e.axes[w, q])
            point_a = link_position[w, t.body_link[body_a]] + quat_rotate(ra, e.anchor_a[w, q])
            point_b = link_position[w, t.body_link[body_b]] + quat_rotate(rb, e.anchor_b[w, q])
            along = loop_direction(l.kind[c], l.turns[c], l.i[c], l.j[c], a, b)
            unit_a = loop_wrench(l.kind[c], along, point_b - origin[w, t.body_tree[body_a]])
            unit_b = loop_wrench(l.kind[c], along, point_b - origin[w, t.body_tree[body_b]])
            rate = wp.dot(unit_b, velocity[w, t.body_last_dof[body_b]])
            rate -= wp.dot(unit_a, velocity[w, t.body_last_dof[body_a]])
            value = loop_value(l.kind[c], l.i[c], l.j[c], a, b, point_b - point_a)
            raw = drive.stiffness[w, n] * (target[w, n] - value - h * rate)
            raw += drive.damping[w, n] * (target_velocity[w, n] - rate)
            limit = drive.max_force[w, n]
            f = clamp_range(raw, -limit, limit)
            saturated[w, place + n] = outside(raw, vec2(-limit, limit))
            wrench[w, body_a] += -f * unit_a
            wrench[w, body_b] += f * unit_b


@stage
def loop_drives(m: Model, u: Control, work: Work) -> None:
    """Adds the forces of drives on joints that close loops to `work.wrench`."""
    wp.launch(
        _loop_drive_kernel,
        dim=m.worlds,
        inputs=[
            m.topology,
            m.equality_topology,
            m.loop_topology,
            m.drive_topology,
            m.equality,
            m.drive,
            m.world.timestep,
            int(m.implicit_drives),
            m.nu,
            u.drive_target,
            u.drive_velocity,
            work.origin,
            work.link_position,
            work.link_rotation,
            work.velocity,
        ],
        outputs=[work.wrench, work.saturated],
        device=m.device,
    )
