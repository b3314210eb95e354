"""Adhesive actuators: one pull of a body towards all it touches (MuJoCo's transmission "body").

A contact counts where either of its shapes belongs to the body and its distance is below margin + gap; between the two
it holds but does not push. The force gain₀·input + bias₀ acts along the normals, in equal shares, on both sides of each
contact. Gears play no part. As the pull depends on which contacts there are and where, so do its derivatives: contacts
are searched for untaped, their places are taped.
"""

from __future__ import annotations

import warp as wp

from warpsim.collision.contacts import ShapePoses, find_contacts, rebuild_contacts
from warpsim.core.indexing import natural
from warpsim.core.precision import mat33, real, vec3, vec6
from warpsim.core.spatial import clamp_range, outside, spatial
from warpsim.core.stages import stage
from warpsim.rigid.dynamics.actuator_kernels import input_functions
from warpsim.rigid.dynamics.shape_poses import place_shapes
from warpsim.rigid.model.actuators import BODY, NO_DYNAMICS, ActuatorTopology
from warpsim.rigid.model.contact_mixing import PairTopology
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import ActuatorParameters
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.constraint_work import ConstraintScratch
from warpsim.rigid.work.state import Control, State, Work

_input_of = input_functions(with_muscles=False).input_of
_rate_of = input_functions(with_muscles=False).rate_of


@wp.kernel(enable_backward=False)
def _reach_kernel(gap: wp.array(dtype=real), margin: wp.array2d(dtype=real), reach: wp.array2d(dtype=real)):
    w, i = wp.tid()
    reach[w, i] = margin[w, i] + gap[i]


@wp.func
def _body_of(
    pair: PairTopology,
    shape_body: wp.array(dtype=wp.int32),
    contact_pair: wp.array2d(dtype=wp.int32),
    w: int,
    k: int,
    side: int,
) -> int:
    return shape_body[pair.shapes[contact_pair[w, k], side]]


@wp.kernel(enable_backward=False)
def _touching_kernel(
    # topology
    a: ActuatorTopology,
    pair: PairTopology,
    shape_body: wp.array(dtype=wp.int32),
    # work in
    count: wp.array(dtype=wp.int32),
    contact_pair: wp.array2d(dtype=wp.int32),
    # work out
    touching: wp.array2d(dtype=wp.int32),
):
    """Contacts of each actuator's body, or −1 where there are more contacts than places."""
    w = natural(wp.tid())
    places = contact_pair.shape[1]
    for i in range(a.count):
        n = int(0)
        if a.transmission[i] == BODY:
            for k in range(wp.min(count[w], places)):
                for side in range(2):
                    if _body_of(pair, shape_body, contact_pair, w, k, side) == a.target[i]:
                        n += 1
        touching[w, i] = wp.where(places > 0 and count[w] > places, -1, n)


@wp.func
def _push(
    t: Topology,
    axis: wp.array2d(dtype=vec6),
    w: int,
    body: int,
    arm: vec3,
    push: vec3,
    dof_actuation: wp.array2d(dtype=real),
):
    """Adds a force at `arm` from the reference point of a body's tree to the dofs that move the body."""
    last = t.body_last_dof[body]
    if last > 0:
        for e in range(t.row_start[last - 1], t.row_start[last]):
            d = t.row_column[e]
            dof_actuation[w, d] += wp.dot(axis[w, d], spatial(wp.cross(arm, push), push))


