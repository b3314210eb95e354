"""Inertia along tendons: a mass m that moves at the rate of a tendon's length, with energy ½ m (J q̇)².

It adds m JᵀJ to the mass matrix and m Jᵀ(J̇q̇) to the bias. As in MuJoCo, only entries that the tree's mass matrix has
are added: pairs of dofs on one chain. Tendons with inertia do not wrap around shapes, so J̇ is that of straight spans.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec3, vec6
from warpsim.core.spatial import angular, motion_cross, point_rate
from warpsim.core.stages import stage
from warpsim.rigid.dynamics.span_points import TINY, Links, direction, link_point
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import SiteParameters
from warpsim.rigid.model.tendons import TendonTopology
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.state import Motion, State
from warpsim.rigid.work.tendon_work import TendonWork, tendon_motion


@wp.kernel
def bias_kernel(
    # topology
    t: Topology,
    # state
    qd: wp.array2d(dtype=real),
    # work in
    axis: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    # work out
    bias: wp.array2d(dtype=vec6),
):
    """Spatial accelerations of all dofs' frames if q̈ were zero."""
    w = natural(wp.tid())
    bias[w, 0] = vec6()
    for d in range(t.nv):
        carried = motion_cross(velocity[w, t.dof_base[d]], axis[w, d]) * qd[w, d]
        bias[w, d + 1] = bias[w, t.dof_prev[d]] + carried


@wp.func
def _span_drift(relative: vec3, way: vec3, acceleration: vec3, length: real) -> real:
    """d²length/dt² at q̈ = 0: the relative acceleration along the span, and what the relative motion turns it."""
    along = wp.dot(way, relative)
    turning = real(0.0)
    if length > TINY:
        turning = (wp.dot(relative, relative) - along * along) / length
    return wp.dot(way, acceleration) + turning


@wp.func
def _tendon_drift(
    d: Topology,
    t: TendonTopology,
    site: SiteParameters,
    x: Links,
    velocity: wp.array2d(dtype=vec6),
    bias: wp.array2d(dtype=vec6),
    w: int,
    i: int,
) -> real:
    """J̇q̇ of tendon i."""
    total = real(0.0)
    for n in range(t.span_start[i], t.span_start[i + 1]):
        a = t.span_body[n, 0]
        b = t.span_body[n, 2]
        if a != b:
            x0 = link_point(d, x, w, a, site.position[w, t.span_site[n, 0]])
            x1 = link_point(d, x, w, b, site.position[w, t.span_site[n, 1]])
            arm0 = x0 - x.origin[w, d.body_tree[a]]
            arm1 = x1 - x.origin[w, d.body_tree[b]]
            v0 = velocity[w, d.body_last_dof[a]]
            v1 = velocity[w, d.body_last_dof[b]]
            moving0 = point_rate(v0, arm0)
            moving1 = point_rate(v1, arm1)
            carried0 = point_rate(bias[w, d.body_last_dof[a]], arm0) + wp.cross(angular(v0), moving0)
            carried1 = point_rate(bias[w, d.body_last_dof[b]], arm1) + wp.cross(angular(v1), moving1)
            way = direction(x0, x1)
            drift = _span_drift(moving1 - moving0, way, carried1 - carried0, wp.length(x1 - x0))
            total += t.span_share[n] * drift
    return total


@wp.kernel
def _drift_kernel(
    # topology, parameters
    d: Topology,
    t: TendonTopology,
    site: SiteParameters,
    # work in
    x: Links,
    velocity: wp.array2d(dtype=vec6),
    bias: wp.array2d(dtype=vec6),
    # work out
    drift: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for i in range(t.count):
        drift[w, i] = _tendon_drift(d, t, site, x, velocity, bias, w, i)


@wp.kernel
def _residual_kernel(
    # topology, parameters
    d: Topology,
    t: TendonTopology,
    armature: wp.array2d(dtype=real),
    # acceleration it is evaluated at
    qdd: wp.array2d(dtype=real),
    # work in
    moment: wp.array2d(dtype=real),
    drift: wp.array2d(dtype=real),
    # work out
    residual: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for i in range(t.count):
        if t.spatial[i] == 1:
            for k in range(t.start[i], t.start[i + 1]):
                residual[w, t.dof[k]] += moment[w, k] * armature[w, i] * drift[w, i]
    for n in range(t.pair_count):
        a = t.dof[t.pair_a[n]]
        b = t.dof[t.pair_b[n]]
        if d.dof_prescribed[a] == 0 and d.dof_prescribed[b] == 0:
            inertia = armature[w, t.pair_tendon[n]] * moment[w, t.pair_a[n]] * moment[w, t.pair_b[n]]
            residual[w, a] += inertia * qdd[w, b]


@wp.kernel(enable_backward=False)
def _matrix_kernel(
    # topology, parameters
    d: Topology,
    t: TendonTopology,
    armature: wp.array2d(dtype=real),
    # work in
    moment: wp.array2d(dtype=real),
    # work out
    mass_matrix: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for n in range(t.pair_count):
        e = t.pair_entry[n]
        a = t.pair_a[n]
        b = t.pair_b[n]
        if e >= 0 and d.dof_prescribed[t.dof[a]] == 0 and d.dof_prescribed[t.dof[b]] == 0:
            mass_matrix[w, e] = mass_matrix[w, e] + armature[w, t.pair_tendon[n]] * moment[w, a] * moment[w, b]


@stage
def tendon_drift(m: Model, s: State, work: Motion, tendon: TendonWork) -> None:
    """`tendon.drift`: J̇q̇ of spatial tendons."""
    inputs = [m.topology, s.qd, work.axis, work.velocity]
    wp.launch(bias_kernel, dim=m.worlds, inputs=inputs, outputs=[tendon.bias], device=m.device)
    links = Links()
    links.origin, links.position, links.rotation = work.origin, work.link_position, work.link_rotation
    wp.launch(
        _drift_kernel,
        dim=m.worlds,
        inputs=[m.topology, m.tendon_topology, m.site, links, work.velocity, tendon.bias],
        outputs=[tendon.drift],
        device=m.device,
    )


def add_tendon_inertia(m: Model, work: Motion, matrix: wp.array) -> None:
    """Adds m JᵀJ to a mass matrix. Not taped."""
    wp.launch(
        _matrix_kernel,
        dim=m.worlds,
        inputs=[m.topology, m.tendon_topology, m.tendon.armature, tendon_motion(m, work.tendon).moment],
        outputs=[matrix],
        device=m.device,
        record_tape=False,
    )


def add_tendon_residual(m: Model, work: Motion, qdd: wp.array, residual: wp.array, *, record: bool) -> None:
    """Adds m Jᵀ(J q̈ + J̇q̇) to the residual of the equation of motion."""
    drift = m.no_activation if work.tendon is None else work.tendon.drift
    moment = tendon_motion(m, work.tendon).moment
    wp.launch(
        _residual_kernel,
        dim=m.worlds,
        inputs=[m.topology, m.tendon_topology, m.tendon.armature, qdd, moment, drift],
        outputs=[residual],
        device=m.device,
        record_tape=record,
    )
