"""`JointSolver`: bodies and the deformables among them as one problem, for steps of a coupled program.

What a slot of the tape holds of a deformable's step is copied to the scratch that `System` points to, so that one list
of systems serves all slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from warpsim.core.precision import quat, real, vec3, vec6
from warpsim.deformable.border import Border, Chain, System
from warpsim.deformable.inertia import load_at
from warpsim.deformable.joint_adjoint import JOINT_ADJOINT_KERNELS
from warpsim.deformable.joint_newton import JOINT_NEWTON_KERNELS
from warpsim.deformable.types import FREE, PINNED
from warpsim.rigid.constraint.contact_output import force_feedback
from warpsim.rigid.dynamics.kinematics import twists_of_rates
from warpsim.rigid.model.model import Model
from warpsim.rigid.step.observe import body_rates
from warpsim.rigid.work.state import Scratch, Work
from warpsim.scene.convergence import solver_limits
from warpsim.solve.newton import allocate_vectors
from warpsim.solve.rows import RowCapacity, allocate_rows
from warpsim.solve.sparsity import hessian_sizes
from warpsim.tape.arena import Arena


@dataclass
class JointWork:
    """Intermediates of one step: what bodies accelerate, and their Hessian's factor where they have no rows."""

    twist: wp.array  # (W, nv + 1) vec6, at fixed q̈
    acceleration: wp.array  # (W, nbody) vec6, likewise
    factor: wp.array
    envelope: wp.array
    status: wp.array
    error: wp.array


@dataclass(frozen=True)
class RigidSide:
    """Bodies as a deformable pushes them.

    Attributes:
        acceleration: (W, nbody) vec6, rad/s², m/s²: Jq̈, angular, then linear at the origin; q̈ is held fixed.
        tree: (nbody,) of each body.
        origin: (W, ntree) m: reference points of trees.
        wrench: (W, nbody) vec6, N·m, N, about these points.
    """

    acceleration: wp.array
    tree: wp.array
    origin: wp.array
    wrench: wp.array


@wp.kernel(enable_backward=False)
def _load_kernel(
    x: wp.array2d(dtype=vec3),
    v: wp.array2d(dtype=vec3),
    force: wp.array2d(dtype=vec3),
    target: wp.array2d(dtype=vec3),
    hold: wp.array2d(dtype=vec3),
    position: wp.array2d(dtype=vec3),
    rotation: wp.array2d(dtype=quat),
    velocity: wp.array2d(dtype=vec6),
    size: wp.array2d(dtype=vec3),
    place: wp.array2d(dtype=vec3),
    place_velocity: wp.array2d(dtype=vec3),
    # out
    s: System,
):
    """Copies what a slot holds of a step's start."""
    w = wp.tid()
    for i in range(x.shape[1]):
        s.x[w, i] = x[w, i]
        s.v[w, i] = v[w, i]
        s.force[w, i] = force[w, i]
    for k in range(s.pin.shape[0]):
        s.target[w, k] = target[w, k]
        s.hold[w, k] = hold[w, k]
    for k in range(s.contacts.count):
        s.contacts.position[w, k] = position[w, k]
        s.contacts.rotation[w, k] = rotation[w, k]
        s.contacts.velocity[w, k] = velocity[w, k]
        s.contacts.size[w, k] = size[w, k]
    for k in range(s.springs.count):
        s.springs.place[w, k] = place[w, k]
        s.springs.velocity[w, k] = place_velocity[w, k]


@wp.kernel(enable_backward=False)
def _load_end_kernel(
    a: wp.array2d(dtype=vec3),
    adj_end: wp.array2d(dtype=vec3),
    adj_velocity: wp.array2d(dtype=vec3),
    # out
    s: System,
):
    """Copies what a slot holds of a step's end."""
    w, i = wp.tid()
    s.vectors.acceleration[w, i] = a[w, i]
    s.adj_end[w, i] = adj_end[w, i]
    s.adj_velocity[w, i] = adj_velocity[w, i]


@wp.kernel(enable_backward=False)
def _store_kernel(
    s: System,
    # out
    next_x: wp.array2d(dtype=vec3),
    next_v: wp.array2d(dtype=vec3),
    a: wp.array2d(dtype=vec3),
    elastic: wp.array2d(dtype=vec3),
    status: wp.array2d(dtype=wp.int32),
    error: wp.array(dtype=real),
):
    """The solution of one system."""
    w = wp.tid()
    h = s.inertia.time_step[w]
    for i in range(s.x.shape[1]):
        end, reached = s.vectors.end[w, i], s.v[w, i] + h * s.vectors.acceleration[w, i]
        if s.inertia.kind[i] != FREE:
            reached = (end - s.x[w, i]) / h
        next_x[w, i] = end
        next_v[w, i] = reached
        a[w, i] = (reached - s.v[w, i]) / h
        if s.inertia.kind[i] == PINNED:
            load = load_at(s.inertia, w, i, s.v, s.force, s.vectors.acceleration[w, i])
            elastic[w, s.inertia.pin[i]] = s.vectors.gradient[w, i] - load
    for k in range(4):
        status[w, k] = s.status[w, k]
    error[w] = s.error[w]


