"""`DeformableMatter`: a cloth, a soft body or cables of a scene, stepped implicitly among its bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import warp as wp

from warpsim.core.precision import numpy_real, quat, real, vec3, vec6
from warpsim.deformable import surroundings
from warpsim.deformable.description import SELF_LAW
from warpsim.deformable.joint import JointSolver, RigidSide
from warpsim.deformable.model import DeformableModel, build
from warpsim.deformable.parts import BENDS, FORMS, MATERIAL, parts_of
from warpsim.deformable.report import report_kernel
from warpsim.deformable.step_terms import Around
from warpsim.deformable.stepper import Stepper, StepWork
from warpsim.deformable.surfaces import surfaces_of
from warpsim.deformable.types import SOLVED, STATUS_TEXT
from warpsim.matter.matter import Bodies, CompileContext, Environment, Matter
from warpsim.scene.matters import MatterDescription
from warpsim.tape.active import active_tape
from warpsim.tape.arena import Arena
from warpsim.tape.program import Arrays, Field, SlotValues

_REPORTS = ("energy", "solver_iterations", "solver_status", "solver_error", "tangle")


@dataclass
class DeformableWork:
    """Intermediates of a step.

    Attributes:
        step: Of the solve.
        x, v: (W, n) the solution.
        acceleration: (W, n) of the solution, without gradient; rate: with it.
        position, rotation, velocity, size: (W, shapes) of the shapes that are touched, in the world.
        shape_acceleration, place_acceleration: Jq̈ of shapes and of what springs hold on to; q̈ is held fixed, in
            `felt_acceleration` it is not.
        place, place_velocity: (W, springs) of what springs hold on to.
        target: (W, pins) where pinned vertices are at the end of the step if q̈ is zero; `end` with it.
        hold: (W, pins) where bodies hold them at its start.
    """

    step: StepWork
    x: wp.array
    v: wp.array
    position: wp.array
    rotation: wp.array
    velocity: wp.array
    size: wp.array
    shape_acceleration: wp.array
    felt_acceleration: wp.array
    place: wp.array
    place_velocity: wp.array
    place_acceleration: wp.array
    hold: wp.array
    target: wp.array
    end: wp.array
    acceleration: wp.array
    rate: wp.array


class DeformableMatter(Matter):
    """Implicit steps to convergence, with the adjoint of the converged step.

    Where it meets bodies that can move, both are solved for together; see `joint`.
    """

    meets_bodies = True

    def __init__(self, description: MatterDescription, context: CompileContext) -> None:
        """Lays out elements, matrix and scratch."""
        vectors = dict.fromkeys(("rest", "pin_anchor", "attachment_anchor"), vec3)
        super().__init__(description, context, dtypes=vectors)
        data = description.data
        self._form = data["form"]
        self._model = build(
            parts_of(description),
            worlds=self.worlds,
            device=self.device,
            gradients=False,
            surfaces=surfaces_of(context, data["shapes"]),
            carried=[v for v, b in zip(data["held"].tolist(), data["held_body"], strict=True) if context.body(b) > 0],
        )
        weights = np.broadcast_to(self._model.weights, (self.worlds, len(self._model.weights)))
        self._weights = wp.array(weights.astype(numpy_real), dtype=real, device=self.device)
        self._bind()
        n, w = self._model.count, self.worlds
        self.state = (Field("x", (w, n), vec3), Field("v", (w, n), vec3))  # m, m/s
        self.controls = (Field("force", (w, n), vec3),)  # N
        if len(data["pinned"]):
            self.controls += (Field("pin", (w, len(data["pinned"])), vec3),)  # m, from where pins are at first
        self.outputs = (
            Field("energy", (w, 3), real, differentiable=False),  # J: kinetic, elastic, in gravity
            Field("solver_iterations", (w,), wp.int32, differentiable=False),
            Field("solver_status", (w,), wp.int32, differentiable=False),
            Field("solver_error", (w,), real, differentiable=False),  # m/s²
        )
        if data["self_collision"]:
            # vertices of an edge and of the face that it passes through, or −1
            self.outputs += (Field("tangle", (w, 5), wp.int32, differentiable=False),)
        if data["shapes"]:
            self.outputs += (Field("contact_force", (w, n), vec3),)  # N, on each point during the step
        self.observables = (Field("center", (w, 1), vec3),)  # m: of mass
        self._place_around(context)

    def _bind(self) -> None:
        """The model's arrays as this matter's; the model reads some authored ones directly."""
        m = self._model
        m.physical["mass_damping"] = self.authored["mass_damping"]
        m.authored["rest"] = self.authored["rest"]
        if "folds.angle" in m.authored:
            m.authored["folds.angle"] = self.authored["rest_angle"]
        for name in ("stiffness", "damping"):
            if f"springs.{name}" in m.physical:
                m.physical[f"springs.{name}"] = self.authored[f"attachment_{name}"]
        for name in SELF_LAW:
            if f"self.{name}" in m.physical:
                m.physical[f"self.{name}"] = self.authored[f"self_{name}"]
        for name in ("time_step", "gravity", *(n for n in m.physical if n.startswith("obstacles."))):
            m.physical.pop(name, None)
        made = {**{f"element.{n}": a for n, a in m.authored.items()}, **m.physical, **m.inner}
        names: tuple[str, ...] = ("friction", "attachment_anchor", "pin_anchor")
        read = {name: self.authored[name] for name in names if name in self.authored}
        self.physical = {**made, **read}

    def _place_around(self, context: CompileContext) -> None:
        """Indices of shapes and bodies that it meets."""
        data = self.description.data

        def put(values: Any) -> wp.array:
            return wp.array(np.asarray(values, np.int32), dtype=wp.int32, device=self.device)

        shapes = [context.shape(name) for name in data["shapes"]]
        bodies = [context.body_of_shape(s) for s in shapes]
        self._shape, self._shape_body = put(shapes), put(bodies)
        springs = [context.body(name) for name in data["sprung_body"]]
        self._spring_body = put(springs)
        held = dict(zip(data["held"].tolist(), data["held_body"], strict=True))
        moved = {vertex: k for k, vertex in enumerate(data["pinned"].tolist())}
        pins = self._model.pinned.tolist()
        holders = [context.body(held[v]) if v in held else -1 for v in pins]
        self._pin, self._pin_body = put(pins), put(holders)
        self._pin_control = put([moved.get(v, -1) for v in pins])
        self.joins_bodies = any(b > 0 for b in (*bodies, *springs, *holders))
        self._stepper = Stepper(self._model)

    @property
    def model(self) -> DeformableModel:
        """Its elements."""
        return self._model

    @property
    def stepper(self) -> Stepper:
        """Its steps."""
        return self._stepper

    @property
    def bodies_met(self) -> tuple[wp.array, wp.array, wp.array, wp.array]:
        """Bodies of its shapes and of its springs; pinned vertices, and the bodies that carry them."""
        return self._shape_body, self._spring_body, self._pin, self._pin_body

    @classmethod
    def join(cls, matters: Sequence[Any], model: Any) -> JointSolver:
        """Solves for bodies and deformables together."""
        return JointSolver(matters, model)

    def part(self, first: int, last: int) -> Self:
        """The same matter in some worlds."""
        made = super().part(first, last)
        made._model = self._model.over(first, last)
        made._stepper = Stepper(made._model)
        return made

    def derive(self) -> None:
        """Values of elements and vertices from those of the whole, then masses and shape gradients."""
        m, kind = self._model, FORMS[self._form]
        for name in MATERIAL[self._form]:
            self._spread(name, m.authored[f"{kind}.{name}"])
        for bends in BENDS.get(self._form, ()):
            if f"{bends}.factor" in m.authored:
                self._spread("bending", m.authored[f"{bends}.factor"])
        for name, own in (("stiffness", "contact_stiffness"), ("damping", "contact_damping"), ("radius", "gap")):
            if f"contact.{name}" in m.physical:
                weights = None if name == "radius" else self._weights
                self._spread(own, m.physical[f"contact.{name}"], weights)
        m.derive()

    def _spread(self, name: str, out: wp.array, scale: wp.array | None = None) -> None:
        given = [self.authored[name], self.authored.get(f"{name}_scale", scale)]
        wp.launch(surroundings.spread_kernel, dim=out.shape, inputs=given, outputs=[out], device=self.device)

    def make_work(self, arena: Arena) -> DeformableWork:
        """The solution, the report, and the surroundings of one step."""
        w, m = self.worlds, self._model
        shapes, springs, pins = (max(n, 1) for n in (len(m.obstacles), len(m.sprung), len(m.pinned)))
        sizes = {"x": m.count, "v": m.count, "rate": m.count, "hold": pins, "target": pins, "end": pins}
        sizes |= dict.fromkeys(("place", "place_velocity", "place_acceleration"), springs)
        types = {"position": vec3, "rotation": quat, "velocity": vec6, "size": vec3}
        types |= {"shape_acceleration": vec6, "felt_acceleration": vec6}
        return DeformableWork(
            step=self._stepper.make_work(arena),
            acceleration=arena.array((w, m.count), vec3, differentiable=False),
            **{name: arena.array((w, count), vec3) for name, count in sizes.items()},
            **{name: arena.array((w, shapes), dtype) for name, dtype in types.items()},
        )

    def forces(self, state: Arrays, inputs: Arrays, work: DeformableWork, around: Environment) -> None:
        """The surroundings of the step; where no body is to be solved for with it, the step itself."""
        bodies = around.bodies
        assert bodies is not None
        self._see(inputs, work, around, bodies)
        if not around.joined:
            control = Arrays("control", {"force": inputs.force, "pin": work.target})
            solved = {"x": work.x, "v": work.v}
            self._stepper.solve(self._near(work, around), state, control, work.step, solved, active_tape())

    def _near(self, work: DeformableWork, around: Environment, shape_acceleration: wp.array | None = None) -> Around:
        shapes = (work.position, work.rotation, work.velocity, work.size, self.physical.get("friction"))
        moved = work.shape_acceleration if shape_acceleration is None else shape_acceleration
        accelerations = (moved, work.place_acceleration) if around.joined else ()
        return Around(around.timestep, around.gravity, *shapes, work.place, work.place_velocity, *accelerations)

    def _launch(self, kernel: wp.Kernel, inputs: list, outputs: list) -> None:
        wp.launch(kernel, dim=self.worlds, inputs=inputs, outputs=outputs, device=self.device)

    def _see(self, inputs: Arrays, work: DeformableWork, around: Environment, bodies: Bodies) -> None:
        m, motion = self._model, [bodies.position, bodies.rotation, bodies.velocity]
        if m.obstacles:
            shapes = around.shapes
            given = [self._shape, self._shape_body, shapes.position, shapes.rotation, shapes.size, *motion]
            world = [work.position, work.rotation, work.velocity, work.size]
            self._launch(surroundings.shapes_kernel, given, world)
        if len(m.sprung):
            given = [self._spring_body, self.physical["attachment_anchor"], *motion]
            self._launch(surroundings.springs_kernel, given, [work.place, work.place_velocity])
        if len(m.pinned):
            moves = inputs["pin"] if "pin" in inputs else None
            given = [self._pin_body, self._pin_control, self.physical["pin_anchor"], moves, around.timestep, *motion]
            self._launch(surroundings.pins_kernel, given, [work.hold, work.target])

    def exert(
        self,
        state: Arrays,
        inputs: Arrays,
        work: DeformableWork,
        around: Environment,
        rigid: RigidSide,
        tape: wp.Tape,
    ) -> None:
        """What bodies feel of a step that was solved for together with them, and its adjoint; on the tape."""
        bodies, m = around.bodies, self._model
        assert bodies is not None
        moved = [bodies.position, rigid.acceleration]
        if m.obstacles:
            given = [self._shape_body, work.position, *moved]
            self._launch(surroundings.shape_acceleration_kernel, given, [work.shape_acceleration])
        if len(m.sprung):
            given = [self._spring_body, work.place, *moved]
            self._launch(surroundings.spring_acceleration_kernel, given, [work.place_acceleration])
        if len(m.pinned):
            given = [self._pin_body, work.hold, work.target, around.timestep, *moved]
            self._launch(surroundings.pin_end_kernel, given, [work.end])
        control = Arrays("control", {"force": inputs.force, "pin": work.end})
        solved = {"x": work.x, "v": work.v}
        self._stepper.record(self._near(work, around), state, control, work.step, solved, work.acceleration, tape)
        self._push(state, inputs, work, around, rigid)

    def _push(self, state: Arrays, inputs: Arrays, work: DeformableWork, around: Environment, rigid: RigidSide) -> None:
        p, m, moved = self.physical, self._model, [state.x, state.v, work.acceleration]
        about = [rigid.tree, rigid.origin]
        if m.obstacles:
            self._touch(state, work, around, work.shape_acceleration, work.acceleration, about, [rigid.wrench, None])
        if len(m.sprung):
            given = [m.springs.vertex, self._spring_body, work.place, work.place_velocity, work.place_acceleration]
            given += [p["springs.stiffness"], p["springs.damping"], around.timestep, *moved, m.inertia.node, *about]
            self._launch(surroundings.spring_wrench_kernel, given, [rigid.wrench])
        if len(m.pinned):
            given = [self._pin, self._pin_body, work.step.elastic, p["mass"], p["mass_damping"], around.gravity]
            given += [around.timestep, state.x, state.v, inputs.force, work.hold, work.end, *about]
            self._launch(surroundings.pin_wrench_kernel, given, [rigid.wrench])

    def _touch(
        self,
        state: Arrays,
        work: DeformableWork,
        around: Environment,
        shape_acceleration: wp.array | None,
        acceleration: wp.array,
        about: list[wp.array | None],
        out: list[wp.array | None],
    ) -> None:
        given = [self._stepper.contacts(self._near(work, around, shape_acceleration)), self._shape_body]
        given += [around.timestep, state.x, state.v, acceleration, self._model.inertia.node, *about]
        self._launch(surroundings.contact_kernel, given, out)

    def finish(
        self,
        state: Arrays,
        inputs: Arrays,
        work: DeformableWork,
        around: Environment,
        next_state: Arrays,
        outputs: Arrays,
    ) -> None:
        """The solution becomes the next state; reports of the step."""
        wp.launch(
            surroundings.copy_kernel,
            dim=work.x.shape,
            inputs=[work.x, work.v],
            outputs=[next_state.x, next_state.v],
            device=self.device,
        )
        if any(name in outputs for name in _REPORTS):
            terms = self._stepper.terms(Around(around.timestep, around.gravity))
            wp.launch(
                report_kernel,
                dim=self.worlds,
                inputs=[terms.inertia, terms.elements, terms.pairs, work.step.status, work.step.error, work.x, work.v],
                outputs=[outputs[name] if name in outputs else None for name in _REPORTS],
                device=self.device,
                record_tape=False,
            )
        if "contact_force" in outputs and around.bodies is not None:
            self._show_forces(state, work, around, around.bodies, outputs["contact_force"])

    def _show_forces(
        self, state: Arrays, work: DeformableWork, around: Environment, bodies: Bodies, force: wp.array
    ) -> None:
        """Contact forces on points, as a function of what both sides reach."""
        wp.launch(surroundings.clear_kernel, dim=self.worlds, inputs=[force], device=self.device, record_tape=False)
        wp.launch(
            surroundings.rate_kernel,
            dim=work.x.shape,
            inputs=[around.timestep, state.v, work.v],
            outputs=[work.rate],
            device=self.device,
        )
        felt = self._model.contacts.step  # zero
        if around.joined:
            felt = work.felt_acceleration
            given = [self._shape_body, work.position, bodies.position, bodies.acceleration]
            self._launch(surroundings.shape_acceleration_kernel, given, [felt])
        self._touch(state, work, around, felt, work.rate, [None, None], [None, force])

    def observe(self, state: Arrays, outputs: Arrays) -> None:
        """Center of mass."""
        self._launch(surroundings.center_kernel, [self._model.physical["mass"], state.x], [outputs.center])

    def unsolved(self, work: DeformableWork, values: SlotValues) -> np.ndarray:
        """(slots, W) residuals of steps that did not converge, or ended at a saddle; 0 elsewhere."""
        code, error = values(work.step.status)[..., 1], values(work.step.error)
        residual = np.where(np.isfinite(error) & (error > 0.0), error, np.inf)
        return np.where(np.isin(code, SOLVED), 0.0, residual)

    def explain(self, work: DeformableWork, world: int) -> str | None:
        """What the solver says of the step."""
        iterations, code, _edge, _face = work.step.status.numpy()[world].tolist()
        if code in SOLVED:
            return None
        return f"{self.name}: the solver {STATUS_TEXT[code]} after {iterations} iterations; shorten the time step"
