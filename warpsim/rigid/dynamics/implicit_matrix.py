"""The matrix M − hD of the "implicitfast" integrator; see `implicit` for D. Not taped."""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.core.spatial import quat_mul, quat_rotate, spatial
from warpsim.core.stages import stage
from warpsim.rigid.dynamics.implicit import body_drag_slopes
from warpsim.rigid.dynamics.mass_matrix import free_prescribed
from warpsim.rigid.dynamics.transmission import dof_count, site_wrench
from warpsim.rigid.model.actuators import BALL_JOINT, FREE_JOINT, SITE, ActuatorTopology
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import FluidParameters, SiteParameters, WorldParameters
from warpsim.rigid.model.tendons import TendonTopology
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.state import Work
from warpsim.rigid.work.tendon_work import tendon_motion


@wp.kernel(enable_backward=False)
def _joint_matrix_kernel(
    t: Topology,
    a: ActuatorTopology,
    gear: wp.array2d(dtype=vec6),
    timestep: wp.array(dtype=real),
    slope: wp.array2d(dtype=real),
    matrix: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for i in range(a.count):
        if a.transmission[i] == BALL_JOINT or a.transmission[i] == FREE_JOINT:
            for e in range(dof_count(a.transmission[i])):
                for f in range(e + 1):
                    entry = t.row_start[a.dof[i] + e] + e - f
                    c = timestep[w] * slope[w, i] * gear[w, i][e] * gear[w, i][f]
                    matrix[w, entry] = matrix[w, entry] - c


@wp.func
def _add_rank_one(
    t: Topology,
    w: int,
    last: int,
    unit: vec6,
    scale: real,
    axis: wp.array2d(dtype=vec6),
    matrix: wp.array2d(dtype=real),
):
    """matrix += scale · j jᵀ with j = Sᵀ unit over the chain that ends in dof `last` − 1."""
    for e in range(t.row_start[last - 1], t.row_start[last]):
        d = t.row_column[e]
        left = scale * wp.dot(axis[w, d], unit)
        for f in range(t.row_start[d], t.row_start[d + 1]):
            matrix[w, f] = matrix[w, f] + left * wp.dot(axis[w, t.row_column[f]], unit)


@wp.kernel(enable_backward=False)
def _tendon_matrix_kernel(
    tt: TendonTopology,
    moment: wp.array2d(dtype=real),
    timestep: wp.array(dtype=real),
    tendon_slope: wp.array2d(dtype=real),
    matrix: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for k in range(tt.pair_count):
        entry = tt.pair_entry[k]
        if entry >= 0:
            c = timestep[w] * tendon_slope[w, tt.pair_tendon[k]]
            matrix[w, entry] = matrix[w, entry] - c * moment[w, tt.pair_a[k]] * moment[w, tt.pair_b[k]]


@wp.kernel(enable_backward=False)
def _site_matrix_kernel(
    t: Topology,
    a: ActuatorTopology,
    gear: wp.array2d(dtype=vec6),
    site: SiteParameters,
    timestep: wp.array(dtype=real),
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    axis: wp.array2d(dtype=vec6),
    slope: wp.array2d(dtype=real),
    matrix: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for i in range(a.count):
        if a.transmission[i] == SITE:
            k = t.body_last_dof[a.site_body[a.target[i]]]
            if k > 0:
                unit = site_wrench(t, a, site, link_position, link_rotation, origin, w, a.target[i], gear[w, i])
                _add_rank_one(t, w, k, unit, -timestep[w] * slope[w, i], axis, matrix)


@wp.func
def _unit_wrench(r: quat, com: vec3, direction: vec3, turning: int) -> vec6:
    d = quat_rotate(r, direction)
    if turning == 1:
        return spatial(d, vec3(real(0.0), real(0.0), real(0.0)))
    return spatial(wp.cross(com, d), d)


@wp.kernel(enable_backward=False)
def _drag_matrix_kernel(
    t: Topology,
    fluid: FluidParameters,
    world: WorldParameters,
    link_rotation: wp.array2d(dtype=quat),
    com: wp.array2d(dtype=vec3),
    axis: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    matrix: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for b in range(1, t.nbody):
        k = t.body_last_dof[b]
        if k > 0:
            r = quat_mul(link_rotation[w, t.body_link[b]], fluid.rotation[w, b])
            slopes = body_drag_slopes(world, fluid, r, com[w, b], velocity[w, k], w, b) * (-world.timestep[w])
            for e in range(3):
                direction = vec3(real(0.0), real(0.0), real(0.0))
                direction[e] = real(1.0)
                _add_rank_one(t, w, k, _unit_wrench(r, com[w, b], direction, 1), slopes[e], axis, matrix)
                _add_rank_one(t, w, k, _unit_wrench(r, com[w, b], direction, 0), slopes[3 + e], axis, matrix)


@wp.kernel(enable_backward=False)
def _prescribed_matrix_kernel(t: Topology, matrix: wp.array2d(dtype=real)):
    free_prescribed(t, natural(wp.tid()), matrix)


@stage
def implicit_matrix(m: Model, work: Work, matrix: wp.array) -> None:
    """`matrix` = `work.mass_matrix` − hD. Not taped."""
    wp.copy(matrix, work.mass_matrix)

    def launch(kernel: wp.Kernel, *inputs) -> None:
        wp.launch(kernel, dim=m.worlds, inputs=inputs, outputs=[matrix], device=m.device, record_tape=False)

    h = m.world.timestep
    poses = (work.origin, work.link_position, work.link_rotation, work.axis)
    if m.layout.tendon_names:
        launch(_tendon_matrix_kernel, m.tendon_topology, tendon_motion(m, work.tendon).moment, h, work.tendon_slope)
    if m.has_joint_actuators:
        launch(_joint_matrix_kernel, m.topology, m.actuator_topology, m.actuator.gear, h, work.actuator_slope)
    if m.has_site_actuators:
        launch(
            _site_matrix_kernel,
            m.topology,
            m.actuator_topology,
            m.actuator.gear,
            m.site,
            h,
            *poses,
            work.actuator_slope,
        )
    if m.has_medium:
        launch(
            _drag_matrix_kernel,
            m.topology,
            m.fluid,
            m.world,
            work.link_rotation,
            work.com,
            work.axis,
            work.velocity,
        )
    if m.topology.prescribed_count:
        launch(_prescribed_matrix_kernel, m.topology)
