"""Contact forces as outputs that a loss may read, and what their adjoint feeds back into the solver.

A loss on the forces f = −∇s(J a* − aref) with adjoint f̄ reaches them twice: directly, through the taped force
kernel, and through a*, whose adjoint grows by −JᵀW f̄ before the implicit solve.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import mat33, real, vec2, vec3, vec6
from warpsim.rigid.constraint.contact_law import contact_force_change, contact_row, relative_rates, wrench_of
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import PairParameters
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.constraint_work import ConstraintScratch, ConstraintWork
from warpsim.rigid.work.row_settings import ContactSettings
from warpsim.rigid.work.state import Work


@wp.kernel
def _shape_force_kernel(
    c: ContactSettings,
    shape_whole: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    contact_pair: wp.array2d(dtype=wp.int32),
    frame: wp.array2d(dtype=mat33),
    force: wp.array2d(dtype=vec6),
    shape_force: wp.array2d(dtype=vec3),
):
    w = natural(wp.tid())
    for i in range(shape_whole.shape[0]):
        shape_force[w, i] = vec3(real(0.0), real(0.0), real(0.0))
    for k in range(wp.min(count[w], contact_pair.shape[1])):
        i = contact_pair[w, k]
        f = force[w, k]
        push = wp.transpose(frame[w, k]) * vec3(f[0], f[1], f[2])
        shape_force[w, shape_whole[c.pair_shapes[i, 1]]] += push
        shape_force[w, shape_whole[c.pair_shapes[i, 0]]] += -push


@wp.func
def _project(t: Topology, axis: wp.array2d(dtype=vec6), w: int, last: int, wrench: vec6, out: wp.array2d(dtype=real)):
    """out += Sᵀ wrench over the dofs that move a body."""
    d = last - 1
    while d >= 0:
        out[w, d] = out[w, d] + wp.dot(axis[w, d], wrench)
        d = t.dof_prev[d] - 1


@wp.kernel(enable_backward=False)
def _force_feedback_kernel(
    # topology, parameters
    t: Topology,
    c: ContactSettings,
    pair: PairParameters,
    body_weight: wp.array2d(dtype=vec2),
    timestep: wp.array(dtype=real),
    # contacts
    role: wp.array2d(dtype=wp.int32),
    lift: wp.array2d(dtype=real),
    count: wp.array(dtype=wp.int32),
    contact_pair: wp.array2d(dtype=wp.int32),
    distance: wp.array2d(dtype=real),
    point: wp.array2d(dtype=vec3),
    frame: wp.array2d(dtype=mat33),
    # work in
    origin: wp.array2d(dtype=vec3),
    axis: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    acceleration: wp.array2d(dtype=vec6),
    force_adjoint: wp.array2d(dtype=vec6),
    # out
    qdd_adjoint: wp.array2d(dtype=real),
):
    """qdd_adjoint += −JᵀW f̄."""
    w = natural(wp.tid())
    for k in range(wp.min(count[w], contact_pair.shape[1])):
        i = contact_pair[w, k]
        x = frame[w, k]
        row = contact_row(
            t, c, pair, body_weight, timestep[w], role, lift, w, k, i, distance[w, k], point[w, k], x, origin, velocity
        )
        if row.acts == 1:
            twist_a = acceleration[w, row.last_a]
            twist_b = acceleration[w, row.last_b]
            y = relative_rates(x, twist_a, twist_b, row.arm_a, row.arm_b, row.dim) - row.reference
            change = contact_force_change(row, y, force_adjoint[w, k])
            _project(t, axis, w, row.last_b, wrench_of(x, change, row.arm_b), qdd_adjoint)
            _project(t, axis, w, row.last_a, -wrench_of(x, change, row.arm_a), qdd_adjoint)


def contact_forces(
    m: Model, c: ConstraintWork, scratch: ConstraintScratch, shape_force: wp.array, *, softened: bool = False
) -> None:
    """`shape_force` (W, nshape) vec3, N, world axes: sum of the contact forces on each shape. Taped.

    Forces on convex pieces count for the shape they are pieces of.
    `softened` as it was when `constraint_forces` found the forces.
    """
    x = c.soft_contacts if softened else c.contacts
    wp.launch(
        _shape_force_kernel,
        dim=m.worlds,
        inputs=[
            scratch.contact_settings,
            m.shape_whole,
            x.count,
            x.pair,
            x.frame,
            c.contact_force,
        ],
        outputs=[shape_force],
        device=m.device,
    )


def force_feedback(m: Model, work: Work, c: ConstraintWork, scratch: ConstraintScratch, qdd_adjoint: wp.array) -> None:
    """Adds to the adjoint of a* what a loss on contact forces sends through it. Part of an adjoint: not taped."""
    x = c.soft_contacts
    wp.launch(
        _force_feedback_kernel,
        dim=m.worlds,
        inputs=[
            m.topology,
            scratch.soft_settings,
            m.pair,
            m.weight.body,
            m.world.timestep,
            c.role,
            c.lift,
            x.count,
            x.pair,
            x.distance,
            x.point,
            x.frame,
            work.origin,
            work.axis,
            work.velocity,
            c.twist,
            c.contact_force.grad,
        ],
        outputs=[qdd_adjoint],
        device=m.device,
        record_tape=False,
    )
