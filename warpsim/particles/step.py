"""One particle step: find cells ▸ stress ▸ to the grid ▸ walls ▸ to the particles ▸ move.

    stepper = Stepper(domain, walls, parameters, step=5e-4, particles=1000)
    work = stepper.make_work(arena)
    stepper.step(state, motion, work, next_state, wrench, tape=tape)

MLS-MPM (Hu et al., 2018) with APIC transfers (Jiang et al., 2015), explicit; docs/particles.md has the equations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import warp as wp

from warpsim.core.precision import mat33, real, vec3, vec5
from warpsim.particles import grid, motion
from warpsim.particles.cells import CROWDED, LOST, NODES, Cells, Scratch, find_cells
from warpsim.particles.domain import Domain
from warpsim.particles.liquid import liquid_stress
from warpsim.particles.transfer import carried, received, to_grid, to_particles
from warpsim.particles.walls import (
    NODE_WALLS,
    PARTICLE_WALLS,
    WallMotion,
    WallSet,
    _near_nodes_kernel,
    _near_particles_kernel,
)
from warpsim.tape.arena import Arena
from warpsim.tape.program import Shortage


@dataclass
class ParticleParameters:
    """Parameters of all worlds, (W,) each, with gradients.

    Attributes:
        volume: V₀ of a particle, m³; without gradient.
        density: kg/m³.
        bulk_modulus: Pa.
        viscosity: Pa·s.
        gravity: m/s², vectors.
    """

    volume: wp.array
    density: wp.array
    bulk_modulus: wp.array
    viscosity: wp.array
    gravity: wp.array


@dataclass
class ParticleState:
    """State of n particles, arrays (W, n).

    Attributes:
        x: Position, m.
        v: Velocity, m/s.
        rate: C, the affine velocity field about each particle, 1/s.
        volume_ratio: J, volume over that at rest.
        slope: ∇J, 1/m.
    """

    x: wp.array
    v: wp.array
    rate: wp.array
    volume_ratio: wp.array
    slope: wp.array

    @property
    def arrays(self) -> list[wp.array]:
        """In the order of the fields."""
        return [self.x, self.v, self.rate, self.volume_ratio, self.slope]


FIELDS = (("x", vec3), ("v", vec3), ("rate", mat33), ("volume_ratio", real), ("slope", vec3))
"""Names and types of the state."""


@dataclass
class ParticleWork:
    """Intermediates of one step; see the modules that write them."""

    cells: Cells
    near_nodes: wp.array
    near_particles: wp.array
    stress: wp.array
    carried: wp.array
    node_sum: wp.array
    pushed: wp.array
    node_value: wp.array
    got: wp.array


class Stepper:
    """Takes particle steps of one length in one domain.

    Attributes:
        capacity: Nodes that may be in use at the same time, per world.
    """

    def __init__(
        self,
        domain: Domain,
        walls: WallSet,
        parameters: ParticleParameters,
        *,
        step: float,
        particles: int,
        relaxation_time: float = 0.05,
        max_nodes: int | None = None,
    ) -> None:
        """Allocates the scratch that numbers nodes.

        Args:
            domain: The grid.
            walls: What bounds the liquid.
            parameters: Of the liquid.
            step: Δt, s.
            particles: Per world.
            relaxation_time: Of J towards the absolute density, s.
            max_nodes: Nodes that may be in use, per world; by default 6 per particle and at least 2,000.
        """
        self.domain, self.walls, self.parameters = domain, walls, parameters
        self.worlds, self.particles, self.dt = parameters.density.shape[0], particles, step
        self.device = parameters.density.device
        self.capacity = min(domain.nodes, max(2000, 6 * particles) if max_nodes is None else max_nodes)
        self._relaxation = 1.0 - math.exp(-step / relaxation_time)
        self._scratch = Scratch.make(domain, self.worlds, self.device)

    def make_work(self, arena: Arena) -> ParticleWork:
        """Intermediates of one step."""
        worlds, n, nodes = self.worlds, self.particles, self.capacity

        def integers(*shape: int) -> wp.array:
            return arena.array((worlds, *shape), wp.int32, differentiable=False)

        return ParticleWork(
            Cells.make(arena, self.domain, worlds, n, nodes),
            integers(nodes, int(NODE_WALLS)),
            integers(n, int(PARTICLE_WALLS)),
            arena.array((worlds, n), mat33),
            arena.array((worlds, n), carried),
            arena.array((worlds, nodes), received),
            arena.array((worlds, nodes), vec3),
            arena.array((worlds, nodes), vec5),
            arena.array((worlds, n), carried),
        )

    def make_state(self, arena: Arena) -> ParticleState:
        """A state between two steps."""
        return ParticleState(*(arena.array((self.worlds, self.particles), dtype) for _, dtype in FIELDS))

    def step(
        self,
        state: ParticleState,
        motion: WallMotion,
        work: ParticleWork,
        next_state: ParticleState,
        wrench: wp.array,
        *,
        share: float = 1.0,
        tape: wp.Tape | None,
    ) -> None:
        """Takes one step.

        Args:
            state: Read only.
            motion: Of the walls, at the start of the step.
            work: What `make_work` returned.
            next_state: Written.
            wrench: (W, bodies) (torque about the world's origin N·m, force N) on each body, mean over the step; added
                to, times `share`.
            share: 1/n where the wrench is the mean over n steps.
            tape: Where to record adjoints; None: nowhere.
        """
        domain, parameters = self.domain, self.parameters
        rate = share / self.dt
        find_cells(domain, self._scratch, self.capacity, state.x, work.cells)
        liquid_stress(
            parameters.bulk_modulus, parameters.viscosity, state.rate, state.volume_ratio, work.stress
        )
        self._carry(state, work)
        to_grid(domain, work.cells, state.x, work.carried, work.node_sum, tape)
        self._at_nodes(motion, work, wrench, rate)
        to_particles(domain, work.cells, state.x, work.node_value, work.got, tape)
        self._move(state, motion, work, next_state, wrench, rate)

    def _carry(self, state: ParticleState, work: ParticleWork) -> None:
        p = self.parameters
        wp.launch(
            motion._carry_kernel,
            dim=(self.worlds, self.particles),
            inputs=[real(self.domain.spacing), real(self.dt), p.volume, p.density, *state.arrays[1:], work.stress],
            outputs=[work.carried],
            device=self.device,
        )

    def _at_nodes(self, walls: WallMotion, work: ParticleWork, wrench: wp.array, rate: float) -> None:
        p, shapes, cells = self.parameters, self.walls, work.cells
        corner, spacing = vec3(*self.domain.lower), real(self.domain.spacing)
        dim = (self.worlds, self.capacity)
        wp.launch(
            _near_nodes_kernel,
            dim=dim,
            inputs=[corner, spacing, shapes.shapes, shapes.kind, shapes.size, walls.position, walls.rotation]
            + [cells.place, work.node_sum],
            outputs=[cells.count, work.near_nodes],
            device=self.device,
            record_tape=False,
        )
        found = [cells.count, cells.place, work.near_nodes, work.node_sum]
        wp.launch(
            grid._traction_kernel,
            dim=dim,
            inputs=[corner, spacing, real(self.dt), real(rate), shapes.kind, shapes.body, shapes.size, p.gravity]
            + [p.density, p.bulk_modulus, walls.position, walls.rotation, *found],
            outputs=[work.pushed, wrench],
            device=self.device,
        )
        wp.launch(
            grid._contact_kernel,
            dim=dim,
            inputs=[corner, spacing, real(rate), shapes.kind, shapes.body, shapes.size, shapes.stick]
            + [*walls.arrays, *found, work.pushed],
            outputs=[work.node_value, wrench],
            device=self.device,
        )

    def _move(
        self,
        state: ParticleState,
        walls: WallMotion,
        work: ParticleWork,
        next_state: ParticleState,
        wrench: wp.array,
        rate: float,
    ) -> None:
        p, shapes = self.parameters, self.walls
        spacing, dt = real(self.domain.spacing), real(self.dt)
        dim = (self.worlds, self.particles)
        wp.launch(
            _near_particles_kernel,
            dim=dim,
            inputs=[real(3.0 * self.domain.spacing), dt, shapes.shapes, shapes.kind, shapes.size, *walls.arrays]
            + [state.x, state.v],
            outputs=[work.cells.count, work.near_particles],
            device=self.device,
            record_tape=False,
        )
        wp.launch(
            motion._move_kernel,
            dim=dim,
            inputs=[spacing, dt, real(self._relaxation), real(rate), self.capacity, shapes.kind, shapes.body]
            + [shapes.size, p.volume, p.density, *walls.arrays, state.x, work.cells.count, work.near_particles]
            + [work.got],
            outputs=[*next_state.arrays, wrench],
            device=self.device,
        )

    def explain(self, work: ParticleWork, world: int) -> str | None:
        """Why a step of this world failed, if it was for want of room."""
        count = work.cells.count.numpy()[world]
        if count[int(LOST)]:
            return (
                f"{count[int(LOST)]} particles left the domain; enlarge it, close it with walls, or shorten the step "
                "if they were thrown out"
            )
        if count[int(CROWDED)]:
            return (
                f"more than {int(NODE_WALLS)} walls near a node or {int(PARTICLE_WALLS)} near a particle; build the "
                "walls from fewer pieces, or use smaller cells"
            )
        if count[int(NODES)] > self.capacity:
            return (
                f"particles reach {count[int(NODES)]} nodes of the grid, and there is room for {self.capacity}; set "
                f"max_nodes to at least {count[int(NODES)]}"
            )
        return None

    def shortage(self, work: ParticleWork) -> Shortage | None:
        """What a step lacked, if nodes."""
        needed = work.cells.count.numpy()[:, int(NODES)]
        world = int(needed.argmax())
        if needed[world] <= self.capacity:
            return None
        return Shortage(world, int(needed[world]), self.capacity)
