"""One step of the simulation: the order of the stages, and nothing else.

    kinematics ▸ passive and actuator forces ▸ mass matrix ▸ acceleration ▸ integrate
"""

from __future__ import annotations

import warp as wp

from warpsim.dynamics.acceleration import acceleration, record_acceleration_adjoint
from warpsim.dynamics.actuation import actuation
from warpsim.dynamics.implicit import implicit_matrix, implicit_residual, implicit_slopes
from warpsim.dynamics.integrate import advance, advance_activation, average, semi_implicit, shift
from warpsim.dynamics.inverse_dynamics import residual_at_rest, residual_at_solution
from warpsim.dynamics.kinematics import kinematics
from warpsim.dynamics.mass_matrix import mass_matrix
from warpsim.dynamics.passive import passive
from warpsim.model.model import Model
from warpsim.model.state import Control, RungeKuttaWork, Scratch, State, Work


def forward(m: Model, s: State, u: Control, work: Work, scratch: Scratch, tape: wp.Tape | None) -> None:
    """Accelerations `work.qdd` of state `s` under controls `u`; on the tape, with their implicit adjoint."""
    implicitfast = m.options.integrator == "implicitfast"
    kinematics(m, s, work)
    passive(m, s, u, work)
    actuation(m, s, u, work)
    if implicitfast:
        implicit_slopes(m, work)
    mass_matrix(m, work, scratch)
    if implicitfast:
        implicit_matrix(m, work)
    residual_at_rest(m, s, work, scratch)
    acceleration(m, s, work, scratch)
    if tape is not None:
        residual_at_solution(m, s, work)
        if implicitfast:
            implicit_residual(m, s, work)
        record_acceleration_adjoint(m, work, tape)


def euler(m: Model, s: State, u: Control, work: Work, scratch: Scratch, s_out: State, tape: wp.Tape | None) -> None:
    """One step of "euler" or "implicitfast"."""
    forward(m, s, u, work, scratch, tape)
    semi_implicit(m, s, work, s_out)


def runge_kutta(
    m: Model, s: State, u: Control, work: RungeKuttaWork, scratch: Scratch, s_out: State, tape: wp.Tape | None
) -> None:
    """One step of the classical fourth-order rule, positions moved on their manifold."""
    states = [s, *work.states]
    for k, evaluation in enumerate(work.evaluations):
        if k:
            before, fraction = work.evaluations[k - 1], 1.0 if k == 3 else 0.5
            q, qd = states[k].q, states[k].qd
            advance(m, s, states[k - 1].qd, before.qdd, q, qd, position_fraction=fraction, velocity_fraction=fraction)
            if m.na:
                shift(m, s.activation, before.activation_rate, states[k].activation, fraction=fraction)
        forward(m, states[k], u, evaluation, scratch, tape)
    average(m, [x.qd for x in states], work.rate)
    average(m, [e.qdd for e in work.evaluations], work.qdd)
    advance(m, s, work.rate, work.qdd, s_out.q, s_out.qd)
    if m.na:
        average(m, [e.activation_rate for e in work.evaluations], work.activation_rate)
        advance_activation(m, s.activation, work.activation_rate, s_out.activation)
