"""`ParticleProgram`: a liquid among walls that are given, as a program of its own for the checkpointed tape.

program = ParticleProgram(domain, liquid, walls, volume=1e-6, particles=len(x), step=5e-4)
tape = CheckpointedTape(program, steps=400)
run = tape.forward(program.start(x), program.standing(400, position), keep_outputs=["wrench"])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import ArrayLike

from warpsim.core.errors import InputError, whole_number
from warpsim.core.precision import numpy_real, quat, real, vec3, vec6
from warpsim.particles.checks import check_clear_of_walls, check_particles, check_step_length, check_volume
from warpsim.particles.domain import Domain
from warpsim.particles.liquid import Liquid
from warpsim.particles.parameters import FIELDS, ParticleParameters, ParticleState
from warpsim.particles.step import WALL_REACH, Stepper
from warpsim.particles.substeps import SubstepWork, explain, make_substeps, shortage, take_substeps
from warpsim.particles.walls import WallMotion, WallSet, WallShape
from warpsim.tape.arena import Arena
from warpsim.tape.program import Arrays, Field, Shortage


class ParticleProgram:
    """A liquid of particles; each step takes `substeps` particle steps while walls move with constant twist.

    State: the fields of `ParticleState`. Inputs, where there are walls: `wall_position`, `wall_rotation` and
    `wall_twist` as in `WallMotion`, at the start of a step. Output `wrench`: (W, bodies), mean over the step, of the
    liquid on each body: torque about the world's origin (N·m), force (N).
    """

    divisible = True

    def __init__(
        self,
        domain: Domain,
        liquid: Liquid,
        walls: Sequence[WallShape] = (),
        *,
        volume: float,
        particles: int,
        step: float,
        substeps: int = 1,
        worlds: int = 1,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        relaxation_time: float = 0.05,
        wall_reach: float = WALL_REACH,
        max_nodes: int | None = None,
        device: str = "cpu",
    ) -> None:
        """Allocates parameters; raises `InputError` for what cannot be simulated.

        Args:
            domain: The grid.
            liquid: Its constants, the same in all worlds until `parameters` are changed.
            walls: Shapes, the same in all worlds.
            volume: Of a particle at rest, m³.
            particles: n, per world.
            step: Length of a particle step, s.
            substeps: Particle steps per step.
            worlds: W.
            gravity: (3,) m/s².
            relaxation_time: Of J toward the absolute density, s.
            wall_reach: As `Stepper`.
            max_nodes: As `Stepper`.
            device: Where it runs.
        """
        check_volume(domain, volume)
        check_step_length(liquid, domain.spacing, step)
        self.device = wp.get_device(device)
        self.worlds = whole_number("worlds", worlds)
        self.substeps = whole_number("substeps", substeps)
        self.domain, self.liquid = domain, liquid
        self.particles = whole_number("particles", particles)
        self.walls = WallSet.make(walls, worlds, self.device)
        self._constants = parameters = ParticleParameters(
            wp.full(worlds, volume, dtype=real, device=self.device),
            self._parameter(np.full(worlds, liquid.density), real),
            self._parameter(np.full(worlds, liquid.bulk_modulus), real),
            self._parameter(np.full(worlds, liquid.viscosity), real),
            self._parameter(np.broadcast_to(np.asarray(gravity), (worlds, 3)), vec3),
        )
        self.stepper = Stepper(
            domain,
            worlds=worlds,
            particles=particles,
            device=self.device,
            substeps=self.substeps,
            relaxation_time=relaxation_time,
            wall_reach=wall_reach,
            max_nodes=max_nodes,
        )
        self.timestep = self._parameter(np.full(worlds, step * self.substeps), real)
        self._step = step
        self.parameters = {
            "timestep": self.timestep,
            "density": parameters.density,
            "bulk_modulus": parameters.bulk_modulus,
            "viscosity": parameters.viscosity,
            "gravity": parameters.gravity,
            "wall_size": self.walls.size,
            "wall_stick": self.walls.stick,
        }
        self.state = tuple(Field(name, (worlds, particles), dtype) for name, dtype in FIELDS)
        shapes = (worlds, self.walls.shapes)
        wall_fields = (("wall_position", vec3), ("wall_rotation", quat), ("wall_twist", vec6))
        self.inputs = tuple(Field(name, shapes, dtype) for name, dtype in wall_fields) if self.walls.shapes else ()
        self.outputs = (Field("wrench", (worlds, self.walls.bodies), vec6),)
        self._no_walls = WallMotion(
            *(wp.zeros((worlds, 1), dtype=dtype, device=self.device) for _, dtype in wall_fields)
        )

    def _parameter(self, value: np.ndarray, dtype: Any) -> wp.array:
        return wp.array(value.astype(numpy_real), dtype=dtype, device=self.device, requires_grad=True)

    def start(self, x: ArrayLike, v: ArrayLike | None = None, walls: ArrayLike | None = None) -> dict[str, np.ndarray]:
        """The initial state of liquid at rest pressure zero.

        Args:
            x: (n, 3) or (W, n, 3) m.
            v: The same shape, m/s; default 0.
            walls: Poses (s, 7) or (W, s, 7) at the start, position and (w, x, y, z), to check that no particle is in a
                wall.

        Raises:
            InputError: Particles are outside the domain, in a wall, or too fast for the step.
        """
        shape = (self.worlds, self.particles, 3)
        at = np.asarray(x, dtype=np.float64)
        if at.shape[-2:] != shape[1:]:
            raise InputError(f"this program has {self.particles} particles, x has the shape {at.shape}")
        at = np.broadcast_to(at, shape)
        velocity = np.broadcast_to(np.zeros(3) if v is None else np.asarray(v, dtype=np.float64), shape)
        check_particles(self.domain, at, velocity)
        speed = float(np.linalg.norm(velocity, axis=-1).max())
        check_step_length(self.liquid, self.domain.spacing, self._step, speed)
        if walls is not None:
            poses = np.broadcast_to(np.asarray(walls, dtype=np.float64), (self.worlds, self.walls.shapes, 7))
            check_clear_of_walls(self.walls, poses[..., :3], poses[..., 3:], at)
        return {
            "x": at.astype(numpy_real),
            "v": velocity.astype(numpy_real),
            "rate": np.zeros((*shape, 3), dtype=numpy_real),
            "volume_ratio": np.ones(shape[:2], dtype=numpy_real),
            "slope": np.zeros(shape, dtype=numpy_real),
        }

    def standing(self, steps: int, poses: ArrayLike) -> dict[str, np.ndarray]:
        """Inputs for walls that stand: poses (s, 7), position m and (w, x, y, z)."""
        shape = (steps, self.worlds, self.walls.shapes)
        given = np.broadcast_to(np.asarray(poses, dtype=numpy_real), (*shape, 7))
        return {
            "wall_position": given[..., :3].copy(),
            "wall_rotation": given[..., 3:].copy(),
            "wall_twist": np.zeros((*shape, 6), dtype=numpy_real),
        }

    def make_work(self, arena: Arena) -> list[SubstepWork]:
        """Intermediates of all substeps."""
        return make_substeps(self.stepper, self.walls.shapes, arena)

    def step(
        self,
        state: Arrays,
        inputs: Arrays,
        work: list[SubstepWork],
        next_state: Arrays,
        outputs: Arrays,
        *,
        tape: wp.Tape | None,
    ) -> None:
        """Takes all substeps."""
        outputs.wrench.zero_()
        given = self._no_walls
        if self.inputs:
            given = WallMotion(inputs.wall_position, inputs.wall_rotation, inputs.wall_twist)
        now = ParticleState(*(state[name] for name, _ in FIELDS))
        end = ParticleState(*(next_state[name] for name, _ in FIELDS))
        among = (self.stepper, self._constants, self.walls, given)
        take_substeps(*among, now, work, end, outputs.wrench, self.timestep, tape)

    def explain(self, work: list[SubstepWork], world: int) -> str | None:
        """Why a step of this world failed, if it was for want of room."""
        return explain(self.stepper, work, world)

    def shortage(self, work: list[SubstepWork]) -> Shortage | None:
        """What a step lacked, if nodes."""
        return shortage(self.stepper, work)
