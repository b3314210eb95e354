"""Adjoint of the implicit step, from the two states alone: one solve with the unshifted Hessian at x⁺.

    Hλ = h²x̄⁺ + hv̄⁺,     θ̄ = −∂_θ(λᵀr),     a = (v⁺ − v)/h

λᵀ∇Ψ is a sum over elements. Each element's share is a taped kernel of its corners and parameters, whose adjoint runs
here over copies of the corners in shared scratch; vertices then gather, so that no two threads add to one number and
nothing but the two states has to be kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec3
from warpsim.deformable.contact import Contacts, contact_work, prepare_contacts
from warpsim.deformable.corners import Corners, corner_kernel, element_adjoint, gather_kernel, step_sum_kernel
from warpsim.deformable.inertia import Inertia
from warpsim.deformable.krylov import solve_with_pairs
from warpsim.deformable.matrix import Factor, factor_matrix
from warpsim.deformable.near import prepare_self
from warpsim.deformable.newton import add_contacts, assemble, prepare_matrix
from warpsim.deformable.self_contact import SelfContacts, add_self, self_work
from warpsim.deformable.springs import Springs, add_springs, spring_work
from warpsim.deformable.step_terms import Terms
from warpsim.deformable.terms import Elements
from warpsim.deformable.types import FREE, PINNED


@dataclass
class AdjointScratch:
    """What an adjoint needs once for all slots.

    Attributes:
        corners: By kind of element.
        multiplier: (W, n) λ.
        by_end: (W, n) −∇²Ψλ.
        by_start: (W, n) −∂_x(λᵀ∇Ψ) where Ψ reads the start of the step.
        gradient: (W, n) room for ∇Ψ, which is not used.
        acceleration: (W, n) (v⁺ − v)/h.
        work: (W,) room for λᵀ∇ of rows.
        seed: (3, W) −1, their adjoints: of contacts, of springs, of self-contact.
    """

    corners: dict[str, Corners]
    multiplier: wp.array
    by_end: wp.array
    by_start: wp.array
    gradient: wp.array
    acceleration: wp.array
    work: wp.array
    seed: wp.array


@wp.kernel(enable_backward=False)
def _multiplier_kernel(
    m: Inertia,
    elements: Elements,
    contacts: Contacts,
    springs: Springs,
    pairs: SelfContacts,
    f: Factor,
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    next_v: wp.array2d(dtype=vec3),
    end: wp.array2d(dtype=vec3),
    adj_end: wp.array2d(dtype=vec3),
    adj_velocity: wp.array2d(dtype=vec3),
    # out
    gradient: wp.array2d(dtype=vec3),
    acceleration: wp.array2d(dtype=vec3),
    multiplier: wp.array2d(dtype=vec3),
    by_end: wp.array2d(dtype=vec3),
    by_start: wp.array2d(dtype=vec3),
    seed: wp.array2d(dtype=real),
):
    """λ of each world."""
    w = natural(wp.tid())
    h = m.time_step[w]
    seed[0, w] = real(-1.0)
    seed[1, w] = real(-1.0)
    seed[2, w] = real(-1.0)
    prepare_matrix(m, elements, f, w)
    assemble(m, elements, f, w, x, end, 0, gradient)
    for i in range(end.shape[1]):
        acceleration[w, i] = (next_v[w, i] - v[w, i]) / h
    prepare_contacts(contacts, w, h, x, v)
    prepare_self(pairs, w, h, x, v)
    add_contacts(contacts, m, f, w, acceleration, gradient)
    add_self(pairs, w, h, acceleration, gradient)
    add_springs(springs, m.node, w, h, x, v, acceleration, gradient, f.blocks)
    factor_matrix(f, w, 0)
    for i in range(end.shape[1]):
        if m.node[i] >= 0:
            f.vector[w, m.node[i]] = h * (h * adj_end[w, i] + adj_velocity[w, i])
    solve_with_pairs(f, pairs, w, 1)
    for i in range(end.shape[1]):
        by_end[w, i] = vec3()
        by_start[w, i] = vec3()
        multiplier[w, i] = vec3()
        if m.node[i] >= 0:
            multiplier[w, i] = f.vector[w, m.node[i]]


@wp.kernel(enable_backward=False)
def _vertex_kernel(
    m: Inertia,
    multiplier: wp.array2d(dtype=vec3),
    by_start: wp.array2d(dtype=vec3),
    by_end: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    next_v: wp.array2d(dtype=vec3),
    adj_next_x: wp.array2d(dtype=vec3),
    adj_next_v: wp.array2d(dtype=vec3),
    # in and out
    adj_x: wp.array2d(dtype=vec3),
    adj_v: wp.array2d(dtype=vec3),
    adj_force: wp.array2d(dtype=vec3),
    adj_target: wp.array2d(dtype=vec3),
    adj_mass: wp.array2d(dtype=real),
):
    """Adjoints of what belongs to a vertex."""
    w, i = wp.tid()
    h = m.time_step[w]
    end = adj_next_x[w, i] + by_end[w, i]
    if m.kind[i] == FREE:
        multiple = multiplier[w, i]
        adj_x[w, i] += end + by_start[w, i]
        adj_v[w, i] += h * end + adj_next_v[w, i] - (m.damping[w] * m.mass[w, i]) * multiple
        if adj_force:
            adj_force[w, i] += multiple
        if adj_mass:
            a = (next_v[w, i] - v[w, i]) / h
            adj_mass[w, i] += -wp.dot(multiple, a - m.gravity[w] + m.damping[w] * next_v[w, i])
    elif m.kind[i] == PINNED:
        adj_x[w, i] += by_start[w, i] - adj_next_v[w, i] / h
        if adj_target:
            adj_target[w, m.pin[i]] += end + adj_next_v[w, i] / h
    else:
        adj_x[w, i] += end + by_start[w, i]


@wp.kernel(enable_backward=False)
def _world_kernel(
    m: Inertia,
    multiplier: wp.array2d(dtype=vec3),
    by_end: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    next_v: wp.array2d(dtype=vec3),
    adj_next_x: wp.array2d(dtype=vec3),
    adj_next_v: wp.array2d(dtype=vec3),
    # in and out
    adj_damping: wp.array(dtype=real),
    adj_gravity: wp.array(dtype=vec3),
    adj_time_step: wp.array(dtype=real),
):
    """Adjoints of what belongs to a world, vertex after vertex."""
    w = natural(wp.tid())
    h = m.time_step[w]
    damping, step, gravity = real(0.0), real(0.0), vec3()
    for i in range(v.shape[1]):
        if m.kind[i] == FREE:
            a = (next_v[w, i] - v[w, i]) / h
            pull = m.mass[w, i] * multiplier[w, i]
            gravity += pull
            damping += -wp.dot(pull, next_v[w, i])
            step += wp.dot(adj_next_x[w, i] + by_end[w, i], v[w, i] + real(2.0) * h * a)
            step += wp.dot(adj_next_v[w, i] - m.damping[w] * pull, a)
        elif m.kind[i] == PINNED:
            step += -wp.dot(adj_next_v[w, i], next_v[w, i]) / h
    if adj_damping:
        adj_damping[w] += damping
    if adj_gravity:
        adj_gravity[w] += gravity
    if adj_time_step:
        adj_time_step[w] += step


@wp.kernel(enable_backward=False)
def _pin_multiplier_kernel(
    m: Inertia,
    adj_elastic: wp.array2d(dtype=vec3),
    # out
    multiplier: wp.array2d(dtype=vec3),
    by_end: wp.array2d(dtype=vec3),
    by_start: wp.array2d(dtype=vec3),
):
    """−R̄ at pinned vertices, for the adjoint R̄ of the elastic force on them: then θ̄ = ∂_θ(R̄ᵀ∇Ψ)."""
    w, i = wp.tid()
    by_end[w, i] = vec3()
    by_start[w, i] = vec3()
    multiplier[w, i] = vec3()
    if m.kind[i] == PINNED:
        multiplier[w, i] = -adj_elastic[w, m.pin[i]]


@wp.kernel(enable_backward=False)
def _add_kernel(
    by_end: wp.array2d(dtype=vec3),
    by_start: wp.array2d(dtype=vec3),
    # in and out
    adj_end: wp.array2d(dtype=vec3),
    adj_x: wp.array2d(dtype=vec3),
):
    w, i = wp.tid()
    adj_end[w, i] += by_end[w, i]
    adj_x[w, i] += by_start[w, i]


@wp.kernel(enable_backward=False)
def _begin_kernel(
    a: wp.array2d(dtype=vec3),
    # out
    acceleration: wp.array2d(dtype=vec3),
    by_end: wp.array2d(dtype=vec3),
    by_start: wp.array2d(dtype=vec3),
    seed: wp.array2d(dtype=real),
):
    """What `_multiplier_kernel` leaves beside λ."""
    w = natural(wp.tid())
    seed[0, w] = real(-1.0)
    seed[1, w] = real(-1.0)
    seed[2, w] = real(-1.0)
    for i in range(a.shape[1]):
        acceleration[w, i] = a[w, i]
        by_end[w, i] = vec3()
        by_start[w, i] = vec3()


@wp.kernel(enable_backward=False)
def _pin_kernel(m: Inertia, adj_elastic: wp.array2d(dtype=vec3), multiplier: wp.array2d(dtype=vec3)):
    """−R̄ at pinned vertices, as in `_pin_multiplier_kernel`."""
    w, i = wp.tid()
    if m.kind[i] == PINNED:
        multiplier[w, i] = -adj_elastic[w, m.pin[i]]


class StepAdjoint:
    """Adds to the gradients of a step's state, controls, surroundings and parameters those of its next state."""

    def __init__(self, model: Any, scratch: AdjointScratch, factor: Factor) -> None:
        """Takes the scratch that all steps share.

        Args:
            model: A `DeformableModel`.
            scratch: Vectors and copies of corners.
            factor: Room for the matrix.
        """
        self._model, self._scratch, self._factor = model, scratch, factor

    def run(
        self,
        terms: Terms,
        state: Mapping[str, wp.array],
        control: Mapping[str, wp.array],
        next_state: Mapping[str, wp.array],
        elastic: wp.array,
    ) -> None:
        """One step's.

        Args:
            terms: Of the step.
            state: x and v at the start, with gradients.
            control: force and pin; gradients where they have one.
            next_state: x and v at the end, with gradients.
            elastic: ∇Ψ of pinned vertices; counts where it has a gradient.
        """
        x, v, end, next_v = state["x"], state["v"], next_state["x"], next_state["v"]
        inertia, scratch = terms.inertia, self._scratch
        worlds, count = x.shape
        if elastic.grad is not None and elastic.size:
            rooms = [scratch.multiplier, scratch.by_end, scratch.by_start]
            self._launch(_pin_multiplier_kernel, (worlds, count), [inertia, elastic.grad], rooms)
            self._elements(terms, x, end)
            self._launch(_add_kernel, (worlds, count), [scratch.by_end, scratch.by_start], [end.grad, x.grad])
        self._launch(
            _multiplier_kernel,
            worlds,
            [inertia, terms.elements, terms.contacts, terms.springs, terms.pairs, self._factor]
            + [x, v, next_v, end, end.grad, next_v.grad],
            [
                scratch.gradient,
                scratch.acceleration,
                scratch.multiplier,
                scratch.by_end,
                scratch.by_start,
                scratch.seed,
            ],
        )
        self._rows(terms, state)
        self._pull_all(terms, state, control, next_state)

    def run_with(
        self,
        terms: Terms,
        state: Mapping[str, wp.array],
        control: Mapping[str, wp.array],
        next_state: Mapping[str, wp.array],
        elastic: wp.array,
        acceleration: wp.array,
    ) -> None:
        """One step's, after a solve with bodies that has left λ of free vertices in the scratch.

        Args:
            terms: As in `run`, with the following.
            state: x and v.
            control: force and pin.
            next_state: x and v.
            elastic: ∇Ψ of pinned vertices.
            acceleration: (W, n) the step's, m/s².
        """
        scratch = self._scratch
        rooms = [scratch.acceleration, scratch.by_end, scratch.by_start, scratch.seed]
        self._launch(_begin_kernel, state["x"].shape[0], [acceleration], rooms)
        self._rows(terms, state)
        if len(self._model.pinned):
            pins = [terms.inertia, elastic.grad]
            self._launch(_pin_kernel, state["x"].shape, pins, [scratch.multiplier])
        self._pull_all(terms, state, control, next_state)

    @property
    def multiplier(self) -> wp.array:
        """(W, n) λ."""
        return self._scratch.multiplier

    def _pull_all(
        self,
        terms: Terms,
        state: Mapping[str, wp.array],
        control: Mapping[str, wp.array],
        next_state: Mapping[str, wp.array],
    ) -> None:
        """θ̄ = −∂_θ(λᵀr) of everything, for the λ in the scratch."""
        x, v, end, next_v = state["x"], state["v"], next_state["x"], next_state["v"]
        inertia, p, scratch = terms.inertia, self._model.physical, self._scratch
        worlds, count = x.shape
        self._elements(terms, x, end)
        shared = [scratch.multiplier, scratch.by_start, scratch.by_end, v, next_v, end.grad, next_v.grad]
        self._launch(
            _vertex_kernel,
            (worlds, count),
            [inertia, *shared],
            [x.grad, v.grad, control["force"].grad, control["pin"].grad, p["mass"].grad],
        )
        del shared[1]
        world_gradients = [p["mass_damping"].grad, terms.gravity.grad, terms.time_step.grad]
        self._launch(_world_kernel, worlds, [inertia, *shared], world_gradients)

    def _launch(self, kernel: wp.Kernel, dim: Any, inputs: list, outputs: list) -> None:
        wp.launch(kernel, dim=dim, inputs=inputs, outputs=outputs, device=self._model.device, record_tape=False)

    def _elements(self, terms: Terms, x: wp.array, end: wp.array) -> None:
        """θ̄ = −∂_θ(λᵀ∇Ψ) of all elements, for the λ in the scratch."""
        scratch = self._scratch
        worlds, count = x.shape
        for kind, c in scratch.corners.items():
            self._launch(
                corner_kernel,
                (worlds, c.vertex.shape[0]),
                [c.vertex, terms.time_step, x, end, scratch.multiplier],
                [c.x, c.end, c.multiplier, c.h, c.x.grad, c.end.grad, c.multiplier.grad, c.h.grad, c.work.grad],
            )
            element_adjoint(self._model, kind, c)
            self._launch(
                gather_kernel,
                (worlds, count),
                [c.first, c.corner, c.x.grad, c.end.grad],
                [scratch.by_start, scratch.by_end],
            )
            if terms.time_step.grad is not None:
                self._launch(step_sum_kernel, worlds, [c.h.grad], [terms.time_step.grad])

    def _rows(self, terms: Terms, state: Mapping[str, wp.array]) -> None:
        """Contacts, springs and self-contact at fixed a; one thread sums a world, in the order of its rows."""
        c, s, scratch = terms.contacts, terms.springs, self._scratch
        common = [terms.time_step, state["x"], state["v"]]
        moved = [scratch.acceleration, scratch.multiplier]
        if c.count:
            self._pull(contact_work, c, Contacts(), common, moved, 0)  # arrays in a struct know their gradients
        if s.count:
            self._pull(spring_work, s.vertex, None, [*terms.spring_arrays, *common], moved, 1)
        if terms.pairs.count:
            self._pull(self_work, terms.pairs, SelfContacts(), common, moved, 2)

    def _pull(self, kernel: wp.Kernel, first: Any, adj_first: Any, read: list, held: list, which: int) -> None:
        wp.launch(
            kernel,
            dim=self._scratch.work.shape[0],
            inputs=[first, *read, *held],
            outputs=[self._scratch.work],
            adj_inputs=[adj_first, *(array.grad for array in read), *(None for _ in held)],
            adj_outputs=[self._scratch.seed[which]],
            adjoint=True,
            device=self._model.device,
            record_tape=False,
        )
