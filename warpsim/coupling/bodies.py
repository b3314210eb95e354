"""Rigid bodies as matters see them at the start of a step, and the sum of what they exert on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import warp as wp

from warpsim.core.precision import quat, vec3, vec6
from warpsim.core.spatial import quat_rotate
from warpsim.core.stages import stage
from warpsim.matter.matter import Bodies
from warpsim.rigid.dynamics.kinematics import twists_of_rates
from warpsim.rigid.model.model import Model
from warpsim.rigid.step.observe import Observation, body_rates, make_observation, observe
from warpsim.rigid.work.state import State, Work
from warpsim.tape.arena import Arena

OBSERVED = ("body_position", "body_rotation", "body_velocity")


@wp.kernel
def _com_kernel(
    # parameters
    local: wp.array2d(dtype=vec3),
    # motion
    position: wp.array2d(dtype=vec3),
    rotation: wp.array2d(dtype=quat),
    # out
    com: wp.array2d(dtype=vec3),
):
    w, b = wp.tid()
    com[w, b] = position[w, b] + quat_rotate(rotation[w, b], local[w, b])


@wp.kernel
def _sum_kernel(a: wp.array2d(dtype=vec6), b: wp.array2d(dtype=vec6), total: wp.array2d(dtype=vec6)):
    w, i = wp.tid()
    total[w, i] = a[w, i] + b[w, i]


@dataclass
class BodyWork:
    """Bodies at the start of a step, the wrenches of matters on them, and their sums."""

    observation: Observation
    position: wp.array
    rotation: wp.array
    velocity: wp.array
    com: wp.array
    mass: wp.array  # the model's own
    wrenches: list[wp.array]  # (W, nbody) vec6, one per matter that meets bodies
    sums: list[wp.array]  # with the control's, then with one matter's more each
    twist: wp.array  # (W, nv + 1) vec6: if q̈ were the velocity
    acceleration: wp.array  # (W, nbody) vec6

    def seen_by(self, place: int) -> Bodies:
        """The bodies, for one of the matters that meet them."""
        motion = (self.position, self.rotation, self.velocity, self.com, self.mass)
        return Bodies(*motion, self.wrenches[place], self.acceleration)


def make_body_work(m: Model, arena: Arena, matters: int) -> BodyWork:
    """Allocates for so many matters."""
    shape = (m.worlds, m.nbody)
    return BodyWork(
        observation=make_observation(m, arena, OBSERVED),
        position=arena.array(shape, vec3),
        rotation=arena.array(shape, quat),
        velocity=arena.array(shape, vec6),
        com=arena.array(shape, vec3),
        mass=m.body.mass,
        wrenches=[arena.array(shape, vec6, accumulator=True) for _ in range(matters)],
        sums=[arena.array(shape, vec6) for _ in range(matters)],
        twist=arena.array((m.worlds, m.nv + 1), vec6),
        acceleration=arena.array(shape, vec6),
    )


@stage
def observe_bodies(m: Model, s: State, work: BodyWork) -> None:
    """Fills the poses, velocities and centers of mass of a state."""
    places = dict(zip(OBSERVED, (work.position, work.rotation, work.velocity), strict=True))
    observe(m, s, work.observation, places, OBSERVED)
    wp.launch(
        _com_kernel,
        dim=work.com.shape,
        inputs=[m.body.com, work.position, work.rotation],
        outputs=[work.com],
        device=m.device,
    )


@stage
def observe_accelerations(m: Model, rigid: Work, work: BodyWork) -> None:
    """Fills Jq̈ of the bodies after their step."""
    twists_of_rates(m, rigid.qdd, rigid.axis, work.twist)
    body_rates(m, rigid.origin, rigid.link_position, work.twist, work.acceleration)


@stage
def sum_wrenches(given: wp.array, wrenches: Sequence[wp.array], sums: Sequence[wp.array]) -> None:
    """The control's wrench and those of all matters, in their order; `sums[-1]` is the total."""
    before = given
    for wrench, total in zip(wrenches, sums, strict=True):
        wp.launch(_sum_kernel, dim=total.shape, inputs=[before, wrench], outputs=[total], device=total.device)
        before = total
