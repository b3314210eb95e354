"""Kinetic energy, and the potential energy of gravity and springs."""

from __future__ import annotations

import warp as wp

from warpsim.core.precision import real, vec3, vec6
from warpsim.core.spatial import angular, linear, sym_mul
from warpsim.rigid.dynamics.passive_pass import rotation_from_rest
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import BodyParameters, JointParameters, TendonParameters
from warpsim.rigid.model.tendons import TendonMotion, TendonTopology, tendon_length
from warpsim.rigid.model.topology import BALL, FREE, HINGE, SLIDE, Topology
from warpsim.rigid.query.motion import evaluate
from warpsim.rigid.work.state import Motion, State
from warpsim.rigid.work.tendon_work import tendon_motion


@wp.kernel
def _kinetic_kernel(
    # topology, parameters
    t: Topology,
    mass: wp.array2d(dtype=real),
    armature: wp.array2d(dtype=real),
    # state
    qd: wp.array2d(dtype=real),
    # motion
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    # out
    energy: wp.array(dtype=real),
):
    w = wp.tid()
    total = real(0.0)
    for b in range(1, t.nbody):
        v = velocity[w, t.body_last_dof[b]]
        omega = angular(v)
        at_com = linear(v) + wp.cross(omega, com[w, b])
        total += real(0.5) * (mass[w, b] * wp.dot(at_com, at_com) + wp.dot(omega, sym_mul(inertia[w, b], omega)))
    for d in range(t.nv):
        total += real(0.5) * armature[w, d] * qd[w, d] * qd[w, d]
    energy[w] = total


@wp.kernel
def _tendon_kinetic_kernel(
    # topology, parameters
    t: TendonTopology,
    armature: wp.array2d(dtype=real),
    moment: wp.array2d(dtype=real),
    # state
    qd: wp.array2d(dtype=real),
    # out
    energy: wp.array(dtype=real),
):
    w = wp.tid()
    for n in range(t.pair_count):
        rate_a = moment[w, t.pair_a[n]] * qd[w, t.dof[t.pair_a[n]]]
        rate_b = moment[w, t.pair_b[n]] * qd[w, t.dof[t.pair_b[n]]]
        energy[w] += real(0.5) * armature[w, t.pair_tendon[n]] * rate_a * rate_b


@wp.func
def _angle2(joint: JointParameters, q: wp.array2d(dtype=real), w: int, a: int) -> real:
    """Squared angle between the quaternion in q from a on and its rest."""
    turn = rotation_from_rest(joint.rest, q, w, a)
    return wp.dot(turn, turn)


@wp.func
def _joint_stretch2(t: Topology, joint: JointParameters, q: wp.array2d(dtype=real), w: int, i: int) -> real:
    """Squared distance of link i's joint from its rest, m² or rad² (a free joint sums both, as one stiffness does)."""
    kind = t.link_kind[i]
    a = t.link_q[i]
    if kind == HINGE or kind == SLIDE:
        x = q[w, a] - joint.rest[w, a]
        return x * x
    if kind == BALL:
        return _angle2(joint, q, w, a)
    if kind == FREE:
        here = vec3(q[w, a], q[w, a + 1], q[w, a + 2])
        there = vec3(joint.rest[w, a], joint.rest[w, a + 1], joint.rest[w, a + 2])
        return wp.dot(here - there, here - there) + _angle2(joint, q, w, a + 3)
    return real(0.0)


@wp.func
def _tendon_stretch(
    t: TendonTopology, tendon: TendonParameters, x: TendonMotion, q: wp.array2d(dtype=real), w: int, i: int
) -> real:
    length = tendon_length(t, x, q, w, i)
    slack = tendon.spring_range[w, i]
    if length > slack[1]:
        return length - slack[1]
    if length < slack[0]:
        return length - slack[0]
    return real(0.0)


@wp.kernel
def _potential_kernel(
    # topology, parameters
    t: Topology,
    tt: TendonTopology,
    body: BodyParameters,
    joint: JointParameters,
    tendon: TendonParameters,
    tendon_state: TendonMotion,
    gravity: wp.array(dtype=vec3),
    # state
    q: wp.array2d(dtype=real),
    # motion
    origin: wp.array2d(dtype=vec3),
    com: wp.array2d(dtype=vec3),
    # out
    energy: wp.array(dtype=real),
):
    w = wp.tid()
    total = real(0.0)
    for b in range(1, t.nbody):
        total += -body.mass[w, b] * wp.dot(gravity[w], origin[w, t.body_tree[b]] + com[w, b])
    for i in range(1, t.nlink):
        if t.link_kind[i] > 0:
            total += real(0.5) * joint.stiffness[w, t.link_joint[i]] * _joint_stretch2(t, joint, q, w, i)
    for i in range(tt.count):
        x = _tendon_stretch(tt, tendon, tendon_state, q, w, i)
        total += real(0.5) * tendon.stiffness[w, i] * x * x
    energy[w] = total


def _energy(model: Model) -> wp.array:
    return wp.zeros(model.worlds, dtype=real, device=model.device, requires_grad=True)


def kinetic_energy(
    model: Model, state: State, *, motion: Motion | None = None, out: wp.array | None = None
) -> wp.array:
    """½ qdᵀ M qd, armature included: (W,), J; written to `out` if given."""
    motion = motion or evaluate(model, state)
    energy = _energy(model) if out is None else out
    wp.launch(
        _kinetic_kernel,
        dim=model.worlds,
        inputs=[
            model.topology,
            model.body.mass,
            model.joint.armature,
            state.qd,
            motion.com,
            motion.inertia,
            motion.velocity,
        ],
        outputs=[energy],
        device=model.device,
    )
    if model.has_tendon_armature:
        moment = tendon_motion(model, motion.tendon).moment
        wp.launch(
            _tendon_kinetic_kernel,
            dim=model.worlds,
            inputs=[model.tendon_topology, model.tendon.armature, moment, state.qd],
            outputs=[energy],
            device=model.device,
        )
    return energy


def potential_energy(
    model: Model, state: State, *, motion: Motion | None = None, out: wp.array | None = None
) -> wp.array:
    """Of gravity (zero at the world's origin) and of joint and tendon springs (zero at rest): (W,), J.

    Gravity compensation counts as an applied force and is left out, as in MuJoCo. Written to `out` if given.
    """
    motion = motion or evaluate(model, state)
    energy = _energy(model) if out is None else out
    wp.launch(
        _potential_kernel,
        dim=model.worlds,
        inputs=[
            model.topology,
            model.tendon_topology,
            model.body,
            model.joint,
            model.tendon,
            tendon_motion(model, motion.tendon),
            model.world.gravity,
            state.q,
            motion.origin,
            motion.com,
        ],
        outputs=[energy],
        device=model.device,
    )
    return energy