@wp.kernel
def _adhesion_kernel(
    # topology, parameters
    t: Topology,
    a: ActuatorTopology,
    pair: PairTopology,
    shape_body: wp.array(dtype=wp.int32),
    actuator: ActuatorParameters,
    timestep: wp.array(dtype=real),
    # state, control
    activation: wp.array2d(dtype=real),
    control: wp.array2d(dtype=real),
    # work in
    touching: wp.array2d(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    contact_pair: wp.array2d(dtype=wp.int32),
    point: wp.array2d(dtype=vec3),
    frame: wp.array2d(dtype=mat33),
    origin: wp.array2d(dtype=vec3),
    axis: wp.array2d(dtype=vec6),
    # work out
    dof_actuation: wp.array2d(dtype=real),
    force: wp.array2d(dtype=real),
    activation_rate: wp.array2d(dtype=real),
    saturated: wp.array2d(dtype=wp.int32),
):
    w = natural(wp.tid())
    for i in range(a.count):
        if a.transmission[i] == BODY:
            u = _input_of(a, actuator, timestep, activation, control, real(0.0), w, i)
            raw = actuator.gain[w, i][0] * u + actuator.bias[w, i][0]
            limits = actuator.force_range[w, i]
            force[w, i] = clamp_range(raw, limits[0], limits[1])
            saturated[w, i] = wp.where(
                outside(raw, limits) != 0,
                outside(raw, limits),
                outside(control[w, i], actuator.control_range[w, i]),
            )
            if a.dynamics[i] != NO_DYNAMICS:
                activation_rate[w, a.activation[i]] = _rate_of(a, actuator, activation, control, real(0.0), w, i)
            if touching[w, i] < 0:
                for d in range(t.nv):
                    dof_actuation[w, d] += real(wp.static(float("nan")))
            if touching[w, i] > 0:
                share = clamp_range(raw, limits[0], limits[1]) / real(touching[w, i])
                for k in range(wp.min(count[w], contact_pair.shape[1])):
                    first = _body_of(pair, shape_body, contact_pair, w, k, 0)
                    second = _body_of(pair, shape_body, contact_pair, w, k, 1)
                    if first == a.target[i] or second == a.target[i]:
                        x = frame[w, k]
                        pull = vec3(x[0, 0], x[0, 1], x[0, 2]) * share
                        _push(t, axis, w, first, point[w, k] - origin[w, t.body_tree[first]], pull, dof_actuation)
                        _push(t, axis, w, second, point[w, k] - origin[w, t.body_tree[second]], -pull, dof_actuation)


@stage
def find_glue(m: Model, work: Work, scratch: ConstraintScratch | None) -> None:
    """Contacts of the current poses out to margin + gap: which, untaped; where, taped."""
    glue = work.glue
    assert glue is not None
    if m.max_contacts and scratch is not None:
        place_shapes(m, work, glue.position, glue.rotation)
        wp.launch(
            _reach_kernel,
            dim=m.pair.margin.shape,
            inputs=[m.contact_mixing.gap, m.pair.margin],
            outputs=[scratch.reach],
            device=m.device,
            record_tape=False,
        )
        poses = ShapePoses(glue.position, glue.rotation, m.shape.size)
        find_contacts(m.pair_table, poses, scratch.reach, scratch.search, glue.contacts)
        rebuild_contacts(m.pair_table, poses, glue.contacts)
    wp.launch(
        _touching_kernel,
        dim=m.worlds,
        inputs=[
            m.actuator_topology,
            m.contact_mixing.topology,
            m.shape_body,
            glue.contacts.count,
            glue.contacts.pair,
        ],
        outputs=[glue.touching],
        device=m.device,
        record_tape=False,
    )


def adhesion(m: Model, s: State, u: Control, work: Work, dof_actuation: wp.array) -> None:
    """Adds the pull of adhesive actuators, at the contacts of `find_glue`, to the forces on dofs."""
    glue = work.glue
    assert glue is not None
    wp.launch(
        _adhesion_kernel,
        dim=m.worlds,
        inputs=[
            m.topology,
            m.actuator_topology,
            m.contact_mixing.topology,
            m.shape_body,
            m.actuator,
            m.world.timestep,
            s.activation if m.na else m.no_activation,
            u.actuator,
            glue.touching,
            glue.contacts.count,
            glue.contacts.pair,
            glue.contacts.point,
            glue.contacts.frame,
            work.origin,
            work.axis,
        ],
        outputs=[dof_actuation, work.actuator_force, work.activation_rate, work.saturated],
        device=m.device,
    )
