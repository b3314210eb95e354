"""One particle step: find cells ▸ stress ▸ to the grid ▸ walls ▸ to the particles ▸ move.

    stepper = Stepper(domain, worlds=1, particles=1000, device=device)
    work = stepper.make_work(arena, walls.shapes)
    stepper.step(state, parameters, walls, motion, work, next_state, wrench, timestep, tape=tape)

MLS-MPM (Hu et al., 2018) with APIC transfers (Jiang et al., 2015), explicit; docs/particles.md has the equations.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import warp as wp

from warpsim.core.errors import InputError
from warpsim.core.precision import mat33, vec5
from warpsim.particles.cells import CROWDED, LOST, NODES, Cells, Scratch, find_cells
from warpsim.particles.domain import Domain
from warpsim.particles.grid import node_velocities
from warpsim.particles.liquid import liquid_stress
from warpsim.particles.motion import carry, move_particles
from warpsim.particles.nearby import (
    NODE_WALLS,
    PARTICLE_WALLS,
    Nearby,
    find_candidates,
    near_nodes,
    near_particles,
)
from warpsim.particles.parameters import FIELDS, ParticleParameters, ParticleState
from warpsim.particles.transfer import to_grid, to_particles
from warpsim.particles.transfer_native import carried, received
from warpsim.particles.walls import WallMotion, WallSet, wall_frames
from warpsim.tape.arena import Arena
from warpsim.tape.program import Shortage

WALL_REACH = 1.0
"""Cells from a wall within which it holds nodes. With half a cell the level sinks, with 1.5 falling liquid hovers."""
_KERNEL_REACH = 1.5


@dataclass
class ParticleWork:
    """Intermediates of one step; see the modules that write them."""

    cells: Cells
    near: Nearby
    stress: wp.array
    carried: wp.array
    node_sum: wp.array
    node_value: wp.array
    got: wp.array


class Stepper:
    """Takes particle steps in one domain.

    Attributes:
        capacity: Nodes that may be in use at the same time, per world.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        worlds: int,
        particles: int,
        device: wp.Device,
        substeps: int = 1,
        relaxation_time: float = 0.05,
        wall_reach: float = WALL_REACH,
        max_nodes: int | None = None,
        closed: bool = False,
    ) -> None:
        """Allocates the scratch that numbers nodes.

        Args:
            domain: The grid.
            worlds: W.
            particles: Per world.
            device: Where it runs.
            substeps: Particle steps in a time step.
            relaxation_time: Of J toward the absolute density, s.
            wall_reach: Cells from a wall within which it holds nodes, more and more; at most 1.5.
            max_nodes: Nodes that may be in use, per world; by default 6 per particle and at least 2,000.
            closed: Whether the domain's faces stop particles; otherwise leaving it is an error.
        """
        self.domain, self.worlds, self.device = domain, worlds, device
        self.particles, self.substeps = particles, substeps
        self.capacity = min(domain.nodes, max(2000, 6 * particles) if max_nodes is None else max_nodes)
        self._relaxation_time, self._closed, self._wall_reach = relaxation_time, closed, wall_reach
        if not 0.0 < wall_reach <= _KERNEL_REACH:
            raise InputError(
                f"walls hold nodes within at most {_KERNEL_REACH} cells, and more than 0, not {wall_reach:g}"
            )
        self._scratch = Scratch.make(domain, self.worlds, self.device)

    def part(self, first: int, last: int) -> Stepper:
        """The same in worlds first … last − 1 alone."""
        made = copy.copy(self)
        made.worlds = last - first
        made._scratch = Scratch(self._scratch.cell[first:last], self._scratch.node[first:last])
        return made

    def make_work(self, arena: Arena, walls: int) -> ParticleWork:
        """Intermediates of one step among so many walls."""
        worlds, n, nodes = self.worlds, self.particles, self.capacity

        return ParticleWork(
            Cells.make(arena, self.domain, worlds, n, nodes),
            Nearby.make(arena, worlds, walls, n, nodes),
            arena.array((worlds, n), mat33),
            arena.array((worlds, n), carried),
            arena.array((worlds, nodes), received),
            arena.array((worlds, nodes), vec5),
            arena.array((worlds, n), carried),
        )

    def make_state(self, arena: Arena) -> ParticleState:
        """A state between two steps."""
        return ParticleState(*(arena.array((self.worlds, self.particles), dtype) for _, dtype in FIELDS))

    def step(
        self,
        state: ParticleState,
        parameters: ParticleParameters,
        walls: WallSet,
        motion: WallMotion,
        work: ParticleWork,
        next_state: ParticleState,
        wrench: wp.array,
        timestep: wp.array,
        *,
        tape: wp.Tape | None,
    ) -> None:
        """Takes one substep.

        Args:
            state: Read only.
            parameters: Of the liquid.
            walls: What bounds it.
            motion: Of the walls, at the start of the step.
            work: What `make_work` returned.
            next_state: Written.
            wrench: (W, bodies) (torque about the world's origin N·m, force N) on each body, mean over the time step;
                added to.
            timestep: (W,) s, of which this is the share 1/`substeps`.
            tape: Where to record adjoints; None: nowhere.
        """
        domain, cells = self.domain, work.cells
        time = (timestep, self.substeps)
        find_cells(domain, self._scratch, self.capacity, state.x, cells)
        liquid_stress(parameters.bulk_modulus, parameters.viscosity, state.rate, state.volume_ratio, work.stress)
        carry(domain, parameters, *time, state, work.stress, work.carried)
        to_grid(domain, cells, state.x, work.carried, work.node_sum, tape)
        wall_frames(motion, work.near.frame)
        find_candidates(domain, walls, motion, timestep, cells, work.near)
        near_nodes(domain, walls, motion, cells, work.node_sum, work.near)
        nodes, sums, values = work.near.nodes, work.node_sum, work.node_value
        lengths = (*time, self._wall_reach)
        node_velocities(domain, walls, parameters, *lengths, motion, cells, nodes, sums, values, wrench)
        to_particles(domain, cells, state.x, work.node_value, work.got, tape)
        near_particles(domain, walls, motion, *time, state.x, state.v, cells, work.near)
        rule = (*time, self._relaxation_time, self.capacity, self._closed)
        found = (cells, work.near.particles, work.got)
        move_particles(domain, walls, parameters, *rule, motion, state.x, *found, next_state, wrench)

    def explain(self, work: ParticleWork, world: int) -> str | None:
        """Why a step of this world failed, if it was for want of room."""
        count = work.cells.count.numpy()[world]
        if count[int(LOST)]:
            return (
                f"{count[int(LOST)]} particles left the domain; enlarge it, close it with walls, or shorten the step "
                "if they were thrown out"
            )
        if count[int(NODES)] > self.capacity:
            return (
                f"particles reach {count[int(NODES)]} nodes of the grid, and there is room for {self.capacity}; set "
                f"max_nodes to at least {count[int(NODES)]}"
            )
        if count[int(CROWDED)]:
            return (
                f"more than {int(NODE_WALLS)} walls near a node, {int(PARTICLE_WALLS)} near a particle, or too many in "
                "all; build the walls from fewer pieces, or use smaller cells"
            )
        return None

    def shortage(self, work: ParticleWork) -> Shortage | None:
        """What a step lacked, if nodes."""
        needed = work.cells.count.numpy()[:, int(NODES)]
        world = int(needed.argmax())
        if needed[world] <= self.capacity:
            return None
        return Shortage(world, int(needed[world]), self.capacity)
