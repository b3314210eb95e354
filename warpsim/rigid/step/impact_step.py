"""One step with impacts: the order of its stages, and nothing else; see `warpsim.rigid.constraint.impact` for why.

step without fast contacts ▸ contacts at its end ▸ back to the touch ▸ impulse ▸ forces after it ▸ on to the end
"""

from __future__ import annotations

import warp as wp

from warpsim.rigid.constraint.impact import find_struck, lift_of_sliding, time_of_touch
from warpsim.rigid.constraint.solver_adjoint import impulse_adjoint
from warpsim.rigid.constraint.stage import build_rows, collide, constraint_forces, newton
from warpsim.rigid.dynamics.instant import go_back, go_on, jump
from warpsim.rigid.dynamics.inverse_dynamics import residual_at_solution
from warpsim.rigid.dynamics.kinematics import kinematics, twists_of_rates
from warpsim.rigid.dynamics.mass_matrix import mass_matrix
from warpsim.rigid.model.model import Model
from warpsim.rigid.step import step
from warpsim.rigid.step.impact_work import ImpactScratch, ImpactWork, Impulse
from warpsim.rigid.work.state import Control, RungeKuttaWork, Scratch, State
from warpsim.tape.program import Arrays


def impact_step(
    m: Model,
    s: State,
    u: Control,
    work: ImpactWork,
    scratch: Scratch,
    space: ImpactScratch,
    s_out: State,
    tape: wp.Tape | None,
) -> None:
    """One step in which contacts that close fast are impacts."""
    if isinstance(work.free, RungeKuttaWork):
        step.runge_kutta(m, s, u, work.free, scratch, work.end, tape)
    else:
        step.euler(m, s, u, work.free, scratch, work.end, tape)
    touch, c = work.touch, work.touch.constraint
    assert c is not None
    kinematics(m, work.end, touch)
    collide(m, touch, c, space.constraint)
    settings, reach = space.constraint.contact_settings, space.constraint.reach
    time_of_touch(m, touch, c.contacts, settings, space.span, work.first, reach, work.back)
    go_back(m, work.end, work.free.qdd, work.back, work.struck)
    strike(m, work, scratch, space, tape)
    step.forward(m, work.after, u, work.rest, scratch, tape)
    go_on(m, work.end, work.after, work.rest.qdd, work.back, s_out)
    assert work.rest.constraint is not None
    wp.copy(s_out.warm_start, work.rest.constraint.qdd_fixed)
    if m.na:
        wp.copy(s_out.activation, work.end.activation)


def strike(m: Model, work: ImpactWork, scratch: Scratch, space: ImpactScratch, tape: wp.Tape | None) -> None:
    """`work.after`: the struck state with its velocities after the impact."""
    c = work.strike.constraint
    assert c is not None
    kinematics(m, work.struck, work.strike)
    collide(m, work.strike, c, space.constraint, reach=space.constraint.reach)
    find_struck(m, work.strike, c, space.constraint.contact_settings, work.first)
    mass_matrix(m, work.strike, scratch)
    guess = m.zero_dofs
    for impulse in work.impulses:
        still = Arrays("state", {"q": work.struck.q, "qd": m.zero_dofs, "warm_start": guess})
        solve(m, still, work, impulse, space, tape)
        guess = impulse.work.qdd_fixed
    jump(m, work.struck.qd, work.impulses[-1].work.qdd, work.after.qd)


def solve(
    m: Model, still: State, work: ImpactWork, impulse: Impulse, space: ImpactScratch, tape: wp.Tape | None
) -> None:
    """One jump of velocities, and the lift of the sliding it leaves."""
    c, rows = impulse.work.constraint, space.constraint
    assert c is not None
    velocity = work.strike.velocity
    build_rows(space.model, still, impulse.work, c, rows, velocity=velocity)
    newton(space.model, still, impulse.work, c, rows, m.zero_dofs, keep=tape is not None)
    if tape is not None:
        constraint_forces(space.model, still, impulse.work, c, rows, velocity=velocity)
        residual_at_solution(space.model, still, impulse.work)
        tape.record_func(lambda: impulse_adjoint(m, impulse.work, c), arrays=[impulse.work.qdd, impulse.work.residual])
    if impulse is not work.impulses[-1]:
        twists_of_rates(m, impulse.work.qdd, work.strike.axis, impulse.twist)
        lift_of_sliding(m, work.strike, c, rows.contact_settings, impulse.twist, impulse.lift)
