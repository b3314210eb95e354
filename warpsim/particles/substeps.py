"""Several particle steps within one time step, while walls move with constant twist."""

from __future__ import annotations

from dataclasses import dataclass

import warp as wp

from warpsim.core.precision import quat, vec3
from warpsim.particles.parameters import ParticleParameters, ParticleState
from warpsim.particles.step import ParticleWork, Stepper
from warpsim.particles.walls import WallMotion, WallSet, move_walls
from warpsim.tape.arena import Arena
from warpsim.tape.program import Shortage


@dataclass
class SubstepWork:
    """Intermediates of a substep.

    Attributes:
        particles: Its own.
        walls: Positions and rotations of the walls, where they are not those of the start.
        left: The state it leaves; None: the time step's own.
    """

    particles: ParticleWork
    walls: tuple[wp.array, wp.array] | None
    left: ParticleState | None


def make_substeps(stepper: Stepper, walls: int, arena: Arena) -> list[SubstepWork]:
    """Intermediates of all substeps of a time step among so many walls."""
    made = []
    shape = (stepper.worlds, max(1, walls))
    for k in range(stepper.substeps):
        moved = (arena.array(shape, vec3), arena.array(shape, quat)) if k and walls else None
        left = None if k == stepper.substeps - 1 else stepper.make_state(arena)
        made.append(SubstepWork(stepper.make_work(arena, walls), moved, left))
    return made


def take_substeps(
    stepper: Stepper,
    parameters: ParticleParameters,
    walls: WallSet,
    motion: WallMotion,
    state: ParticleState,
    work: list[SubstepWork],
    next_state: ParticleState,
    wrench: wp.array,
    timestep: wp.array,
    tape: wp.Tape | None,
) -> None:
    """Takes all substeps; `motion` is that at the start, `wrench` as in `Stepper.step`."""
    now = state
    for k, substep in enumerate(work):
        here = motion
        if substep.walls is not None:
            here = WallMotion(*substep.walls, motion.twist)
            move_walls(k / stepper.substeps, timestep, motion, here)
        left = substep.left or next_state
        stepper.step(now, parameters, walls, here, substep.particles, left, wrench, timestep, tape=tape)
        now = left


def explain(stepper: Stepper, work: list[SubstepWork], world: int) -> str | None:
    """Why a step of this world failed, if it was for want of room."""
    reasons = (stepper.explain(substep.particles, world) for substep in work)
    return next((reason for reason in reasons if reason), None)


def shortage(stepper: Stepper, work: list[SubstepWork]) -> Shortage | None:
    """What a step lacked, if nodes."""
    found = (stepper.shortage(substep.particles) for substep in work)
    return next((shortage for shortage in found if shortage), None)
