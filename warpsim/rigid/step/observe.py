"""What a state looks like from outside: poses, velocities, center of mass, momentum, energy, as outputs of a program.

`observe` evaluates the kinematics of a state once and asks `rigid.query` for the outputs wanted. A program calls it
on the state it has just reached, so row t of a trajectory's outputs belongs to row t of its states.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import warp as wp

from warpsim.core.precision import quat, vec3, vec6
from warpsim.core.spatial import angular, linear, spatial
from warpsim.rigid import query
from warpsim.rigid.dynamics.kinematics import kinematics
from warpsim.rigid.model.fields import observable_fields
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.query.momentum import Momentum
from warpsim.rigid.query.motion import Poses
from warpsim.rigid.work.state import State
from warpsim.rigid.work.tendon_work import TendonWork, make_tendon_work
from warpsim.tape.arena import Arena


@dataclass
class Observation:
    """Kinematics of an observed state, and outputs that were not asked for but that others need."""

    origin: wp.array
    link_position: wp.array
    link_rotation: wp.array
    axis: wp.array
    com: wp.array
    inertia: wp.array
    velocity: wp.array
    tendon: TendonWork | None
    spare: dict[str, wp.array]


_MADE_WITH = {
    "body_rotation": ("body_position",),
    "body_position": ("body_rotation",),
    "linear_momentum": ("angular_momentum", "com"),
    "angular_momentum": ("linear_momentum", "com"),
}
"""Output → others that come with it."""


def make_observation(m: Model, arena: Arena, names: Collection[str]) -> Observation:
    """Allocates the intermediates of one observation of the outputs in `names`."""
    w, fields = m.worlds, observable_fields(m)
    spare = sorted({other for name in names for other in _MADE_WITH.get(name, ())} - set(names))
    return Observation(
        origin=arena.array((w, m.ntree), vec3, differentiable=False),
        link_position=arena.array((w, m.nlink), vec3),
        link_rotation=arena.array((w, m.nlink), quat),
        axis=arena.array((w, m.nv), vec6),
        com=arena.array((w, m.nbody), vec3),
        inertia=arena.array((w, m.nbody), vec6),
        velocity=arena.array((w, m.nv + 1), vec6),
        tendon=make_tendon_work(
            m,
            lambda count, dtype: arena.array((w, count), dtype),
            lambda count, dtype: arena.array((w, count), dtype, differentiable=False),
        ),
        spare={name: arena.array(fields[name].shape, fields[name].dtype) for name in spare},
    )


@wp.kernel
def _body_velocity_kernel(
    # topology
    t: Topology,
    # motion
    origin: wp.array2d(dtype=vec3),
    link_position: wp.array2d(dtype=vec3),
    velocity: wp.array2d(dtype=vec6),
    # out
    body_velocity: wp.array2d(dtype=vec6),
):
    w, b = wp.tid()
    if b == 0:
        body_velocity[w, b] = vec6()
    else:
        v = velocity[w, t.body_last_dof[b]]
        r = link_position[w, t.body_link[b]] - origin[w, t.body_tree[b]]
        body_velocity[w, b] = spatial(angular(v), linear(v) + wp.cross(angular(v), r))


def body_rates(m: Model, origin: wp.array, link_position: wp.array, twist: wp.array, out: wp.array) -> None:
    """`out` (W, nbody) vec6: angular, then linear at each body's origin, of twists (W, nv + 1) about trees' points."""
    wp.launch(
        _body_velocity_kernel,
        dim=(m.worlds, m.nbody),
        inputs=[m.topology, origin, link_position, twist],
        outputs=[out],
        device=m.device,
    )


def observe(m: Model, s: State, o: Observation, outputs: Mapping[str, wp.array], names: Collection[str]) -> None:
    """Writes the outputs in `names` (those `o` was made for, or some of them) for state `s`; taped like any stage."""
    kinematics(m, s, o)
    wanted = set(names)
    place = {**o.spare, **outputs}
    if wanted & {"body_position", "body_rotation"}:
        query.body_poses(m, s, motion=o, out=Poses(place["body_position"], place["body_rotation"]))
    if "body_velocity" in wanted:
        body_rates(m, o.origin, o.link_position, o.velocity, outputs["body_velocity"])
    with_momentum = wanted & {"linear_momentum", "angular_momentum"}
    if "com" in wanted or with_momentum:
        query.center_of_mass(m, s, motion=o, out=place["com"])
    if with_momentum:
        momentum = Momentum(place["linear_momentum"], place["angular_momentum"])
        query.momentum(m, s, about=place["com"], motion=o, out=momentum)
    if "potential_energy" in wanted:
        query.potential_energy(m, s, motion=o, out=outputs["potential_energy"])
    if "kinetic_energy" in wanted:
        query.kinetic_energy(m, s, motion=o, out=outputs["kinetic_energy"])