@wp.kernel(enable_backward=False)
def _sum_kernel(a: wp.array2d(dtype=real), b: wp.array2d(dtype=real), out: wp.array2d(dtype=real)):
    w, d = wp.tid()
    out[w, d] = a[w, d] + b[w, d]


class JointSolver:
    """Solves for the bodies of a model and matters that join them."""

    def __init__(self, matters: Sequence[Any], model: Model) -> None:
        """Makes the scratch that all steps share.

        Args:
            matters: `DeformableMatter`s, of the model's worlds.
            model: The bodies.
        """
        self._model, self.matters = model, tuple(matters)
        self.parts = [make_system(m, model) for m in self.matters]
        self.systems = wp.array(self.parts, dtype=System, device=model.device)
        self.border = make_border(model)
        self.implicit = wp.zeros((model.worlds, model.nv), dtype=real, device=model.device)
        self._rows = allocate_rows(model.worlds, RowCapacity(), model.device)
        self._vectors = allocate_vectors(model.worlds, 0, model.nv, model.device)

    def make_work(self, arena: Arena) -> JointWork:
        """Intermediates of one step."""
        m = self._model
        factor_size, list_size = (0, 0) if m.has_constraints else hessian_sizes(m.sparsity)

        def fixed(count: int, dtype: type) -> wp.array:
            return arena.array((m.worlds, count), dtype, differentiable=False)

        return JointWork(
            twist=arena.array((m.worlds, m.nv + 1), vec6),
            acceleration=arena.array((m.worlds, m.nbody), vec6),
            factor=fixed(factor_size, real),
            envelope=fixed(list_size, wp.int32),
            status=fixed(2, wp.int32),
            error=arena.array((m.worlds,), real, differentiable=False),
        )

    def partner(self, steps: Sequence[tuple], work: JointWork) -> JointStep:
        """One step.

        Args:
            steps: State, controls, intermediates and surroundings of each matter.
            work: Intermediates of the solve.
        """
        return JointStep(self, steps, work)

    def rows(self, scratch: Scratch) -> tuple[Any, Any]:
        """Rows of the bodies, none where they have none, and the solver's vectors."""
        space = scratch.constraint
        return (self._rows, self._vectors) if space is None else (space.rows, space.vectors)


class JointStep:
    """One step, as the partner of the bodies'."""

    def __init__(self, solver: JointSolver, steps: Sequence[tuple], work: JointWork) -> None:
        self._solver, self._steps, self._work = solver, steps, work

    def _launch(self, kernel: wp.Kernel, dim: Any, inputs: list, outputs: list) -> None:
        device = self._solver.systems.device
        wp.launch(kernel, dim=dim, inputs=inputs, outputs=outputs, device=device, record_tape=False)

    def _load(self, m: Model) -> None:
        for part, (state, inputs, work, _around) in zip(self._solver.parts, self._steps, strict=True):
            given = [state.x, state.v, inputs.force, work.target, work.hold]
            given += [work.position, work.rotation, work.velocity, work.size, work.place, work.place_velocity]
            self._launch(_load_kernel, m.worlds, given, [part])

    def _chain(self, m: Model, work: Work) -> Chain:
        chain = Chain()
        chain.t, chain.origin, chain.axis = m.topology, work.origin, work.axis
        return chain

    def _factor(self, work: Work) -> list[wp.array]:
        own = self._work if work.constraint is None else work.constraint
        return [own.factor, own.envelope]

    def solve(self, m: Model, work: Work, scratch: Scratch) -> None:
        """Accelerations of everything."""
        solver, own = self._solver, self._work if work.constraint is None else work.constraint
        self._load(m)
        self._launch(_sum_kernel, (m.worlds, m.nv), [work.dof_implicit, work.dof_integrator], [solver.implicit])
        limits, (rows, vectors) = solver_limits(m.options), solver.rows(scratch)
        self._launch(
            JOINT_NEWTON_KERNELS.of(m.sparsity),
            m.worlds,
            [solver.systems, self._chain(m, work), m.sparsity, rows, vectors, solver.border, limits.iterations]
            + [limits.tolerance, work.mass_matrix, solver.implicit, scratch.residual],
            [work.qdd_fixed, *self._factor(work), own.status, own.error],
        )
        for part, (_state, _inputs, space, _around) in zip(solver.parts, self._steps, strict=True):
            made = [space.x, space.v, space.acceleration, space.step.elastic]
            self._launch(_store_kernel, m.worlds, [part], [*made, space.step.status, space.step.error])

    def forces(self, m: Model, work: Work, tape: wp.Tape) -> None:
        """What bodies feel, on the tape, and the deformables' part of the adjoint."""
        own = self._work
        twists_of_rates(m, work.qdd_fixed, work.axis, own.twist)
        body_rates(m, work.origin, work.link_position, own.twist, own.acceleration)
        side = RigidSide(own.acceleration, m.topology.body_tree, work.origin, work.wrench)
        for matter, (state, inputs, space, around) in zip(self._solver.matters, self._steps, strict=True):
            matter.exert(state, inputs, space, around, side, tape)

    def adjoint(self, m: Model, work: Work, scratch: Scratch) -> None:
        """λ of bodies, to their residual, and of the deformables."""
        solver, c = self._solver, work.constraint
        if c is not None and scratch.constraint is not None and m.max_contacts:
            force_feedback(m, work, c, scratch.constraint, work.qdd.grad)
        self._load(m)
        for part, (_state, _inputs, space, _around) in zip(solver.parts, self._steps, strict=True):
            self._launch(_load_end_kernel, space.x.shape, [space.acceleration, space.x.grad, space.v.grad], [part])
        self._launch(
            JOINT_ADJOINT_KERNELS.of(m.sparsity),
            m.worlds,
            [solver.systems, self._chain(m, work), m.sparsity, solver.border, *self._factor(work)]
            + [work.qdd_fixed, work.qdd.grad],
            [work.residual.grad],
        )


