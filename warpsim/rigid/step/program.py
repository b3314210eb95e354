"""Rigid-body simulation as a `Program` for the checkpointed tape: named states and inputs around `rigid.step.step`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import warp as wp

from warpsim.collision.contacts import Contacts
from warpsim.core.errors import InputError, unknown_name
from warpsim.rigid.constraint.contact_output import contact_forces
from warpsim.rigid.constraint.contact_points import contact_points
from warpsim.rigid.constraint.report import report, unsolved
from warpsim.rigid.constraint.stage import constraint_forces
from warpsim.rigid.constraint.violation import constraint_error
from warpsim.rigid.model.fields import contact_point_fields, control_fields, observable_fields, output_fields
from warpsim.rigid.model.model import GROUPS, Model
from warpsim.rigid.sensors.layout import sensor_layout
from warpsim.rigid.sensors.loads import Touches
from warpsim.rigid.sensors.measure import SensorWork, make_sensor_work, measure
from warpsim.rigid.step import step
from warpsim.rigid.step.impact_step import impact_step
from warpsim.rigid.step.impact_work import ImpactWork, make_impact_scratch, make_impact_work
from warpsim.rigid.step.modes import decisions_into, zones_into
from warpsim.rigid.step.observe import Observation, make_observation, observe
from warpsim.rigid.step.step import Partner
from warpsim.rigid.work.state import (
    RungeKuttaWork,
    Work,
    make_runge_kutta_work,
    make_scratch,
    make_work,
    state_fields,
)
from warpsim.tape.arena import Arena
from warpsim.tape.program import Arrays, Shortage, SlotValues


@dataclass
class StepWork:
    """Intermediates of one step, and of the observation of the state it reaches (None if nothing is observed)."""

    step: Work | RungeKuttaWork | ImpactWork
    observation: Observation | None
    sensor: SensorWork | None

    @property
    def first(self) -> Work:
        """The evaluation at the step's start."""
        work = self.step.free if isinstance(self.step, ImpactWork) else self.step
        return work.evaluations[0] if isinstance(work, RungeKuttaWork) else work

    @property
    def solves(self) -> list[Work]:
        """The evaluations in which the contact solver runs, in their order."""
        work = self.step.free if isinstance(self.step, ImpactWork) else self.step
        solves = [*work.evaluations] if isinstance(work, RungeKuttaWork) else [work]
        if isinstance(self.step, ImpactWork):
            solves += [*(impulse.work for impulse in self.step.impulses), self.step.rest]
        return solves

    @property
    def searches(self) -> list[Contacts]:
        """Contacts of every search, in their order, with those that the adjoint alone sees."""
        solves = self.solves
        if isinstance(self.step, ImpactWork):  # what touches at the end is found before the impulses
            after = len(self.step.impulses) + 1
            solves = [*solves[:-after], self.step.touch, *solves[-after:]]
        found = []
        for work in solves:
            found += [work.glue.contacts] if work.glue is not None else []
            if work.constraint is not None:
                found += [work.constraint.contacts, work.constraint.soft_contacts]
        return found


