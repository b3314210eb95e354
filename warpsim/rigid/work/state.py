"""What a step reads and writes: state, controls, the intermediates of one step, and scratch.

Shapes use W worlds, nq coordinates, nv dofs, na activations, nu actuators, nd drives, and counts of `Topology`. Spatial
vectors are in world axes about the tree's reference point, angular part first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import warp as wp

from warpsim.core.precision import mat66, quat, real, vec3, vec6
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.tangent import JointManifold
from warpsim.rigid.work.constraint_work import (
    ConstraintScratch,
    ConstraintWork,
    make_constraint_scratch,
    make_constraint_work,
)
from warpsim.rigid.work.glue_work import GlueWork, make_glue_work
from warpsim.rigid.work.tendon_work import TendonWork, make_tendon_work
from warpsim.tape.arena import Arena
from warpsim.tape.program import Arrays, Field

State = Arrays
"""`q` (W, nq), `qd` (W, nv); with activations, `activation` (W, na); with constraints, `warm_start` (W, nv), the
solver's last acceleration, which carries no gradient."""

Control = Arrays
"""Any of the fields of `control_fields`; what a rollout does not vary is held in `Constants`."""


def state_fields(m: Model) -> tuple[Field, ...]:
    """The state of a model: what the next step truly reads."""
    q = Field("q", (m.worlds, m.nq), real, manifold=JointManifold(m.layout))
    fields = [q, Field("qd", (m.worlds, m.nv), real)]
    if m.na:
        fields.append(Field("activation", (m.worlds, m.na), real))
    if m.has_constraints:
        fields.append(Field("warm_start", (m.worlds, m.nv), real, differentiable=False))
    return tuple(fields)


class Motion(Protocol):
    """What the kinematics of a state writes; fields as in `Work`, which is one."""

    origin: wp.array
    link_position: wp.array
    link_rotation: wp.array
    axis: wp.array
    com: wp.array
    inertia: wp.array
    velocity: wp.array
    tendon: TendonWork | None


@dataclass
class Work:
    """All intermediates of one evaluation of the dynamics that its adjoint needs."""

    origin: wp.array  # (W, ntree) vec3, m: reference point of each tree, no gradient
    link_position: wp.array  # (W, nlink) vec3, m, world
    link_rotation: wp.array  # (W, nlink) quat, world
    axis: wp.array  # (W, nv) vec6: motion axes S of the dofs
    com: wp.array  # (W, nbody) vec3, m: center of mass less the tree's reference point
    inertia: wp.array  # (W, nbody) vec6, kg·m²: about the com, world axes
    velocity: wp.array  # (W, nv + 1) vec6: twist after each dof
    tendon: TendonWork | None  # None without spatial tendons
    glue: GlueWork | None  # None without adhesive actuators
    wrench: wp.array  # (W, nbody) vec6: external (torque, force) on each body
    dof_force: wp.array  # (W, nv): applied, passive and actuator forces
    dof_implicit: wp.array  # (W, nv): drives' implicit part, adds to the mass matrix's diagonal everywhere
    dof_integrator: wp.array  # (W, nv): the integrator's implicit damping, adds to the diagonal in the final solve only
    dof_actuation: wp.array  # (W, nv): summed actuator forces, only where joints limit them
    actuator_force: wp.array  # (W, nu)
    actuator_slope: wp.array  # (W, nu): d force / d velocity of the transmission
    activation_rate: wp.array  # (W, na)
    saturated: wp.array  # (W, m.saturation_size) int32: −1 or 1 where a range cuts, see `dynamics.saturation`
    mass_matrix: wp.array  # (W, nm), no gradient
    factor: wp.array  # (W, nm): LᵀDL of the matrix solved with, no gradient
    free_block: wp.array  # (W, free_count) mat66: LU of single free bodies' blocks, no gradient
    qdd: wp.array  # (W, nv)
    qdd_fixed: wp.array  # the memory of qdd, without gradient
    acceleration: wp.array  # (W, nv + 1) vec6, gravity included
    body_force: wp.array  # (W, nbody) vec6: force each body passes to its parent
    tendon_slope: wp.array  # (W, ntendon): d force / d rate, for "implicitfast"
    qdd_twist: wp.array  # (W, nv + 1) vec6: twists if qdd were the velocity, for "implicitfast"
    residual: wp.array  # (W, nv): of the equation of motion at qdd
    constraint: ConstraintWork | None  # None without constraints
    shape_position: wp.array  # (W, nshape) vec3, m, world; empty if no shapes collide
    shape_rotation: wp.array  # (W, nshape) quat, world


