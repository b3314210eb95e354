"""What a state looks like from outside: poses, velocities, centre of mass, momentum, energy, as differentiable outputs.

`observe` evaluates the kinematics of a state and launches one kernel for each output asked for. A program calls it on
the state it has just reached, so row t of a trajectory's outputs belongs to row t of its states.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import warp as wp

from warpsim.dynamics.kinematics import kinematics
from warpsim.dynamics.passive import rotation_from_rest
from warpsim.model.model import Model
from warpsim.model.parameters import BodyParameters, JointParameters, TendonParameters
from warpsim.model.state import State
from warpsim.model.tendons import TendonTopology, tendon_length
from warpsim.model.topology import BALL, FREE, HINGE, SLIDE, Topology
from warpsim.precision import quat, real, vec2, vec3, vec6
from warpsim.spatial import angular, linear, spatial, sym_mul
from warpsim.tape.arena import Arena
from warpsim.tape.program import Field


def observable_fields(m: Model) -> dict[str, Field]:
    """Every output `observe` can make, by name; body 0 is the world."""
    w, n = m.worlds, m.nbody
    return {
        "body_position": Field("body_position", (w, n), vec3),  # m, world: origin of the body's frame
        "body_rotation": Field("body_rotation", (w, n), quat),  # (w, x, y, z), body → world
        "body_velocity": Field("body_velocity", (w, n), vec6),  # rad/s, m/s: angular, then linear at the origin, world
        "com": Field("com", (w,), vec3),  # m, world: centre of all mass
        "momentum": Field("momentum", (w,), vec6),  # N·m·s about the com, then N·s, world
        "energy": Field("energy", (w,), vec2),  # J: potential (gravity, springs), kinetic
    }


@dataclass
class Observation:
    """Kinematics of an observed state; fields as in `warpsim.model.state.Work`."""

    origin: wp.array
    link_position: wp.array
    link_rotation: wp.array
    axis: wp.array
    com: wp.array
    inertia: wp.array
    velocity: wp.array


def make_observation(m: Model, arena: Arena) -> Observation:
    """Allocates the intermediates of one observation."""
    w = m.worlds
    return Observation(
        origin=arena.array((w, m.ntree), vec3, differentiable=False),
        link_position=arena.array((w, m.nlink), vec3),
        link_rotation=arena.array((w, m.nlink), quat),
        axis=arena.array((w, m.nv), vec6),
        com=arena.array((w, m.nbody), vec3),
        inertia=arena.array((w, m.nbody), vec6),
        velocity=arena.array((w, m.nv + 1), vec6),
    )


@wp.func
def _com_velocity(t: Topology, velocity: wp.array2d(dtype=vec6), com: wp.array2d(dtype=vec3), w: int, b: int) -> vec3:
    v = velocity[w, t.body_last_dof[b]]
    return linear(v) + wp.cross(angular(v), com[w, b])


@wp.func
def _total_mass(t: Topology, body: BodyParameters, w: int) -> real:
    total = real(0.0)
    for b in range(1, t.nbody):
        total += body.mass[w, b]
    return total


@wp.func
def _mass_moment(
    t: Topology, body: BodyParameters, origin: wp.array2d(dtype=vec3), com: wp.array2d(dtype=vec3), w: int
) -> vec3:
    """Σ m·r over all bodies."""
    total = vec3()
    for b in range(1, t.nbody):
        total += (com[w, b] + origin[w, t.body_tree[b]]) * body.mass[w, b]
    return total


@wp.func
def _linear_momentum(
    t: Topology, body: BodyParameters, com: wp.array2d(dtype=vec3), velocity: wp.array2d(dtype=vec6), w: int
) -> vec3:
    total = vec3()
    for b in range(1, t.nbody):
        total += _com_velocity(t, velocity, com, w, b) * body.mass[w, b]
    return total


@wp.func
def _angular_momentum(
    t: Topology,
    body: BodyParameters,
    origin: wp.array2d(dtype=vec3),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    w: int,
) -> vec3:
    """Of all bodies about the world's origin."""
    total = vec3()
    for b in range(1, t.nbody):
        r = com[w, b] + origin[w, t.body_tree[b]]
        spin = sym_mul(inertia[w, b], angular(velocity[w, t.body_last_dof[b]]))
        total += spin + wp.cross(r, _com_velocity(t, velocity, com, w, b)) * body.mass[w, b]
    return total


@wp.func
def _kinetic_energy(
    t: Topology,
    body: BodyParameters,
    joint: JointParameters,
    qd: wp.array2d(dtype=real),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    w: int,
) -> real:
    """½·qdᵀ·M·qd, the rotors' share (armature) included."""
    total = real(0.0)
    for b in range(1, t.nbody):
        v = _com_velocity(t, velocity, com, w, b)
        omega = angular(velocity[w, t.body_last_dof[b]])
        total += real(0.5) * (body.mass[w, b] * wp.dot(v, v) + wp.dot(omega, sym_mul(inertia[w, b], omega)))
    for d in range(t.nv):
        total += real(0.5) * joint.armature[w, d] * qd[w, d] * qd[w, d]
    return total


