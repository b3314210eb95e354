"""By how much equalities and joint limits are violated: a report of the step, without gradient."""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import quat, real, vec2, vec3
from warpsim.core.spatial import quat_mul, quat_rotate, quat_rotate_back
from warpsim.rigid.constraint.coupling_rows import _coordinate, _polynomial
from warpsim.rigid.constraint.held_frames import turn_left
from warpsim.rigid.dynamics.loop_coordinates import loop_value
from warpsim.rigid.model.equalities import CONNECT, DISTANCE, WELD, EqualityTopology
from warpsim.rigid.model.loops import LoopTopology
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import EqualityParameters, LimitParameters
from warpsim.rigid.model.tendons import TendonMotion, TendonTopology
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.work.constraint_work import ConstraintScratch
from warpsim.rigid.work.row_settings import EqualitySettings, JointRowSettings
from warpsim.rigid.work.state import State, Work
from warpsim.rigid.work.tendon_work import tendon_motion


@wp.func
def _picked(v: vec3, locked: int, first: int) -> vec3:
    """The components whose axes are locked."""
    return vec3(
        v[0] * real((locked >> first) & 1),
        v[1] * real((locked >> (first + 1)) & 1),
        v[2] * real((locked >> (first + 2)) & 1),
    )


@wp.kernel(enable_backward=False)
def _held_error_kernel(
    # topology, parameters
    t: Topology,
    x: EqualityTopology,
    count: int,
    equality: wp.array(dtype=wp.int32),
    e: EqualityParameters,
    # work in
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    # out
    error: wp.array(dtype=real),
):
    """Equalities between bodies; of a universal joint's angle nothing is said."""
    w = natural(wp.tid())
    worst = error[w]
    for n in range(count):
        i = equality[n]
        ra = link_rotation[w, t.body_link[x.a[i]]]
        rb = link_rotation[w, t.body_link[x.b[i]]]
        gap = link_position[w, t.body_link[x.a[i]]] + quat_rotate(ra, e.anchor_a[w, i])
        gap -= link_position[w, t.body_link[x.b[i]]] + quat_rotate(rb, e.anchor_b[w, i])
        if x.kind[i] == DISTANCE:
            distance = wp.length(gap)
            worst = wp.max(worst, wp.max(e.range[w, i][0] - distance, distance - e.range[w, i][1]))
        elif x.kind[i] == CONNECT:
            worst = wp.max(worst, wp.length(gap))
        else:
            target = quat_mul(ra, e.relative_rotation[w, i])
            turn = real(2.0) * turn_left(rb, target, real(1.0))
            if x.kind[i] != WELD:
                locked = x.locked[i]
                gap = _picked(quat_rotate_back(quat_mul(target, e.axes[w, i]), gap), locked, 0)
                turn = _picked(quat_rotate_back(e.axes[w, i], turn), locked, 3)
                if ((locked >> 3) & 1) + ((locked >> 4) & 1) + ((locked >> 5) & 1) == 1:
                    turn = vec3()
            worst = wp.max(worst, wp.max(wp.length(gap), wp.length(turn)))
    error[w] = worst


@wp.kernel(enable_backward=False)
def _coordinate_error_kernel(
    # topology, parameters
    c: EqualitySettings,
    x: EqualityTopology,
    tendon: TendonTopology,
    e: EqualityParameters,
    motion: TendonMotion,
    tendon_reference: wp.array2d(dtype=real),
    reference: wp.array2d(dtype=real),
    joint: JointRowSettings,
    limit: LimitParameters,
    # state
    q: wp.array2d(dtype=real),
    # out
    error: wp.array(dtype=real),
):
    """Couplings of joints and tendons, and limits of hinges and slides."""
    w = natural(wp.tid())
    worst = real(0.0)
    for n in range(c.coupling_count):
        i = c.coupling[n]
        kind = x.kind[i]
        own = _coordinate(c, tendon, motion, tendon_reference, reference, q, w, kind, x.a[i])
        other = _coordinate(c, tendon, motion, tendon_reference, reference, q, w, kind, x.b[i])
        worst = wp.max(worst, wp.abs(own - _polynomial(e.polynomial[w, i], other)))
    for n in range(joint.limit_count):
        if joint.limit_ball[n] == 0:
            bounds = limit.range[w, joint.limit_joint[n]]
            place = q[w, joint.limit_q[n]]
            worst = wp.max(worst, wp.max(bounds[0] - place, place - bounds[1]))
    error[w] = worst


@wp.kernel(enable_backward=False)
def _loop_error_kernel(
    # topology, parameters
    t: Topology,
    x: EqualityTopology,
    c: LoopTopology,
    e: EqualityParameters,
    bounds: wp.array2d(dtype=vec2),
    # work in
    link_position: wp.array2d(dtype=vec3),
    link_rotation: wp.array2d(dtype=quat),
    # out
    error: wp.array(dtype=real),
):
    """Limits of joints that close loops."""
    w = natural(wp.tid())
    worst = error[w]
    for n in range(c.count):
        i = c.equality[n]
        ra = link_rotation[w, t.body_link[x.a[i]]]
        rb = link_rotation[w, t.body_link[x.b[i]]]
        gap = link_position[w, t.body_link[x.b[i]]] + quat_rotate(rb, e.anchor_b[w, i])
        gap -= link_position[w, t.body_link[x.a[i]]] + quat_rotate(ra, e.anchor_a[w, i])
        frame_a = quat_mul(quat_mul(ra, e.relative_rotation[w, i]), e.axes[w, i])
        value = loop_value(c.kind[n], c.i[n], c.j[n], frame_a, quat_mul(rb, e.axes[w, i]), gap)
        worst = wp.max(worst, wp.max(bounds[w, n][0] - value, value - bounds[w, n][1]))
    error[w] = worst


def constraint_error(m: Model, s: State, work: Work, scratch: ConstraintScratch | None, error: wp.array) -> None:
    """Largest violation of an equality or of a limit, those of balls excepted, at the step's start, m or rad, (W,)."""
    if scratch is None:
        error.zero_()
        return
    settings = scratch.equality_settings

    def launch(kernel: wp.Kernel, *inputs) -> None:
        wp.launch(kernel, dim=m.worlds, inputs=list(inputs), outputs=[error], device=m.device, record_tape=False)

    launch(
        _coordinate_error_kernel,
        settings,
        m.equality_topology,
        m.tendon_topology,
        m.equality,
        tendon_motion(m, work.tendon),
        m.weight.tendon_length,
        m.joint.reference,
        scratch.joint_settings,
        m.limit,
        s.q,
    )
    for count, which in (
        (settings.body_count, settings.body_equality),
        (settings.axes_count, settings.axes_equality),
    ):
        if count:
            poses = (work.link_position, work.link_rotation)
            launch(_held_error_kernel, m.topology, m.equality_topology, count, which, m.equality, *poses)
    if m.loop_topology.count:
        poses = (work.link_position, work.link_rotation)
        topology = (m.topology, m.equality_topology, m.loop_topology)
        launch(_loop_error_kernel, *topology, m.equality, m.loop.range, *poses)
