"""Center of mass of a whole world, its velocity, and linear and angular momentum."""

from __future__ import annotations

from typing import NamedTuple

import warp as wp

from warpsim.core.errors import InputError
from warpsim.core.precision import real, vec3, vec6
from warpsim.core.spatial import angular, linear, sym_mul
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.topology import Topology
from warpsim.rigid.query.motion import evaluate
from warpsim.rigid.work.state import Motion, State


class Momentum(NamedTuple):
    """Of all bodies of a world, world axes."""

    linear: wp.array  # (W,) vec3, kg·m/s
    angular: wp.array  # (W,) vec3, kg·m²/s


@wp.func
def _total_mass(t: Topology, mass: wp.array2d(dtype=real), w: int) -> real:
    total = real(0.0)
    for b in range(1, t.nbody):
        total += mass[w, b]
    return total


@wp.func
def _first_moment(
    t: Topology,
    mass: wp.array2d(dtype=real),
    origin: wp.array2d(dtype=vec3),
    com: wp.array2d(dtype=vec3),
    w: int,
) -> vec3:
    total = vec3(real(0.0), real(0.0), real(0.0))
    for b in range(1, t.nbody):
        total += (origin[w, t.body_tree[b]] + com[w, b]) * mass[w, b]
    return total


@wp.kernel
def _com_kernel(
    t: Topology,
    mass: wp.array2d(dtype=real),
    origin: wp.array2d(dtype=vec3),
    com: wp.array2d(dtype=vec3),
    center: wp.array(dtype=vec3),
):
    w = wp.tid()
    center[w] = _first_moment(t, mass, origin, com, w) / _total_mass(t, mass, w)


@wp.kernel
def _momentum_kernel(
    # topology, parameters
    t: Topology,
    mass: wp.array2d(dtype=real),
    # motion
    origin: wp.array2d(dtype=vec3),
    com: wp.array2d(dtype=vec3),
    inertia: wp.array2d(dtype=vec6),
    velocity: wp.array2d(dtype=vec6),
    # the point angular momentum is taken about
    about: wp.array(dtype=vec3),
    # out
    linear_momentum: wp.array(dtype=vec3),
    angular_momentum: wp.array(dtype=vec3),
):
    w = wp.tid()
    p = vec3(real(0.0), real(0.0), real(0.0))
    l = vec3(real(0.0), real(0.0), real(0.0))
    for b in range(1, t.nbody):
        v = velocity[w, t.body_last_dof[b]]
        omega = angular(v)
        m_v = (linear(v) + wp.cross(omega, com[w, b])) * mass[w, b]
        arm = origin[w, t.body_tree[b]] + com[w, b] - about[w]
        p += m_v
        l += sym_mul(inertia[w, b], omega) + wp.cross(arm, m_v)
    linear_momentum[w] = p
    angular_momentum[w] = l


def _vectors(model: Model) -> wp.array:
    return wp.zeros(model.worlds, dtype=vec3, device=model.device, requires_grad=True)


def center_of_mass(
    model: Model, state: State, *, motion: Motion | None = None, out: wp.array | None = None
) -> wp.array:
    """Center of mass of all bodies of each world: (W,) vec3, m; written to `out` if given."""
    motion = motion or evaluate(model, state)
    center = _vectors(model) if out is None else out
    wp.launch(
        _com_kernel,
        dim=model.worlds,
        inputs=[model.topology, model.body.mass, motion.origin, motion.com],
        outputs=[center],
        device=model.device,
    )
    return center


def _point(model: Model, state: State, about: str, motion: Motion) -> wp.array:
    if about not in ("com", "origin"):
        raise InputError(f"about={about!r}; use 'com' or 'origin'")
    return center_of_mass(model, state, motion=motion) if about == "com" else _vectors(model)


def momentum(
    model: Model,
    state: State,
    *,
    about: str | wp.array = "com",
    motion: Motion | None = None,
    out: Momentum | None = None,
) -> Momentum:
    """Linear and angular momentum of all bodies of each world; rotors' inertia (armature) is left out.

    Args:
        model: The model.
        state: The state.
        about: Point of the angular momentum: "com", the center of mass, or "origin", the world's, or (W,) vec3, m.
        motion: What `evaluate` gave for this state.
        out: Written to, if given.
    """
    motion = motion or evaluate(model, state)
    point = about if isinstance(about, wp.array) else _point(model, state, about, motion)
    result = Momentum(_vectors(model), _vectors(model)) if out is None else out
    wp.launch(
        _momentum_kernel,
        dim=model.worlds,
        inputs=[
            model.topology,
            model.body.mass,
            motion.origin,
            motion.com,
            motion.inertia,
            motion.velocity,
            point,
        ],
        outputs=[result.linear, result.angular],
        device=model.device,
    )
    return result
