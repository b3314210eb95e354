"""One step of the simulation: the order of the stages, and nothing else.

kinematics ▸ passive and actuator forces ▸ mass matrix ▸ contacts ▸ Newton ▸ acceleration ▸ integrate
"""

from __future__ import annotations

from typing import Protocol

import warp as wp

from warpsim.rigid.constraint.impact import leave_pending
from warpsim.rigid.constraint.solver_adjoint import solver_adjoint
from warpsim.rigid.constraint.stage import (
    bias_accelerations,
    build_rows,
    collide,
    constrained_forces,
    constraint_forces,
    newton,
    soften,
)
from warpsim.rigid.dynamics.acceleration import acceleration, acceleration_adjoint, smooth_acceleration
from warpsim.rigid.dynamics.actuation import actuation
from warpsim.rigid.dynamics.adhesion import find_glue
from warpsim.rigid.dynamics.chart_rates import chart_rate
from warpsim.rigid.dynamics.implicit import implicit_residual, implicit_slopes
from warpsim.rigid.dynamics.implicit_matrix import implicit_matrix
from warpsim.rigid.dynamics.integrate import advance, advance_activation, average, semi_implicit, shift
from warpsim.rigid.dynamics.inverse_dynamics import residual_at_optimum, residual_at_rest, residual_at_solution
from warpsim.rigid.dynamics.kinematics import kinematics
from warpsim.rigid.dynamics.loop_drives import loop_drives
from warpsim.rigid.dynamics.mass_matrix import mass_matrix
from warpsim.rigid.dynamics.passive import passive
from warpsim.rigid.dynamics.saturation import activation_cuts, saturation
from warpsim.rigid.model.model import Model
from warpsim.rigid.work.constraint_work import ConstraintScratch, ConstraintWork
from warpsim.rigid.work.state import Control, RungeKuttaWork, Scratch, State, Work


class Partner(Protocol):
    """What is solved for together with the bodies: its unknowns, its terms of the objective, and their adjoints."""

    def solve(self, m: Model, work: Work, scratch: Scratch) -> None:
        """`work.qdd` of everything; rows, and a first guess of it, are there. Not taped."""

    def forces(self, m: Model, work: Work, tape: wp.Tape) -> None:
        """Adds what it exerts on bodies, accelerations held fixed, to `work.wrench`, on the tape."""

    def adjoint(self, m: Model, work: Work, scratch: Scratch) -> None:
        """The adjoint of `work.residual` from that of `work.qdd`."""


def forward(
    m: Model,
    s: State,
    u: Control,
    work: Work,
    scratch: Scratch,
    tape: wp.Tape | None,
    partner: Partner | None = None,
) -> None:
    """Accelerations `work.qdd` of state `s` under controls `u`; on the tape, with their implicit adjoint.

    With a partner, all implicit terms of bodies are the drives' and the joints' damping, within the one solve.
    """
    implicitfast = m.options.integrator == "implicitfast" and partner is None
    kinematics(m, s, work)
    passive(m, s, u, work)
    if m.has_adhesion:
        find_glue(m, work, scratch.constraint)
    actuation(m, s, u, work)
    if m.drives_loops:
        loop_drives(m, u, work)
    saturation(m, s, work)
    if implicitfast:
        implicit_slopes(m, work)
    mass_matrix(m, work, scratch)
    residual_at_rest(m, s, work, scratch)
    if implicitfast:
        implicit_matrix(m, work, scratch.matrix)
    matrix = scratch.matrix if implicitfast else work.mass_matrix
    if partner is not None:
        joint_acceleration(m, s, work, scratch, partner)
    elif work.constraint is None or scratch.constraint is None:
        acceleration(m, s, work, matrix, scratch.residual)
    else:
        constrained_acceleration(
            m, s, work, work.constraint, scratch, scratch.constraint, matrix, record=tape is not None
        )
    if tape is not None:
        record_adjoint(m, s, work, scratch, tape, partner)


def joint_acceleration(m: Model, s: State, work: Work, scratch: Scratch, partner: Partner) -> None:
    """The acceleration of bodies that are solved for together with something else."""
    c, space = work.constraint, scratch.constraint
    if c is not None and space is not None:
        collide(m, work, c, space)
        bias_accelerations(m, s, work, c, space)
        build_rows(m, s, work, c, space)
        wp.copy(work.qdd_fixed, s.warm_start)
    else:
        acceleration(m, s, work, work.mass_matrix, scratch.residual)
    partner.solve(m, work, scratch)
    if c is not None and m.two_stage:
        wp.copy(c.qdd_fixed, work.qdd_fixed)


