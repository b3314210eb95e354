"""One step of the simulation: the order of the stages, and nothing else.

    kinematics ▸ passive and actuator forces ▸ mass matrix ▸ acceleration ▸ integrate
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import warp as wp

from warpsim.dynamics.acceleration import acceleration, record_acceleration_adjoint
from warpsim.dynamics.actuation import actuation
from warpsim.dynamics.implicit import implicit_matrix, implicit_residual, implicit_slopes
from warpsim.dynamics.integrate import semi_implicit
from warpsim.dynamics.inverse_dynamics import residual_at_rest, residual_at_solution
from warpsim.dynamics.kinematics import kinematics
from warpsim.dynamics.mass_matrix import mass_matrix
from warpsim.dynamics.passive import passive
from warpsim.model.model import Model
from warpsim.model.state import Control, Scratch, State, Work


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


def step(m: Model, s: State, u: Control, work: Work, scratch: Scratch, s_out: State, tape: wp.Tape | None) -> None:
    """One step of the Euler integrators."""
    forward(m, s, u, work, scratch, tape)
    semi_implicit(m, s, work, s_out)