def make_border(m: Model) -> Border:
    """Room for the dofs of bodies that touch, at most all."""
    out, w, n, device = Border(), m.worlds, m.nv, m.device
    out.count = wp.zeros(w, dtype=wp.int32, device=device)
    out.active, out.column = (wp.zeros((w, n), dtype=wp.int32, device=device) for _ in range(2))
    out.own, out.root, out.middle = (wp.zeros((w, n, n), dtype=real, device=device) for _ in range(3))
    out.inverse = wp.zeros((n, w, n), dtype=real, device=device)
    out.right, out.small, out.reduced = (wp.zeros((w, n), dtype=real, device=device) for _ in range(3))
    return out


def make_system(matter: Any, m: Model) -> System:
    """Room for a matter's step; what does not change is the matter's own."""
    d, out = matter.model, System()
    worlds, count, device = m.worlds, d.count, m.device

    def room(number: int, dtype: type = vec3) -> wp.array:
        return wp.zeros((worlds, number), dtype=dtype, device=device)

    stepper = matter.stepper
    structs = stepper.structs(m.world.timestep, m.world.gravity)
    out.inertia, out.elements, out.contacts, out.springs, out.pairs = structs
    out.factor, out.vectors, out.tolerance = stepper.factor, stepper.vectors, d.tolerance
    out.multiplier = stepper.multiplier
    for name in ("x", "v", "force", "adj_end", "adj_velocity"):
        setattr(out, name, room(count))
    out.target, out.hold = room(len(d.pinned)), room(len(d.pinned))
    if out.contacts.count:
        shapes, contacts = out.contacts.count, out.contacts
        contacts.position, contacts.rotation, contacts.size = room(shapes), room(shapes, quat), room(shapes)
        contacts.velocity, contacts.friction = room(shapes, vec6), matter.physical["friction"]
        out.contacts = contacts
    if out.springs.count:
        springs = out.springs
        springs.place, springs.velocity = room(springs.count), room(springs.count)
        out.springs = springs
    out.shape_body, out.spring_body, out.pin, out.pin_body = matter.bodies_met
    _place_carried(out, matter)
    out.border = wp.zeros((worlds, m.nv, max(d.pattern.size, 1)), dtype=vec3, device=device)
    out.status, out.error = room(4, wp.int32), wp.zeros(worlds, dtype=real, device=device)
    out.room = wp.zeros(worlds, dtype=wp.int32, device=device)
    return out


def _place_carried(out: System, matter: Any) -> None:
    """Blocks of vertices that bodies carry, and of these with others."""
    pattern, device = matter.model.pattern, matter.device
    carried = np.flatnonzero(pattern.carried >= 0)
    carried = carried[np.argsort(pattern.carried[carried])]
    pins = {vertex: k for k, vertex in enumerate(matter.model.pinned.tolist())}
    size, outer = pattern.size, pattern.couplings[pattern.inner :]
    other = np.where(outer[:, 1] < size, outer[:, 1], size - 1 - outer[:, 1])
    blocks = size + pattern.inner + np.arange(len(outer))
    couplings = np.stack([blocks, outer[:, 0] - size, other], axis=1).reshape(-1, 3)
    places = np.array([pins[v] for v in carried.tolist()], np.int32)
    out.carried, out.carried_block = len(carried), size + len(pattern.couplings)
    out.carried_pin = wp.array(places, dtype=wp.int32, device=device)
    out.coupling = wp.array(couplings.astype(np.int32), dtype=wp.int32, device=device)
