"""`LiquidMatter`: a liquid of particles in a scene, bounded by its shapes, which feel it.

    pending wrench ▸ rigid step ▸ n particle substeps among walls that move as their bodies did ▸ next pending wrench

The wrench that the liquid exerts in one step acts on the bodies in the next. It is therefore part of the state, and
momentum is conserved to rounding when it is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import warp as wp

from warpsim.core.errors import InputError, SceneError, WarpsimError
from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.matter.matter import CompileContext, Environment, Matter
from warpsim.particles.bounded_adjoint import bound_adjoints
from warpsim.particles.checks import check_clear_of_walls, check_particles, check_step_length, check_volume
from warpsim.particles.domain import Domain
from warpsim.particles.liquid import Liquid
from warpsim.particles.measure import measure_center
from warpsim.particles.parameters import FIELDS, ParticleParameters, ParticleState
from warpsim.particles.placed_walls import keep_wrench, place_walls, wrench_on_bodies
from warpsim.particles.start_walls import start_poses
from warpsim.particles.step import WALL_REACH, Stepper
from warpsim.particles.substeps import SubstepWork, explain, make_substeps, take_substeps
from warpsim.particles.walls import WallMotion, WallSet, WallShape
from warpsim.scene.description import Scene
from warpsim.scene.matters import MatterDescription
from warpsim.tape.arena import Arena
from warpsim.tape.program import Arrays, Field

_ROUNDING = 0.01
"""Share of a particle's width that it may be in a wall when a scene is loaded."""


@dataclass
class LiquidWork:
    """Intermediates of one step: walls at its start, the wrench of all substeps, and the substeps' own."""

    motion: WallMotion
    size: wp.array
    wrench: wp.array
    substeps: list[SubstepWork]