def constrained_acceleration(
    m: Model,
    s: State,
    work: Work,
    c: ConstraintWork,
    scratch: Scratch,
    space: ConstraintScratch,
    matrix: wp.array,
    *,
    record: bool,
) -> None:
    """The contact solver's acceleration and, if the integrator has implicit terms, its own after that."""
    collide(m, work, c, space)
    if m.has_impacts:
        leave_pending(m, work, c, space.contact_settings)
    bias_accelerations(m, s, work, c, space)
    build_rows(m, s, work, c, space)
    smooth_acceleration(m, work, scratch, c.qdd_fixed)
    newton(m, s, work, c, space, scratch.residual, keep=record)
    if m.two_stage:
        constrained_forces(m, work, c, space)
        acceleration(m, s, work, matrix, space.residual)


def record_adjoint(
    m: Model, s: State, work: Work, scratch: Scratch, tape: wp.Tape, partner: Partner | None = None
) -> None:
    """Residuals at the solution, on the tape, and the implicit adjoint that seeds them."""
    c, space = work.constraint, scratch.constraint
    if c is not None and space is not None:
        if m.softened_backward:
            soften(m, s, work, c, space)
        constraint_forces(m, s, work, c, space, softened=True)
    if partner is not None:
        partner.forces(m, work, tape)
        residual_at_solution(m, s, work)
        tape.record_func(lambda: partner.adjoint(m, work, scratch), arrays=[work.qdd, work.residual])
        return
    residual_at_solution(m, s, work)
    if m.options.integrator == "implicitfast":
        implicit_residual(m, s, work)
    if c is not None and m.two_stage:
        residual_at_optimum(m, s, work, c)

    def adjoint() -> None:
        if c is None or m.two_stage:
            acceleration_adjoint(m, work)
        if c is not None and space is not None:
            solver_adjoint(m, work, c, space)

    tape.record_func(adjoint, arrays=[work.qdd, work.residual])


def euler(
    m: Model,
    s: State,
    u: Control,
    work: Work,
    scratch: Scratch,
    s_out: State,
    tape: wp.Tape | None,
    partner: Partner | None = None,
) -> None:
    """One step of "euler" or "implicitfast"; with a partner, of what both become then."""
    forward(m, s, u, work, scratch, tape, partner)
    semi_implicit(m, s, work, s_out)
    if work.constraint is not None:
        wp.copy(s_out.warm_start, work.constraint.qdd_fixed)


def runge_kutta(
    m: Model, s: State, u: Control, work: RungeKuttaWork, scratch: Scratch, s_out: State, tape: wp.Tape | None
) -> None:
    """One step of the classical fourth-order rule, positions moved on their manifold."""
    states = [s, *work.states]
    rates = [s.qd, *work.rates]
    for k, evaluation in enumerate(work.evaluations):
        if k:
            before, fraction = work.evaluations[k - 1], 1.0 if k == 3 else 0.5
            q, qd = states[k].q, states[k].qd
            advance(m, s, rates[k - 1], before.qdd, q, qd, position_fraction=fraction, velocity_fraction=fraction)
            chart_rate(m, rates[k - 1], qd, rates[k], fraction=fraction)
            if m.na:
                shift(m, s.activation, before.activation_rate, states[k].activation, fraction=fraction)
            if before.constraint is not None:
                wp.copy(states[k].warm_start, before.constraint.qdd_fixed)
        forward(m, states[k], u, evaluation, scratch, tape)
    average(m, rates, work.rate)
    average(m, [e.qdd for e in work.evaluations], work.qdd)
    advance(m, s, work.rate, work.qdd, s_out.q, s_out.qd)
    if m.na:
        average(m, [e.activation_rate for e in work.evaluations], work.activation_rate)
        advance_activation(m, s.activation, work.activation_rate, s_out.activation)
        activation_cuts(m, s.activation, work.activation_rate, work.evaluations[0].saturated)
    if work.evaluations[-1].constraint is not None:
        wp.copy(s_out.warm_start, work.evaluations[-1].constraint.qdd_fixed)
