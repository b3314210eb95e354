"""Transmissions of actuators: lengths, rates, and the wrench of those that act at a site."""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.core.spatial import quat_log, quat_mul, quat_rotate, read_quat, spatial
from warpsim.rigid.model.actuators import BALL_JOINT, FREE_JOINT, JOINT, TENDON, ActuatorTopology
from warpsim.rigid.model.parameters import SiteParameters
from warpsim.rigid.model.tendons import TendonMotion, TendonTopology, tendon_length, tendon_rate
from warpsim.rigid.model.topology import Topology


@wp.func
def site_wrench(
    t: Topology,
    a: ActuatorTopology,
    site: SiteParameters,
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    origin: wp.array2d(dtype=vec3),
    w: int,
    i: int,
    gear: vec6,
) -> vec6:
    """Unit wrench (torque, force) of a site transmission about the tree's reference point; gear is (force, torque)."""
    b = a.site_body[i]
    link = t.body_link[b]
    r = link_rotation[w, link]
    frame = quat_mul(r, site.rotation[w, i])
    point = link_position[w, link] + quat_rotate(r, site.position[w, i]) - origin[w, t.body_tree[b]]
    force = quat_rotate(frame, vec3(gear[0], gear[1], gear[2]))
    torque = quat_rotate(frame, vec3(gear[3], gear[4], gear[5]))
    return spatial(torque + wp.cross(point, force), force)


@wp.func
def dof_count(transmission: int) -> int:
    """How many dofs a joint transmission pushes."""
    if transmission == BALL_JOINT:
        return 3
    if transmission == FREE_JOINT:
        return 6
    return 1


@wp.func
def transmission_length(
    a: ActuatorTopology,
    tt: TendonTopology,
    x: TendonMotion,
    q: wp.array2d(dtype=real),
    w: int,
    i: int,
    gear: vec6,
) -> real:
    """Length of a transmission that is no site: its unit times the gear's."""
    kind = a.transmission[i]
    if kind == JOINT:
        return gear[0] * q[w, a.q[i]]
    if kind == TENDON:
        return gear[0] * tendon_length(tt, x, q, w, a.target[i])
    if kind == BALL_JOINT:
        return wp.dot(vec3(gear[0], gear[1], gear[2]), quat_log(read_quat(q, w, a.q[i])))
    return real(0.0)


@wp.func
def _dof_rate(qd: wp.array2d(dtype=real), w: int, d: int, gear: vec6, count: int) -> real:
    rate = real(0.0)
    for e in range(count):
        rate += gear[e] * qd[w, d + e]
    return rate


@wp.func
def transmission_rate(
    a: ActuatorTopology,
    tt: TendonTopology,
    x: TendonMotion,
    qd: wp.array2d(dtype=real),
    w: int,
    i: int,
    gear: vec6,
) -> real:
    """Rate of that length."""
    if a.transmission[i] == TENDON:
        return gear[0] * tendon_rate(tt, x.moment, qd, w, a.target[i])
    return _dof_rate(qd, w, a.dof[i], gear, dof_count(a.transmission[i]))