class RigidProgram:
    """Steps of a model; controls that are not per-step inputs are held constant.

    Attributes:
        constants: Arrays of the held controls, (W, …): zero, and the parameters "drive.target" and
            "drive.target_velocity".
    """

    def __init__(
        self,
        model: Model,
        *,
        controls: Sequence[str],
        outputs: Sequence[str] = (),
        constants: Mapping[str, wp.array] | None = None,
    ):
        """Chooses which controls a rollout varies and what it reports.

        Args:
            model: What is stepped; its derived parameters must have been filled.
            controls: Names from `control_fields` that become per-step inputs.
            outputs: Names from `output_fields` that become per-step outputs.
            constants: Arrays for the controls that are not inputs; allocated when not given.
        """
        fields, reported = control_fields(model), output_fields(model)
        for kind, names, known in (("control", controls, fields), ("output", outputs, reported)):
            for name in names:
                if name not in known:
                    raise unknown_name(kind, name, known)
        for name in controls:
            if fields[name].nbytes == 0:
                raise InputError(f"the scene has nothing that control {name!r} could drive; leave it out")
        self.model = model
        self.device = model.device
        self.worlds = model.worlds
        self.state = state_fields(model)
        self.inputs = tuple(fields[name] for name in controls)
        self.outputs = tuple(reported[name] for name in outputs)
        self.parameters: Mapping[str, wp.array] = model.physical
        self.constants = dict(constants) if constants is not None else held_controls(model, controls)
        self.scratch = make_scratch(model)
        self._impact = make_impact_scratch(model, self.scratch) if model.has_impacts else None
        self._sensors = sensor_layout(model) if "sensors" in outputs else None
        observables = observable_fields(model)
        self._observed = tuple(name for name in outputs if name in observables)

    def make_work(self, arena: Arena) -> StepWork:
        """Intermediates of one step."""
        make: Callable[[Model, Arena], Work | RungeKuttaWork | ImpactWork] = make_work
        if self.model.has_impacts:
            make = make_impact_work
        elif self.model.options.integrator == "rk4":
            make = make_runge_kutta_work
        observation = make_observation(self.model, arena, self._observed) if self._observed else None
        sensor = make_sensor_work(self.model, self._sensors, arena) if self._sensors is not None else None
        return StepWork(make(self.model, arena), observation, sensor)

    def step(
        self,
        state: Arrays,
        inputs: Arrays,
        work: StepWork,
        next_state: Arrays,
        outputs: Arrays,
        *,
        tape: wp.Tape | None,
        partner: Partner | None = None,
    ) -> None:
        """One time step by the model's integrator, and the outputs of the state it reaches.

        With a partner, bodies are solved for together with it.
        """
        control = Arrays("control", {**self.constants, **inputs})
        mode = outputs.mode if "mode" in outputs else None
        with zones_into(self.model, self.scratch.constraint, mode):
            self._integrate(state, control, work, next_state, tape, partner)
        if work.observation is not None:
            observe(self.model, next_state, work.observation, outputs, self._observed)
        first = work.first
        if "saturated" in outputs:
            _report(first.saturated, outputs.saturated)
        if "contact_force" in outputs:
            self._contact_force(state, first, outputs.contact_force, tape)
        self._contact_points(state, first, outputs, tape)
        if self._sensors is not None and work.sensor is not None:
            if self._sensors.has_contact:
                self._contact_force(state, first, work.sensor.shape_force, tape)
            touches = self._touches(state, first, tape) if self._sensors.has_touches else None
            measure(self.model, self._sensors, state, control, first, touches, work.sensor, outputs.sensors)
        if "constraint_error" in outputs:
            constraint_error(self.model, state, first, self.scratch.constraint, outputs.constraint_error)
        solves = [s.constraint for s in work.solves if s.constraint is not None]
        report(self.model, solves, outputs)
        if mode is not None:
            impact = work.step if isinstance(work.step, ImpactWork) else None
            decisions_into(self.model, first, solves, impact, mode)

    def _integrate(
        self,
        state: Arrays,
        control: Arrays,
        work: StepWork,
        next_state: Arrays,
        tape: wp.Tape | None,
        partner: Partner | None,
    ) -> None:
        """The next state, by the model's integrator."""
        if isinstance(work.step, ImpactWork):
            assert self._impact is not None
            impact_step(self.model, state, control, work.step, self.scratch, self._impact, next_state, tape)
        elif isinstance(work.step, RungeKuttaWork):
            step.runge_kutta(self.model, state, control, work.step, self.scratch, next_state, tape)
        else:
            step.euler(self.model, state, control, work.step, self.scratch, next_state, tape, partner)

    def _contact_force(self, state: Arrays, work: Work, out: wp.array, tape: wp.Tape | None) -> None:
        c, space = work.constraint, self.scratch.constraint
        if c is None or space is None or not self.model.max_contacts:
            out.zero_()
            return
        if tape is None:  # the forces at the solution are otherwise known already
            constraint_forces(self.model, state, work, c, space)
        contact_forces(self.model, c, space, out, softened=tape is not None)

    def _touches(self, state: Arrays, work: Work, tape: wp.Tape | None) -> Touches:
        """The step's contacts and their forces, none where nothing can touch."""
        c, space, touches = work.constraint, self.scratch.constraint, Touches()
        if c is None or space is None or not self.model.max_contacts:
            touches.count = wp.zeros(self.worlds, dtype=wp.int32, device=self.device)
            return touches
        if tape is None:
            constraint_forces(self.model, state, work, c, space)
        x = c.soft_contacts if tape is not None else c.contacts
        touches.pair_shapes, touches.force = space.contact_settings.pair_shapes, c.contact_force
        touches.count, touches.pair, touches.distance = x.count, x.pair, x.distance
        touches.point, touches.frame = x.point, x.frame
        return touches

    def _contact_points(self, state: Arrays, work: Work, outputs: Arrays, tape: wp.Tape | None) -> None:
        names = [field.name for field in contact_point_fields(self.model)]
        c, space = work.constraint, self.scratch.constraint
        wanted = [outputs[name] if name in outputs else None for name in names]
        if not any(name in outputs for name in names):
            return
        if c is None or space is None or not self.model.max_contacts:
            for array in wanted:
                if array is not None:
                    array.zero_()
            return
        if tape is None and "contact_force" not in outputs:
            constraint_forces(self.model, state, work, c, space)
        contact_points(self.model, c, space, *wanted, softened=tape is not None)

    def explain(self, work: StepWork, world: int) -> str | None:
        """Why a step gave numbers that are not finite, where the program knows better than the numbers tell."""
        needed = next((int(n[world]) for c in work.searches if (n := c.count.numpy())[world] > self._places), None)
        if needed is None:
            return None
        text = f"{needed} contacts but only {self._places} places: "
        if self.model.options.max_contacts is None:
            return f"{text}set Options.max_contacts to {needed} or more"
        return (
            f"{text}max_contacts is set to that (max_contacts=, --max-contacts, warpsim:maxContacts on the "
            f"PhysicsScene); set it to {needed} or more, or leave it out and there will be as many as are needed"
        )

    def shortage(self, work: StepWork) -> Shortage | None:
        """Places for contacts that a recorded step lacked, in the first search that found more than there are."""
        for c in work.searches:  # what later ones found followed from numbers that are not finite
            needed = c.count.numpy()
            if needed.max() > self._places:
                return Shortage(int(needed.argmax()), int(needed.max()), self._places)
        return None

    @property
    def _places(self) -> int:
        return self.model.max_contacts

    def unsolved(self, work: StepWork, values: SlotValues) -> np.ndarray | None:
        """(slots, W) residuals where the constraint solver did not converge, else 0; None: it did everywhere."""
        solves = [s.constraint for s in work.solves if s.constraint is not None]
        return unsolved([(values(c.status), values(c.error)) for c in solves])

    def split(self, groups: int) -> list[RigidProgram]:
        """Programs over contiguous ranges of worlds, sharing this one's parameter arrays."""
        edges = np.linspace(0, self.worlds, groups + 1).astype(int)
        names = [f.name for f in self.inputs]
        parts = []
        for first, last in zip(edges[:-1], edges[1:], strict=True):
            constants = {name: _worlds(array, first, last) for name, array in self.constants.items()}
            part = world_range(self.model, int(first), int(last))
            outputs = [f.name for f in self.outputs]
            parts.append(RigidProgram(part, controls=names, outputs=outputs, constants=constants))
        return parts