def make_work(m: Model, arena: Arena) -> Work:
    """Allocates one evaluation's intermediates."""
    w = m.worlds

    def live(count: int, dtype: type) -> wp.array:
        return arena.array((w, count), dtype)

    def fixed(count: int, dtype: type) -> wp.array:
        return arena.array((w, count), dtype, differentiable=False)

    qdd = live(m.nv, real)
    qdd_fixed = wp.array(ptr=qdd.ptr, shape=qdd.shape, dtype=real, device=m.device)
    qdd_fixed._ref = qdd  # as in Warp's own views: a graph that captures only this one has to find the memory
    colliders = m.shape_body.shape[0] if m.npair else 0
    return Work(
        origin=fixed(m.ntree, vec3),
        link_position=live(m.nlink, vec3),
        link_rotation=live(m.nlink, quat),
        axis=live(m.nv, vec6),
        com=live(m.nbody, vec3),
        inertia=live(m.nbody, vec6),
        velocity=live(m.nv + 1, vec6),
        tendon=make_tendon_work(m, live, fixed),
        glue=make_glue_work(m, arena),
        wrench=live(m.nbody, vec6),
        dof_force=live(m.nv, real),
        dof_implicit=arena.array((w, m.nv), real, accumulator=True) if m.nd else m.zero_dofs,
        dof_integrator=live(m.nv, real),
        dof_actuation=arena.array((w, m.nv if m.has_force_limits else 0), real, accumulator=True),
        actuator_force=live(m.nu, real),
        actuator_slope=live(m.nu, real),
        activation_rate=live(m.na, real),
        saturated=fixed(m.saturation_size, wp.int32),
        mass_matrix=fixed(m.nm, real),
        factor=fixed(m.nm, real),
        free_block=fixed(m.topology.free_count, mat66),
        qdd=qdd,
        qdd_fixed=qdd_fixed,
        acceleration=live(m.nv + 1, vec6),
        body_force=live(m.nbody, vec6),
        tendon_slope=live(len(m.layout.tendon_names) if m.options.integrator == "implicitfast" else 0, real),
        qdd_twist=live(m.nv + 1 if m.options.integrator == "implicitfast" else 0, vec6),
        residual=live(m.nv, real),
        constraint=make_constraint_work(m, arena, qdd) if m.has_constraints else None,
        shape_position=live(colliders, vec3),
        shape_rotation=live(colliders, quat),
    )


@dataclass
class RungeKuttaWork:
    """The four evaluations of a Runge–Kutta step, the states they are made at, and their averages."""

    evaluations: list[Work]
    states: list[State]  # three in between
    rates: list[wp.array]  # three (W, nv): of the states in between, in the chart at the step's start
    rate: wp.array  # (W, nv): average rate
    qdd: wp.array  # (W, nv): average acceleration
    activation_rate: wp.array  # (W, na)


def state_space(fields: Sequence[Field], arena: Arena) -> State:
    """Space for a state within a step."""
    arrays = {f.name: arena.array(f.shape, f.dtype, differentiable=f.differentiable) for f in fields}
    return Arrays("state", arrays)


def make_runge_kutta_work(m: Model, arena: Arena) -> RungeKuttaWork:
    """Allocates a Runge–Kutta step's intermediates."""
    fields = state_fields(m)
    return RungeKuttaWork(
        evaluations=[make_work(m, arena) for _ in range(4)],
        states=[state_space(fields, arena) for _ in range(3)],
        rates=[arena.array((m.worlds, m.nv), real) for _ in range(3)],
        rate=arena.array((m.worlds, m.nv), real),
        qdd=arena.array((m.worlds, m.nv), real),
        activation_rate=arena.array((m.worlds, m.na), real),
    )


@dataclass
class Scratch:
    """Untaped intermediates that no adjoint reads: one set serves all steps of a program."""

    composite_mass: wp.array  # (W, nbody)
    composite_moment: wp.array  # (W, nbody) vec3
    composite_inertia: wp.array  # (W, nbody) vec6
    acceleration: wp.array  # (W, nv + 1) vec6
    body_force: wp.array  # (W, nbody) vec6
    residual: wp.array  # (W, nv): of the equation of motion at zero acceleration
    matrix: wp.array  # (W, nm): mass matrix with the integrator's derivatives, for "implicitfast"
    factor: wp.array  # (W, nm): of the mass matrix alone, to start the contact solver
    constraint: ConstraintScratch | None  # None without constraints


def make_scratch(m: Model) -> Scratch:
    """Allocates the scratch of a program."""
    w, device = m.worlds, m.device
    return Scratch(
        composite_mass=wp.zeros((w, m.nbody), dtype=real, device=device),
        composite_moment=wp.zeros((w, m.nbody), dtype=vec3, device=device),
        composite_inertia=wp.zeros((w, m.nbody), dtype=vec6, device=device),
        acceleration=wp.zeros((w, m.nv + 1), dtype=vec6, device=device),
        body_force=wp.zeros((w, m.nbody), dtype=vec6, device=device),
        residual=wp.zeros((w, m.nv), dtype=real, device=device),
        matrix=wp.zeros((w, m.nm if m.options.integrator == "implicitfast" else 0), dtype=real, device=device),
        factor=wp.zeros((w, m.nm if m.has_constraints else 0), dtype=real, device=device),
        constraint=make_constraint_scratch(m) if m.has_constraints else None,
    )
