"""`CoupledProgram`: rigid bodies and other matters in one step of the checkpointed tape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from warpsim.core.errors import SceneError, unknown_name
from warpsim.core.stages import run_stage
from warpsim.coupling.bodies import (
    BodyWork,
    make_body_work,
    observe_accelerations,
    observe_bodies,
    sum_wrenches,
)
from warpsim.coupling.fields import own_arrays, scene_fields, scene_name
from warpsim.matter.matter import Environment, Matter, Shapes
from warpsim.rigid.model.fields import control_fields, observable_fields, output_fields
from warpsim.rigid.model.model import Model
from warpsim.rigid.step.observe import Observation, make_observation, observe
from warpsim.rigid.step.program import RigidProgram, StepWork, world_range
from warpsim.rigid.step.step import Partner
from warpsim.rigid.work.state import Work
from warpsim.tape.arena import Arena
from warpsim.tape.program import Arrays, Field, Shortage, SlotValues

NO_ARRAYS = Arrays("output", {})


@dataclass
class CoupledWork:
    """Intermediates of one step."""

    rigid: StepWork | None  # None where no body moves
    still: Observation | None  # where no body moves and some are to be shown
    bodies: BodyWork | None  # None where no matter meets bodies
    matters: dict[str, Any]
    joint: Any  # of what is solved for together with the bodies


class CoupledProgram:
    """Steps of a scene with other matters than rigid bodies.

    Attributes: as in `Program`; fields of a matter are called "matter.field".
    """

    def __init__(
        self,
        model: Model,
        matters: Sequence[Matter],
        *,
        controls: Sequence[str],
        outputs: Sequence[str] = (),
        rigid: RigidProgram | None = None,
        held: Mapping[str, wp.array] | None = None,
    ) -> None:
        """Chooses which controls a rollout varies and what it reports.

        Args:
            model: The rigid bodies; its derived parameters must have been filled.
            matters: The others, likewise.
            controls: Those of the model and of matters that become per-step inputs.
            outputs: Those that become per-step outputs.
            rigid: Of the model, for a part of a program's worlds; made if not given.
            held: Controls of matters that are not inputs, likewise.
        """
        self.model, self.matters = model, tuple(matters)
        self.device, self.worlds = model.device, model.worlds
        known = {f.name: f for m in self.matters for f in scene_fields(m, m.controls)}
        reported = {f.name: f for m in self.matters for f in scene_fields(m, (*m.outputs, *m.observables))}
        rigid_controls = control_fields(model) if model.nv else {}
        rigid_outputs = output_fields(model) if model.nv else observable_fields(model)
        for kind, names, all_known in (
            ("control", controls, {**rigid_controls, **known}),
            ("output", outputs, {**rigid_outputs, **reported}),
        ):
            for name in names:
                if name not in all_known:
                    raise unknown_name(kind, name, all_known)
        self.rigid = rigid
        if rigid is None and model.nv:
            self.rigid = RigidProgram(
                model,
                controls=[name for name in controls if name in rigid_controls],
                outputs=[name for name in outputs if name in rigid_outputs],
            )
        own = [f for m in self.matters for f in scene_fields(m, m.state)]
        self.state: tuple[Field, ...] = (*(() if self.rigid is None else self.rigid.state), *own)
        self.inputs = tuple(known[n] if n in known else rigid_controls[n] for n in controls)
        self.outputs = tuple(reported[n] if n in reported else rigid_outputs[n] for n in outputs)
        physical = {scene_name(m, name): a for m in self.matters for name, a in m.physical.items()}
        self.parameters: Mapping[str, wp.array] = {**model.physical, **physical}
        unused = [f for name, f in known.items() if name not in controls]
        self._held = dict(held) if held is not None else _zeros(unused, self.device)
        self._still = () if model.nv else tuple(name for name in outputs if name in rigid_outputs)
        self._meeting = [m.name for m in self.matters if m.meets_bodies]
        joining = [m for m in self.matters if m.joins_bodies and self.rigid is not None]
        self._joining = [m.name for m in joining]
        self._joint = type(joining[0]).join(joining, model) if joining else None
        if joining:
            _check_integrator(model, joining)

    def make_work(self, arena: Arena) -> CoupledWork:
        """Intermediates of one step."""
        return CoupledWork(
            rigid=None if self.rigid is None else self.rigid.make_work(arena),
            still=make_observation(self.model, arena, self._still) if self._still else None,
            bodies=make_body_work(self.model, arena, len(self._meeting)) if self._meeting else None,
            matters={m.name: m.make_work(arena) for m in self.matters},
            joint=None if self._joint is None else self._joint.make_work(arena),
        )

    def step(
        self,
        state: Arrays,
        inputs: Arrays,
        work: CoupledWork,
        next_state: Arrays,
        outputs: Arrays,
        *,
        tape: wp.Tape | None,
    ) -> None:
        """One time step of everything, and the outputs of the state it reaches."""
        rigid, space = self.rigid, work.rigid

        def bodies(given: Arrays, partner: Partner | None) -> Work | None:
            if rigid is not None and space is not None:
                rigid.step(state, given, space, next_state, outputs, tape=tape, partner=partner)
            if work.still is not None:
                observe(self.model, no_motion(self.model), work.still, outputs, self._still)
            return None if space is None else space.first

        self.around(state, inputs, work, next_state, bodies, outputs, tape)

    def around(
        self,
        state: Arrays,
        inputs: Arrays,
        work: CoupledWork,
        next_state: Arrays,
        bodies: Callable[[Arrays, Partner | None], Work | None],
        outputs: Arrays = NO_ARRAYS,
        tape: wp.Tape | None = None,
    ) -> None:
        """What matters do before and after a step of the bodies.

        `bodies` takes it under the given controls, with what is solved for together with them, and returns its work.
        """
        controls = {**self._held, **inputs}
        if work.bodies is not None:
            observe_bodies(self.model, state if self.model.nv else no_motion(self.model), work.bodies)
        around = {m.name: self._around(m, work, tape) for m in self.matters}
        for matter in self.matters:
            own = own_arrays(matter, "state", matter.state, state)
            told = own_arrays(matter, "controls", matter.controls, controls)
            space, env = work.matters[matter.name], around[matter.name]

            def forces(m: Matter = matter, s: Arrays = own, u: Arrays = told, w: Any = space, e: Any = env) -> None:
                m.forces(s, u, w, e)

            run_stage(scene_name(matter, "forces"), forces)
        partner = None
        if self._joint is not None:
            partner = self._joint.partner(self._joined(state, controls, work, around), work.joint)
        done = bodies(Arrays("input", {**inputs, **self._wrench(inputs, work)}), partner)
        if done is not None and work.bodies is not None and self._shows_forces(outputs):
            observe_accelerations(self.model, done, work.bodies)
        for matter in self.matters:
            self._finish(matter, state, controls, work, around[matter.name], next_state, outputs)

    def _joined(
        self, state: Arrays, controls: Mapping[str, wp.array], work: CoupledWork, around: Mapping[str, Environment]
    ) -> list[tuple[Arrays, Arrays, Any, Environment]]:
        """State, controls, intermediates and surroundings of each matter that joins the bodies."""
        return [
            (
                own_arrays(m, "state", m.state, state),
                own_arrays(m, "controls", m.controls, controls),
                work.matters[m.name],
                around[m.name],
            )
            for m in self.matters
            if m.name in self._joining
        ]

    def _finish(
        self,
        matter: Matter,
        state: Arrays,
        controls: Mapping[str, wp.array],
        work: CoupledWork,
        around: Environment,
        next_state: Arrays,
        outputs: Arrays,
    ) -> None:
        """A matter's own step, and what it shows of the state it reaches."""
        own, after = (own_arrays(matter, "state", matter.state, s) for s in (state, next_state))
        told = own_arrays(matter, "controls", matter.controls, controls)
        reported = own_arrays(matter, "outputs", matter.outputs, outputs)
        shown = own_arrays(matter, "outputs", matter.observables, outputs)
        space = work.matters[matter.name]
        run_stage(scene_name(matter, "finish"), lambda: matter.finish(own, told, space, around, after, reported))
        if shown:
            run_stage(scene_name(matter, "observe"), lambda: matter.observe(after, shown))

    def _shows_forces(self, outputs: Arrays) -> bool:
        """Whether what a matter that joins the bodies reports depends on their accelerations."""
        return any(f"{name}.contact_force" in outputs for name in self._joining)

    def _around(self, matter: Matter, work: CoupledWork, tape: wp.Tape | None) -> Environment:
        world, bodies, shape = self.model.world, None, self.model.shape
        if work.bodies is not None and matter.name in self._meeting:
            bodies = work.bodies.seen_by(self._meeting.index(matter.name))
        shapes = Shapes(shape.position, shape.rotation, shape.size)
        return Environment(world.timestep, world.gravity, bodies, shapes, tape, matter.name in self._joining)

    def _wrench(self, inputs: Arrays, work: CoupledWork) -> dict[str, wp.array]:
        """The control's wrench with those of matters added, where any exert one."""
        if work.bodies is None or self.rigid is None:
            return {}
        given = inputs["wrench"] if "wrench" in inputs else self.rigid.constants["wrench"]
        sum_wrenches(given, work.bodies.wrenches, work.bodies.sums)
        return {"wrench": work.bodies.sums[-1]}

    def explain(self, work: CoupledWork, world: int) -> str | None:
        """Why a step gave numbers that are not finite, where one of them knows."""
        if self.rigid is not None and work.rigid is not None:
            reason = self.rigid.explain(work.rigid, world)
            if reason is not None:
                return reason
        reasons = (m.explain(work.matters[m.name], world) for m in self.matters)
        return next((reason for reason in reasons if reason is not None), None)

    def shortage(self, work: CoupledWork) -> Shortage | None:
        """Places for contacts that a recorded step lacked."""
        return None if self.rigid is None or work.rigid is None else self.rigid.shortage(work.rigid)

    def unsolved(self, work: CoupledWork, values: SlotValues) -> np.ndarray | None:
        """The largest residuals of solves that did not converge, the bodies' and the matters'."""
        found = [] if self.rigid is None or work.rigid is None else [self.rigid.unsolved(work.rigid, values)]
        found += [m.unsolved(work.matters[m.name], values) for m in self.matters]
        there = [residuals for residuals in found if residuals is not None]
        return np.maximum.reduce(there) if there else None

    def split(self, groups: int) -> list[CoupledProgram]:
        """Programs over contiguous ranges of worlds, sharing this one's parameters."""
        edges = np.linspace(0, self.worlds, groups + 1).astype(int).tolist()
        rigid = [None] * groups if self.rigid is None else self.rigid.split(groups)
        return [
            CoupledProgram(
                world_range(self.model, first, last) if part is None else part.model,
                [m.part(first, last) for m in self.matters],
                controls=[f.name for f in self.inputs],
                outputs=[f.name for f in self.outputs],
                rigid=part,
                held={name: array[first:last] for name, array in self._held.items()},
            )
            for first, last, part in zip(edges[:-1], edges[1:], rigid, strict=True)
        ]


def _check_integrator(model: Model, matters: Sequence[Matter]) -> None:
    """Raises where bodies cannot be solved for together with matters."""
    names = ", ".join(m.name for m in matters)
    if model.options.integrator == "rk4":
        raise SceneError(f'integrator "rk4" cannot solve for bodies together with {names}; use "euler"')
    if model.has_impacts:
        raise SceneError(f"impacts=True cannot solve for bodies together with {names}; leave it out")


def no_motion(model: Model) -> Arrays:
    """The state of bodies none of which can move."""
    return Arrays("state", dict.fromkeys(("q", "qd"), model.zero_dofs))


def _zeros(fields: Sequence[Field], device: wp.Device) -> dict[str, wp.array]:
    return {f.name: wp.zeros(f.shape, dtype=f.dtype, device=device) for f in fields}
