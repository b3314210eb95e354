"""Arrays of `Work` as the passes through a tree take them, forward and in their custom adjoints: named once, here.

The adjoint of such a struct is one of the same type; arrays that carry no gradient are none in it.
"""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.rigid.work.state import Motion, Work


@wp.struct
class MotionArrays:
    """What the kinematics of a state writes, see `Work`."""

    origin: wp.array2d(dtype=vec3)
    link_position: wp.array2d(dtype=vec3)
    link_rotation: wp.array2d(dtype=quat)
    axis: wp.array2d(dtype=vec6)
    com: wp.array2d(dtype=vec3)
    inertia: wp.array2d(dtype=vec6)
    velocity: wp.array2d(dtype=vec6)


@wp.struct
class ForceArrays:
    """What acts on bodies and dofs, see `Work`."""

    wrench: wp.array2d(dtype=vec6)
    dof_force: wp.array2d(dtype=real)
    dof_implicit: wp.array2d(dtype=real)
    dof_integrator: wp.array2d(dtype=real)


@wp.struct
class ResidualArrays:
    """The residual of the equation of motion and what it is made of, see `Work`."""

    acceleration: wp.array2d(dtype=vec6)
    body_force: wp.array2d(dtype=vec6)
    residual: wp.array2d(dtype=real)


def motion_arrays(work: Motion) -> MotionArrays:
    """Those of `work`."""
    made = MotionArrays()
    made.origin, made.link_position, made.link_rotation = work.origin, work.link_position, work.link_rotation
    made.axis, made.com, made.inertia, made.velocity = work.axis, work.com, work.inertia, work.velocity
    return made


def force_arrays(work: Work, integrator: wp.array) -> ForceArrays:
    """Those of `work`, with (W, nv) the integrator's part of the diagonal."""
    made = ForceArrays()
    made.wrench, made.dof_force = work.wrench, work.dof_force
    made.dof_implicit, made.dof_integrator = work.dof_implicit, integrator
    return made


def residual_arrays(acceleration: wp.array, body_force: wp.array, residual: wp.array) -> ResidualArrays:
    """These three."""
    made = ResidualArrays()
    made.acceleration, made.body_force, made.residual = acceleration, body_force, residual
    return made
