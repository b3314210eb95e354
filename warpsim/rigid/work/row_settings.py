"""What is fixed about constraint rows when a program is made: which joints, tendons and pairs have them."""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real


@wp.struct
class ContactSettings:
    """What is fixed about contacts."""

    pair_shapes: wp.array2d(dtype=wp.int32)  # (np, 2)
    pair_dim: wp.array(dtype=wp.int32)  # (np,) 1, 3, 4 or 6
    shape_body: wp.array(dtype=wp.int32)  # (ns,)
    pyramidal: wp.int32
    safe: wp.int32  # keep time constants at two steps or more
    root_impratio: real  # √impratio
    softening: real  # m, how far outside their margins contacts begin to act
    roles: wp.int32  # 1: contacts have roles (COMPLIANT … HELD), see `warpsim.rigid.constraint.impact`
    impact_speed: real  # m/s: contacts that close faster are impacts


@wp.struct
class EqualitySettings:
    """Which equalities are between bodies, which couple coordinates, and what is fixed about them."""

    body_count: wp.int32
    body_equality: wp.array(dtype=wp.int32)  # (body_count,) connect, weld, distance
    axes_count: wp.int32
    axes_equality: wp.array(dtype=wp.int32)  # (axes_count,) axes
    coupling_count: wp.int32
    coupling: wp.array(dtype=wp.int32)  # (coupling_count,) joint, tendon
    joint_q: wp.array(dtype=wp.int32)  # (njoint,) first coordinate
    joint_dof: wp.array(dtype=wp.int32)  # (njoint,) first dof
    safe: wp.int32  # keep time constants at two steps or more


@wp.struct
class JointRowSettings:
    """Which joints have limits and which dofs dry friction."""

    limit_count: wp.int32
    limit_joint: wp.array(dtype=wp.int32)
    limit_q: wp.array(dtype=wp.int32)  # first coordinate
    limit_dof: wp.array(dtype=wp.int32)  # first dof
    limit_ball: wp.array(dtype=wp.int32)  # 1 for ball joints
    friction_count: wp.int32
    friction_dof: wp.array(dtype=wp.int32)
    safe: wp.int32


@wp.struct
class LoopRowSettings:
    """Which drives have an implicit part, by the coordinate they act on."""

    count: wp.int32  # coordinates with a limit or a drive
    drive_start: wp.array(dtype=wp.int32)  # (count + 1,)
    drive: wp.array(dtype=wp.int32)
    drive_cut: wp.array(dtype=wp.int32)  # place in `work.saturated`
    safe: wp.int32


@wp.struct
class TendonRowSettings:
    """Which tendons have limits and which dry friction."""

    limit_count: wp.int32
    limit_tendon: wp.array(dtype=wp.int32)
    friction_count: wp.int32
    friction_tendon: wp.array(dtype=wp.int32)
    safe: wp.int32
