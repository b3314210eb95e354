"""Contact forces as outputs that a loss may read, and what their adjoint feeds back into the solver.

A loss on the forces f = −∇s(J a* − aref) with adjoint f̄ reaches them twice: directly, through the taped force
kernel, and through a*, whose adjoint grows by −JᵀW f̄ before the implicit solve.
"""

from __future__ import annotations

import warp as wp

from warpsim.constraint.cone import elliptic_change
from warpsim.constraint.contact_rows import (
    ContactSettings,
    contact_gap,
    pyramid_change,
    pyramid_weight,
    relative_rates,
)
from warpsim.constraint.impedance import stiffness_weight
from warpsim.constraint.softening import soft_impedance
from warpsim.constraint.work import ConstraintScratch, ConstraintWork
from warpsim.model.model import Model
from warpsim.model.parameters import PairParameters
from warpsim.model.state import Work
from warpsim.model.topology import Topology
from warpsim.precision import mat33, real, vec2, vec3, vec6
from warpsim.spatial import spatial


@wp.kernel
def _shape_force_kernel(
    c: ContactSettings,
    shapes: int,
    count: wp.array(dtype=wp.int32),
    contact_pair: wp.array2d(dtype=wp.int32),
    frame: wp.array2d(dtype=mat33),
    force: wp.array2d(dtype=vec6),
    shape_force: wp.array2d(dtype=vec3),
):
    w = wp.tid()
    for i in range(shapes):
        shape_force[w, i] = vec3(real(0.0), real(0.0), real(0.0))
    for k in range(wp.min(count[w], contact_pair.shape[1])):
        i = contact_pair[w, k]
        f = force[w, k]
        push = wp.transpose(frame[w, k]) * vec3(f[0], f[1], f[2])
        shape_force[w, c.pair_shapes[i, 1]] += push
        shape_force[w, c.pair_shapes[i, 0]] += -push


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
    w = wp.tid()
    for k in range(wp.min(count[w], contact_pair.shape[1])):
        i = contact_pair[w, k]
        a = c.shape_body[c.pair_shapes[i, 0]]
        b = c.shape_body[c.pair_shapes[i, 1]]
        violation = distance[w, k] - pair.margin[w, i] - c.softening
        if violation < real(0.0):
            arm_a = point[w, k] - origin[w, t.body_tree[a]]
            arm_b = point[w, k] - origin[w, t.body_tree[b]]
            ka = t.body_last_dof[a]
            kb = t.body_last_dof[b]
            dim = c.pair_dim[i]
            f = frame[w, k]
            rates = relative_rates(f, velocity[w, ka], velocity[w, kb], arm_a, arm_b, dim)
            changes = relative_rates(f, acceleration[w, ka], acceleration[w, kb], arm_a, arm_b, dim)
            d = soft_impedance(pair.solimp[w, i], violation, c.softening)
            friction = pair.friction[w, i]
            mu = friction[0] / c.root_impratio
            translation = body_weight[w, a][0] + body_weight[w, b][0]
            pyramid = wp.where(dim > 1, c.pyramidal, 0)
            y = contact_gap(pair, w, i, pyramid, c.safe, d, violation, rates, changes, timestep[w])
            z = force_adjoint[w, k]
            change = elliptic_change(y, z, stiffness_weight(d, translation), mu, friction, dim)
            if pyramid == 1:
                change = pyramid_change(y, z, pyramid_weight(d, translation, friction, mu), friction, dim)
            push = wp.transpose(f) * vec3(change[0], change[1], change[2])
            turn = wp.transpose(f) * vec3(change[3], change[4], change[5])
            _project(t, axis, w, kb, spatial(turn + wp.cross(arm_b, push), push), qdd_adjoint)
            _project(t, axis, w, ka, -spatial(turn + wp.cross(arm_a, push), push), qdd_adjoint)


def contact_forces(
    m: Model, c: ConstraintWork, scratch: ConstraintScratch, shape_force: wp.array, *, softened: bool = False
) -> None:
    """`shape_force` (W, nshape) vec3, N, world axes: sum of the contact forces on each shape. Taped.

    `softened` as it was when `constraint_forces` found the forces.
    """
    x = c.soft_contacts if softened else c.contacts
    wp.launch(
        _shape_force_kernel,
        dim=m.worlds,
        inputs=[
            scratch.contact_settings,
            shape_force.shape[1],
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
