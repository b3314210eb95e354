"""`Stepper`: launches of the implicit step and of its adjoint, with the scratch that all steps of a matter share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import warp as wp

from warpsim.core.precision import real, vec3
from warpsim.deformable.adjoint import AdjointScratch, StepAdjoint
from warpsim.deformable.contact import Contacts
from warpsim.deformable.corners import PARAMETERS, make_corners
from warpsim.deformable.description import SELF_LAW
from warpsim.deformable.matrix import make_factor
from warpsim.deformable.model import DeformableModel
from warpsim.deformable.newton import NewtonVectors, newton_kernel
from warpsim.deformable.step_terms import Around, Terms
from warpsim.tape.arena import Arena

_OF_SHAPES = ("position", "rotation", "velocity", "size", "friction", "acceleration")
_OF_SAMPLES = ("stiffness", "damping", "radius")
"""Members of `Contacts` that may carry gradients."""


@dataclass
class StepWork:
    """What a slot keeps of a step beside its states: the solver's report, and the elastic force on pinned vertices.

    Attributes:
        status: (W, 4) iterations and code, see `types.STATUS_TEXT`; an edge and the face it passes through, or −1.
        error: (W,) residual, m/s².
        elastic: (W, pins) ∇Ψ, N.
    """

    status: wp.array
    error: wp.array
    elastic: wp.array


class Stepper:
    """Implicit steps of one matter."""

    def __init__(self, model: DeformableModel) -> None:
        """Makes the scratch, which a capture would not fill."""
        self._model = model
        self.vectors = NewtonVectors()
        for name in ("acceleration", "end", "gradient", "step"):
            setattr(self.vectors, name, self._room())
        self.factor = make_factor(model.pattern, model.points, model.worlds, model.device)
        self._inertia, self._elements = model.inertia, model.elements
        self._contacts, self._springs, self._pairs = model.contacts, model.springs, model.self_contacts
        self._adjoint = StepAdjoint(model, self._adjoint_scratch(), self.factor)

    def _room(self) -> wp.array:
        return wp.zeros((self._model.worlds, self._model.count), dtype=vec3, device=self._model.device)

    def _adjoint_scratch(self) -> AdjointScratch:
        m, kinds = self._model, tuple(PARAMETERS)
        corners = {
            kind: make_corners(m.index[kind].numpy(), m.count, m.worlds, m.device) for kind in kinds if kind in m.index
        }
        vectors = ("multiplier", "by_end", "by_start", "gradient", "acceleration")
        return AdjointScratch(
            corners=corners,
            work=wp.zeros(m.worlds, dtype=real, device=m.device),
            seed=wp.zeros((3, m.worlds), dtype=real, device=m.device),
            **{name: self._room() for name in vectors},
        )

    def make_work(self, arena: Arena) -> StepWork:
        """What a slot keeps."""
        worlds = self._model.worlds
        return StepWork(
            arena.array((worlds, 4), wp.int32, differentiable=False),
            arena.array((worlds,), real, differentiable=False),
            arena.array((worlds, max(len(self._model.pinned), 1)), vec3),
        )

    @property
    def multiplier(self) -> wp.array:
        """(W, n) λ of the last adjoint."""
        return self._adjoint.multiplier

    def structs(self, time_step: wp.array, gravity: wp.array) -> tuple[Any, Any, Any, Any, Any]:
        """Masses, elements, contacts, springs and self-contact, without what is around them in a step."""
        own = (self._inertia, self._contacts, self._springs, self._pairs)
        inertia, contacts, springs, pairs = (_copied(s) for s in own)
        inertia.time_step, inertia.gravity = time_step, gravity
        if pairs.count:
            for name in SELF_LAW:
                setattr(pairs, name, self._model.physical[f"self.{name}"])
        return inertia, self._elements, contacts, springs, pairs

    def contacts(self, around: Around) -> Contacts:
        """Contacts of a step in its surroundings; arrays that carry gradients are set here, once they have them."""
        made = _copied(self._contacts)
        if made.count:
            for name in _OF_SHAPES:
                given = getattr(around, name)
                if given is not None:
                    setattr(made, name, given)
            for name in _OF_SAMPLES:
                setattr(made, name, self._model.physical[f"contact.{name}"])
        return made

    def terms(self, around: Around) -> Terms:
        """The objective of a step in its surroundings."""
        inertia, elements, _, springs, pairs = self.structs(around.time_step, around.gravity)
        contacts = self.contacts(around)
        contact_arrays: tuple[wp.array, ...] = ()
        spring_arrays: tuple[wp.array, ...] = ()
        if contacts.count:
            contact_arrays = tuple(getattr(contacts, name) for name in (*_OF_SHAPES, *_OF_SAMPLES))
        if springs.count:
            springs.place, springs.velocity = around.place, around.place_velocity
            if around.place_acceleration is not None:
                springs.acceleration = around.place_acceleration
            own = [self._model.physical[f"springs.{name}"] for name in ("stiffness", "damping")]
            spring_arrays = (springs.place, springs.velocity, springs.acceleration, *own)
        return Terms(
            inertia,
            elements,
            contacts,
            springs,
            pairs,
            around.time_step,
            around.gravity,
            contact_arrays,
            spring_arrays,
            tuple(getattr(pairs, name) for name in SELF_LAW) if pairs.count else (),
        )

    def solve(
        self,
        around: Around,
        state: Mapping[str, wp.array],
        control: Mapping[str, wp.array],
        work: StepWork,
        next_state: Mapping[str, wp.array],
        tape: wp.Tape | None,
    ) -> Terms:
        """One implicit step; on the tape, with its adjoint.

        Args:
            around: Surroundings; what carries gradients there receives them.
            state: x and v.
            control: force (W, n) N and pin (W, pins) m, places at the end of the step.
            work: To be written.
            next_state: x and v, to be written.
            tape: None without derivatives.
        """
        m, terms = self._model, self.terms(around)
        wp.launch(
            newton_kernel,
            dim=m.worlds,
            inputs=[terms.inertia, terms.elements, terms.contacts, terms.springs, terms.pairs]
            + [self.factor, self.vectors]
            + [m.tolerance, m.maximum_iterations, state["x"], state["v"], control["force"], control["pin"]],
            outputs=[work.status, work.error, next_state["x"], next_state["v"], work.elastic],
            device=m.device,
            record_tape=False,
        )
        if tape is not None:
            arrays = _with_gradients(terms, state, control, next_state, work)
            tape.record_func(lambda: self._adjoint.run(terms, state, control, next_state, work.elastic), arrays=arrays)
        return terms

    def record(
        self,
        around: Around,
        state: Mapping[str, wp.array],
        control: Mapping[str, wp.array],
        work: StepWork,
        next_state: Mapping[str, wp.array],
        acceleration: wp.array,
        tape: wp.Tape,
    ) -> None:
        """The adjoint of a step that was solved for together with bodies, whose own adjoint runs before.

        Args:
            around: Surroundings, with the accelerations of what bodies carry.
            state: x and v.
            control: force and pin.
            work: As the solve has left it.
            next_state: x and v, likewise.
            acceleration: (W, n) m/s², without gradient.
            tape: Where it goes.
        """
        terms = self.terms(around)
        arrays = _with_gradients(terms, state, control, next_state, work)

        def adjoint() -> None:
            self._adjoint.run_with(terms, state, control, next_state, work.elastic, acceleration)

        tape.record_func(adjoint, arrays=arrays)


def _with_gradients(
    terms: Terms,
    state: Mapping[str, wp.array],
    control: Mapping[str, wp.array],
    next_state: Mapping[str, wp.array],
    work: StepWork,
) -> list[wp.array]:
    """Arrays that a step's adjoint reads or adds to."""
    read = (*state.values(), *control.values(), *terms.contact_arrays, *terms.spring_arrays, *terms.pair_arrays)
    return [a for a in (*read, *next_state.values(), work.elastic) if a.grad is not None]


def _copied(struct: Any) -> Any:
    """A struct of its own with the same members: those of two steps are in use at a time."""
    made = struct._cls()
    for name in struct._cls.vars:
        setattr(made, name, getattr(struct, name))
    return made
