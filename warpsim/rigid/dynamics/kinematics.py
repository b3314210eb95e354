"""Forward kinematics: coordinates → frames of links, motion axes of dofs, centers and inertias of bodies, velocities.

All spatial quantities of a tree are taken about its reference point, the place of its first link. Everything built from
them (mass matrix, forces, point velocities) is independent of that choice, so the point carries no gradient; near the
robot it keeps the numbers small however far the robot has traveled.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec6
from warpsim.core.stages import stage
from warpsim.rigid.dynamics.kinematic_pass import kinematic_pass
from warpsim.rigid.dynamics.tendon_inertia import tendon_drift
from warpsim.rigid.dynamics.tendon_path import tendon_paths
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import BodyParameters, JointParameters
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.pass_arrays import MotionArrays, motion_arrays
from warpsim.rigid.work.state import Motion, State


@wp.kernel
def _kinematics_kernel(
    # topology, parameters
    t: Topology,
    body: BodyParameters,
    joint: JointParameters,
    # state
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    # work out
    motion: MotionArrays,
):
    kinematic_pass(t, body, joint, q, qd, motion, natural(wp.tid()))


@stage
def kinematics(m: Model, s: State, work: Motion) -> None:
    """Poses, motion axes, centers, inertias and velocities from `s.q` and `s.qd`; see `Work` for what is written."""
    wp.launch(
        _kinematics_kernel,
        dim=m.worlds,
        inputs=[m.topology, m.body, m.joint, s.q, s.qd],
        outputs=[motion_arrays(work)],
        device=m.device,
    )
    if work.tendon is not None:
        tendon_paths(m, work.origin, work.link_position, work.link_rotation, work.axis, work.tendon)
        if m.has_tendon_armature:
            tendon_drift(m, s, work, work.tendon)


@wp.kernel
def _twist_kernel(
    t: Topology, axis: wp.array2d(dtype=vec6), rate: wp.array2d(dtype=real), twist: wp.array2d(dtype=vec6)
):
    w = natural(wp.tid())
    twist[w, 0] = vec6()
    for d in range(t.nv):
        twist[w, d + 1] = twist[w, t.dof_prev[d]] + axis[w, d] * rate[w, d]


def twists_of_rates(m: Model, rates: wp.array, axis: wp.array, twist: wp.array) -> None:
    """Twists (W, nv + 1) of all dofs' frames if `rates` (W, nv) were the velocities of the dofs."""
    wp.launch(_twist_kernel, dim=m.worlds, inputs=[m.topology, axis, rates], outputs=[twist], device=m.device)