@wp.kernel(enable_backward=False)
def _report_kernel(value: wp.array2d(dtype=wp.int32), out: wp.array2d(dtype=wp.int32)):
    w, i = wp.tid()
    out[w, i] = value[w, i]


def _report(value: wp.array, out: wp.array) -> None:
    """Copies an integer report of the step (W, n) to an output."""
    wp.launch(_report_kernel, dim=out.shape, inputs=[value], outputs=[out], device=out.device, record_tape=False)


def held_controls(model: Model, varied: Sequence[str] = ()) -> dict[str, wp.array]:
    """Arrays of the controls that are not varied, (W, …) each: the drives' target parameters, zero for the others."""
    targets = {"drive_target": model.drive.target, "drive_velocity": model.drive.target_velocity}
    return {
        name: targets[name] if name in targets else wp.zeros(f.shape, dtype=f.dtype, device=model.device)
        for name, f in control_fields(model).items()
        if name not in varied
    }


def _worlds(array: wp.array, first: int, last: int) -> wp.array:
    """View of worlds first … last − 1; Warp cannot slice an array without entries, but has nothing to share then."""
    if array.size:
        return array[first:last]
    return wp.zeros((last - first, *array.shape[1:]), dtype=array.dtype, device=array.device)


def world_range(model: Model, first: int, last: int) -> Model:
    """The model of worlds first … last − 1, with views of the same parameters (and of their gradients)."""
    groups = {}
    for group in GROUPS:
        struct = getattr(model, group)
        part = struct._cls()
        for name in struct._cls.vars:
            setattr(part, name, _worlds(getattr(struct, name), first, last))
        groups[group] = part
    return replace(
        model,
        worlds=last - first,
        joint_force_range=_worlds(model.joint_force_range, first, last),
        authored={name: _worlds(array, first, last) for name, array in model.authored.items()},
        range_rays=None if model.range_rays is None else model.range_rays.over(last - first),
        **groups,
    )
