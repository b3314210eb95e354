"""Drives of joints: forces towards a target, stable for any stiffness."""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec2
from warpsim.core.spatial import clamp_range, outside
from warpsim.rigid.model.actuators import DriveTopology
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import DriveParameters
from warpsim.rigid.work.state import Control, State, Work


@wp.kernel
def _drive_kernel(
    # topology, parameters
    d: DriveTopology,
    drive: DriveParameters,
    timestep: wp.array(dtype=real),
    implicit: int,
    first: int,
    # state, control
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    target: wp.array2d(dtype=real),
    target_velocity: wp.array2d(dtype=real),
    # work out
    dof_force: wp.array2d(dtype=real),
    dof_implicit: wp.array2d(dtype=real),
    saturated: wp.array2d(dtype=wp.int32),
):
    """Drive force at the end of the step: k(target − q − h·qd⁺) + d(target velocity − qd⁺), qd⁺ = qd + h·qdd.

    The part that multiplies qdd goes to the matrix's diagonal, which keeps drives of any stiffness stable.
    """
    w = natural(wp.tid())
    h = timestep[w] * real(implicit)
    for i in range(d.count):
        if d.loop[i] == -1:
            dof = d.dof[i]
            k = drive.stiffness[w, i]
            c = drive.damping[w, i]
            v = qd[w, dof]
            limit = drive.max_force[w, i]
            raw = k * (target[w, i] - q[w, d.q[i]] - h * v) + c * (target_velocity[w, i] - v)
            dof_force[w, dof] += clamp_range(raw, -limit, limit)
            cut = outside(raw, vec2(-limit, limit))
            saturated[w, first + i] = cut
            if cut == 0:
                dof_implicit[w, dof] += h * (c + h * k)


def joint_drives(m: Model, s: State, u: Control, work: Work) -> None:
    """Adds the drives' forces to `work.dof_force` and their implicit part to `work.dof_implicit`."""
    wp.launch(
        _drive_kernel,
        dim=m.worlds,
        inputs=[
            m.drive_topology,
            m.drive,
            m.world.timestep,
            int(m.implicit_drives),
            m.nu,
            s.q,
            s.qd,
            u.drive_target,
            u.drive_velocity,
        ],
        outputs=[work.dof_force, work.dof_implicit, work.saturated],
        device=m.device,
    )
