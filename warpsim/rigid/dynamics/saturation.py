"""Cuts that no single actuator sees: a joint's range of summed force, and the range of an activation. Not taped.

`work.saturated` holds one number per actuator, per drive and, if any joint limits the force of its actuators, per dof:
−1 or 1 where a range cut and so left a zero derivative. Actuators and drives have written what their own ranges did
(`warpsim.rigid.dynamics.actuation`); here the dofs follow, and actuators of which nothing comes through.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec2
from warpsim.core.spatial import outside
from warpsim.core.stages import stage
from warpsim.rigid.dynamics.activation import grown_activation
from warpsim.rigid.model.actuators import JOINT, NO_DYNAMICS, SITE, TENDON, ActuatorTopology
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import ActuatorParameters
from warpsim.rigid.model.tendons import TendonTopology
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.state import State, Work


@wp.func
def _common_cut(
    t: Topology,
    a: ActuatorTopology,
    tt: TendonTopology,
    saturated: wp.array2d(dtype=wp.int32),
    w: int,
    i: int,
    first: int,
) -> int:
    """Side on which the ranges of all dofs that actuator i pushes cut, that of the last one; 0 if one of them does not.

    Joints of several dofs have no such range.
    """
    side = int(0)
    kind = a.transmission[i]
    if kind == JOINT:
        side = saturated[w, first + a.dof[i]]
    if kind == TENDON:
        side = int(1)
        for k in range(tt.start[a.target[i]], tt.start[a.target[i] + 1]):
            side = wp.where(side == 0, 0, saturated[w, first + tt.dof[k]])
    if kind == SITE:
        last = t.body_last_dof[a.site_body[a.target[i]]]
        if last > 0:
            side = int(1)
            for e in range(t.row_start[last - 1], t.row_start[last]):
                side = wp.where(side == 0, 0, saturated[w, first + t.row_column[e]])
    return side


@wp.kernel(enable_backward=False)
def _joint_cuts_kernel(
    # topology, parameters
    t: Topology,
    a: ActuatorTopology,
    tt: TendonTopology,
    limit: wp.array2d(dtype=vec2),
    first: int,
    # work in
    dof_actuation: wp.array2d(dtype=real),
    # work out
    saturated: wp.array2d(dtype=wp.int32),
):
    w = natural(wp.tid())
    for d in range(t.nv):
        saturated[w, first + d] = outside(dof_actuation[w, d], limit[w, d])
    for i in range(a.count):
        if saturated[w, i] == 0:
            saturated[w, i] = _common_cut(t, a, tt, saturated, w, i, first)


@wp.kernel(enable_backward=False)
def _activation_cuts_kernel(
    # topology, parameters
    a: ActuatorTopology,
    actuator: ActuatorParameters,
    timestep: wp.array(dtype=real),
    # state, work in
    activation: wp.array2d(dtype=real),
    rate: wp.array2d(dtype=real),
    # work out
    saturated: wp.array2d(dtype=wp.int32),
):
    w = natural(wp.tid())
    for i in range(a.count):
        kind = a.dynamics[i]
        if kind != NO_DYNAMICS and saturated[w, i] == 0:
            k = a.activation[i]
            grown = grown_activation(kind, activation[w, k], rate[w, k], actuator.time_constant[w, i], timestep[w])
            saturated[w, i] = outside(grown, actuator.activation_range[w, i])


@stage
def saturation(m: Model, s: State, work: Work) -> None:
    """Completes `work.saturated`, after actuation."""
    if m.has_force_limits and m.nu:
        wp.launch(
            _joint_cuts_kernel,
            dim=m.worlds,
            inputs=[m.topology, m.actuator_topology, m.tendon_topology, m.joint_force_range, m.nu + m.nd],
            outputs=[work.dof_actuation, work.saturated],
            device=m.device,
            record_tape=False,
        )
    if m.na:
        activation_cuts(m, s.activation, work.activation_rate, work.saturated)


def activation_cuts(m: Model, activation: wp.array, rate: wp.array, saturated: wp.array) -> None:
    """Marks the actuators whose activation a step at this rate would carry out of its range."""
    wp.launch(
        _activation_cuts_kernel,
        dim=m.worlds,
        inputs=[m.actuator_topology, m.actuator, m.world.timestep, activation, rate],
        outputs=[saturated],
        device=m.device,
        record_tape=False,
    )