@wp.func
def _spring_energy(t: Topology, joint: JointParameters, q: wp.array2d(dtype=real), w: int) -> real:
    total = real(0.0)
    for i in range(1, t.nlink):
        kind = t.link_kind[i]
        a = t.link_q[i]
        j = t.link_joint[i]
        if kind == HINGE or kind == SLIDE:
            shift = q[w, a] - joint.rest[w, a]
            total += real(0.5) * joint.stiffness[w, j] * shift * shift
        elif kind == BALL:
            turn = rotation_from_rest(joint, q, w, a)
            total += real(0.5) * joint.stiffness[w, j] * wp.dot(turn, turn)
        elif kind == FREE:
            turn = rotation_from_rest(joint, q, w, a + 3)
            x = q[w, a] - joint.rest[w, a]
            y = q[w, a + 1] - joint.rest[w, a + 1]
            z = q[w, a + 2] - joint.rest[w, a + 2]
            total += real(0.5) * joint.stiffness[w, j] * (wp.dot(turn, turn) + x * x + y * y + z * z)
    return total


@wp.func
def _tendon_energy(t: TendonTopology, tendon: TendonParameters, q: wp.array2d(dtype=real), w: int) -> real:
    total = real(0.0)
    for i in range(t.count):
        length = tendon_length(t, tendon.coefficient, q, w, i)
        slack = tendon.spring_range[w, i]
        if length > slack[1]:
            total += real(0.5) * tendon.stiffness[w, i] * (length - slack[1]) * (length - slack[1])
        if length < slack[0]:
            total += real(0.5) * tendon.stiffness[w, i] * (length - slack[0]) * (length - slack[0])
    return total


@wp.kernel
def _body_position_kernel(t: Topology, link_position: wp.array2d(dtype=vec3), body_position: wp.array2d(dtype=vec3)):
    w, b = wp.tid()
    body_position[w, b] = link_position[w, t.body_link[b]]


@wp.kernel
def _body_rotation_kernel(t: Topology, link_rotation: wp.array2d(dtype=quat), body_rotation: wp.array2d(dtype=quat)):
    w, b = wp.tid()
    body_rotation[w, b] = link_rotation[w, t.body_link[b]]


@wp.kernel
def _body_velocity_kernel(
    t: Topology,
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec6),
    body_velocity: wp.array2d(dtype=vec6),
):
    w, b = wp.tid()
    v = velocity[w, t.body_last_dof[b]]
    if b == 0:
        body_velocity[w, b] = vec6()
    else:
        r = link_position[w, t.body_link[b]] - origin[w, t.body_tree[b]]
        body_velocity[w, b] = spatial(angular(v), linear(v) + wp.cross(angular(v), r))


@wp.kernel
def _com_kernel(
    # topology, parameters
    t: Topology,
    body: BodyParameters,
    # work in
    origin: wp.array2d(dtype=vec3),
    com: wp.array2d(dtype=vec3),
    # out
    total_com: wp.array(dtype=vec3),
):
    w = wp.tid()
    total_com[w] = _mass_moment(t, body, origin, com, w) / _total_mass(t, body, w)


@wp.kernel
def _momentum_kernel(
    # topology, parameters
    t: Topology,
    body: BodyParameters,
    # work in
    origin: wp.array2d(dtype=vec3),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    # out
    momentum: wp.array(dtype=vec6),
):
    w = wp.tid()
    centre = _mass_moment(t, body, origin, com, w) / _total_mass(t, body, w)
    p = _linear_momentum(t, body, com, velocity, w)
    about_origin = _angular_momentum(t, body, origin, com, inertia, velocity, w)
    momentum[w] = spatial(about_origin - wp.cross(centre, p), p)


@wp.kernel
def _energy_kernel(
    # topology, parameters
    t: Topology,
    tt: TendonTopology,
    body: BodyParameters,
    joint: JointParameters,
    tendon: TendonParameters,
    gravity: wp.array(dtype=vec3),
    # state
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    # work in
    origin: wp.array2d(dtype=vec3),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    # out
    energy: wp.array(dtype=vec2),
):
    w = wp.tid()
    weight = -wp.dot(gravity[w], _mass_moment(t, body, origin, com, w))
    springs = _spring_energy(t, joint, q, w) + _tendon_energy(tt, tendon, q, w)
    energy[w] = vec2(weight + springs, _kinetic_energy(t, body, joint, qd, com, inertia, velocity, w))


def observe(m: Model, s: State, o: Observation, outputs: Mapping[str, wp.array], names: Collection[str]) -> None:
    """Writes the outputs in `names` for state `s`; taped like any stage."""
    kinematics(m, s, o)
    bodies, worlds = (m.worlds, m.nbody), m.worlds
    launches = {
        "body_position": (_body_position_kernel, bodies, [m.topology, o.link_position]),
        "body_rotation": (_body_rotation_kernel, bodies, [m.topology, o.link_rotation]),
        "body_velocity": (_body_velocity_kernel, bodies, [m.topology, o.origin, o.link_position, o.velocity]),
        "com": (_com_kernel, worlds, [m.topology, m.body, o.origin, o.com]),
        "momentum": (_momentum_kernel, worlds, [m.topology, m.body, o.origin, o.com, o.inertia, o.velocity]),
        "energy": (
            _energy_kernel,
            worlds,
            [
                *(m.topology, m.tendon_topology, m.body, m.joint, m.tendon, m.world.gravity),
                *(s.q, s.qd, o.origin, o.com, o.inertia, o.velocity),
            ],
        ),
    }
    for name in names:
        kernel, dim, inputs = launches[name]
        wp.launch(kernel, dim=dim, inputs=inputs, outputs=[outputs[name]], device=m.device)