class LiquidMatter(Matter):
    """A liquid in all worlds.

    State: the fields of `ParticleState`, and `wrench`, (W, bodies): torque about the world's origin (N·m) and force (N)
    that acts on each body in the next step. Observable `center`: center of mass, m.
    """

    meets_bodies = True

    def __init__(self, description: MatterDescription, context: CompileContext) -> None:
        """Compiles; raises where particles are outside the domain or in a wall, or the time step is too long."""
        super().__init__(description, context)
        data, scene = description.data, context.scene
        x = np.asarray(description.initial["x"], dtype=np.float64)
        shape = (self.worlds, len(x))
        bodies = len(context.body_names)
        self.state = (
            *(Field(name, shape, dtype) for name, dtype in FIELDS),
            Field("wrench", (self.worlds, bodies), vec6),
        )
        self.observables = (Field("center", (self.worlds, 1), vec3),)
        self._walls, self._shape, self._body = _scene_walls(description, context)
        spacing, substeps = float(data["spacing"]), int(data["substeps"])
        lower, upper = data["domain"]
        domain = Domain.around(lower, upper, spacing)
        self._bound = wp.zeros(1, dtype=real, device=self.device)
        self._volume = wp.full(self.worlds, float(data["volume"]), dtype=real, device=self.device)
        self._stepper = Stepper(
            domain,
            worlds=self.worlds,
            particles=len(x),
            device=self.device,
            substeps=substeps,
            relaxation_time=float(data["relaxation_time"]),
            wall_reach=float(data.get("wall_reach", WALL_REACH)),
            max_nodes=data.get("max_nodes"),
            closed=True,
        )
        try:
            self._check(scene, domain, x)
        except InputError as error:
            raise SceneError(f"{description.path or self.name}: {error}") from error

    def _check(self, scene: Scene, domain: Domain, x: np.ndarray) -> None:
        d = self.description
        v = np.asarray(d.initial["v"], dtype=np.float64)
        liquid = Liquid(*(float(d.parameters[name]) for name in ("density", "bulk_modulus", "viscosity")))
        check_volume(domain, float(d.data["volume"]))
        check_particles(domain, x[None], v[None])
        step = scene.options.timestep / self._stepper.substeps
        check_step_length(liquid, domain.spacing, step, float(np.linalg.norm(v, axis=-1).max()))
        self._check_walls(scene, x)

    def _check_walls(self, scene: Scene, x: np.ndarray) -> None:
        """Raises for particles in walls whose place at the start is known; files round to float32."""
        by_name = {shape.name: shape for shape in scene.shapes}
        shapes = [by_name[name] for name in self.description.data["walls"]]
        known, position, rotation = start_poses(scene, shapes)
        if known:
            chosen = [shapes[i] for i in known]
            walls = WallSet.make([WallShape(s.kind, tuple(s.size)) for s in chosen], 1, self.device)
            names = [shape.name for shape in chosen]
            allowed = _ROUNDING * float(self.description.data["volume"]) ** (1 / 3)
            check_clear_of_walls(walls, position[None], rotation[None], x[None], allowed=allowed, names=names)

    def make_work(self, arena: Arena) -> LiquidWork:
        """Intermediates of one step."""
        walls = (self.worlds, max(1, self._walls.shapes))
        motion = WallMotion(arena.array(walls, vec3), arena.array(walls, quat), arena.array(walls, vec6))
        wrench = arena.array(self.state[-1].shape, vec6, accumulator=True)
        substeps = make_substeps(self._stepper, self._walls.shapes, arena)
        return LiquidWork(motion, arena.array(walls, vec3), wrench, substeps)

    def forces(self, state: Arrays, inputs: Arrays, work: LiquidWork, around: Environment) -> None:
        """What the last step left for the bodies, and where the walls are."""
        bodies = around.bodies
        assert bodies is not None
        wrench_on_bodies(state.wrench, bodies)
        if self._walls.shapes:
            place_walls(self._shape, self._body, around.shapes, bodies, work.motion, work.size)

    def finish(
        self, state: Arrays, inputs: Arrays, work: LiquidWork, around: Environment, next_state: Arrays, outputs: Arrays
    ) -> None:
        """All substeps."""
        p = self.physical
        walls = replace(self._walls, size=work.size, stick=p["stick"])
        parameters = ParticleParameters(self._volume, p["density"], p["bulk_modulus"], p["viscosity"], around.gravity)
        now, end = (ParticleState(*(s[name] for name, _ in FIELDS)) for s in (state, next_state))
        among = (self._stepper, parameters, walls, work.motion)
        take_substeps(*among, now, work.substeps, end, work.wrench, around.timestep, around.tape)
        keep_wrench(work.wrench, next_state.wrench)
        bound_adjoints(self._bound, end, around.tape)

    def observe(self, state: Arrays, outputs: Arrays) -> None:
        """The center of mass."""
        if "center" in outputs:
            measure_center(state.x, outputs.center)

    def bound_adjoints(self, bound: float) -> bool:
        """Bounds the adjoint of each particle, by the norm of each field's; 0: exact."""
        self._bound.fill_(bound)
        return True

    def explain(self, work: LiquidWork, world: int) -> str | None:
        """Lost particles, crowds of walls, too few nodes."""
        reason = explain(self._stepper, work.substeps, world)
        return None if reason is None else f"{self.description.path or self.name}: {reason}"

    def part(self, first: int, last: int) -> Self:
        """Some of the worlds."""
        made = super().part(first, last)
        made._stepper = self._stepper.part(first, last)
        made._volume = self._volume[first:last]
        return made


def _scene_walls(description: MatterDescription, context: CompileContext) -> tuple[WallSet, wp.array, wp.array]:
    """The walls; of each, which shape of the scene it is, and whose."""
    names = [shape.name for shape in context.scene.shapes]
    chosen = [names.index(name) for name in description.data["walls"]]
    shapes = [context.scene.shapes[i] for i in chosen]
    try:
        walls = [WallShape(s.kind, tuple(s.size), context.body(s.body or "")) for s in shapes]
    except WarpsimError as error:
        raise SceneError(f"{description.path or description.name}: {error}") from error
    made = replace(WallSet.make(walls, context.worlds, context.device), bodies=len(context.body_names))
    body = np.array([wall.body for wall in walls], dtype=np.int32)

    def put(values: Any) -> wp.array:
        return wp.array(np.asarray(values, dtype=np.int32), dtype=wp.int32, device=context.device)

    return made, put(chosen), put(body)
