"""What a step with impacts keeps beside an ordinary one's intermediates, and the still world of its impulses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import warp as wp

from warpsim.core.precision import real, vec3, vec6
from warpsim.rigid.constraint.impact import PASSES
from warpsim.rigid.model.model import Model
from warpsim.rigid.work.constraint_work import ConstraintScratch, contact_settings
from warpsim.rigid.work.state import (
    RungeKuttaWork,
    Scratch,
    State,
    Work,
    make_runge_kutta_work,
    make_work,
    state_fields,
    state_space,
)
from warpsim.tape.arena import Arena
from warpsim.tape.program import Arrays


@dataclass
class Impulse:
    """One solve of an impact: `work.qdd` is the jump of velocities, m/s or rad/s."""

    work: Work
    twist: wp.array  # (W, nv + 1) vec6: what the jump adds to the bodies' twists
    lift: wp.array  # (W, mc): that of the sliding after it, for the next solve


@dataclass
class ImpactWork:
    """Intermediates of one step with impacts, in the order of `warpsim.rigid.step.impact_step`."""

    free: Work | RungeKuttaWork  # the step with contacts that close fast left out
    end: State  # what it reaches
    touch: Work  # motion and contacts there
    first: wp.array  # (W, ntree) int32: the contact whose touch each tree goes back to, or −1
    back: wp.array  # (W, ntree), s: how long before the end that was
    struck: State  # then
    strike: Work  # motion, contacts and mass matrix then
    impulses: list[Impulse]
    after: State
    rest: Work  # the evaluation after the impact


@dataclass
class ImpactScratch:
    """A world without gravity, motion, springs or dampers, in which accelerations are jumps of velocity."""

    model: Model
    constraint: ConstraintScratch
    span: wp.array  # (W, ntree)


def _changed(struct: Any, **values: wp.array) -> Any:
    """A copy of a struct of arrays with some of them replaced."""
    copy = struct._cls()
    for name in struct._cls.vars:
        setattr(copy, name, values.get(name, getattr(struct, name)))
    return copy


def make_impact_scratch(m: Model, scratch: Scratch) -> ImpactScratch:
    """Allocates the scratch of a program with impacts, around that of its ordinary steps."""
    assert scratch.constraint is not None
    w, device = m.worlds, m.device
    still = replace(
        m,
        world=_changed(m.world, gravity=wp.zeros(w, dtype=vec3, device=device)),
        **{
            # a direct solref of zero: neither spring nor damper
            group: _changed(struct, solref=wp.zeros_like(struct.solref, requires_grad=False))
            for group, struct in (
                ("limit", m.limit),
                ("tendon_limit", m.tendon_limit),
                ("equality", m.equality),
                ("loop", m.loop),
            )
        },
    )
    settings = contact_settings(m, 0.0)
    settings.pyramidal = 0
    c = scratch.constraint
    return ImpactScratch(
        model=still,
        constraint=replace(
            c,
            contact_settings=settings,
            soft_settings=settings,
            # dry friction and drives are no match for an impulse
            joint_settings=_changed(c.joint_settings, friction_count=0),
            tendon_settings=_changed(c.tendon_settings, friction_count=0),
            loop_settings=_changed(c.loop_settings, drive_start=wp.zeros_like(c.loop_settings.drive_start)),
        ),
        span=wp.zeros((w, m.ntree), dtype=real, device=device),
    )


def _make_impulse(m: Model, arena: Arena, strike: Work, lift: wp.array | None) -> Impulse:
    """Space for one solve at the state of `strike`, whose motion it shares; `lift` is None in the first."""
    assert strike.constraint is not None
    w, nv, mc, c = m.worlds, m.nv, m.max_contacts, strike.constraint
    qdd = arena.array((w, nv), real, accumulator=True)  # the solver starts from no jump
    qdd_fixed = wp.array(ptr=qdd.ptr, shape=qdd.shape, dtype=real, device=m.device)
    qdd_fixed._ref = qdd  # a graph that captures only this one has to find the memory
    constraint = replace(
        c,
        lift=arena.array((w, mc), real, accumulator=True) if lift is None else lift,
        contact_force=arena.array((w, mc), vec6),
        qdd=qdd,
        qdd_fixed=qdd_fixed,
        twist=arena.array((w, nv + 1), vec6),
        bias=arena.array(c.bias.shape, vec6, accumulator=True),
        factor=arena.array(c.factor.shape, real, differentiable=False),
        envelope=arena.array(c.envelope.shape, wp.int32, differentiable=False),
        status=arena.array(c.status.shape, wp.int32, differentiable=False),
        error=arena.array(c.error.shape, real, differentiable=False),
    )
    work = replace(
        strike,
        velocity=arena.array((w, nv + 1), vec6, differentiable=False, accumulator=True),  # the still world
        wrench=arena.array((w, m.nbody), vec6, accumulator=True),
        dof_force=arena.array((w, nv), real, accumulator=True),
        dof_implicit=m.zero_dofs,
        dof_integrator=m.zero_dofs,
        qdd=qdd,
        qdd_fixed=qdd_fixed,
        acceleration=arena.array((w, nv + 1), vec6),
        body_force=arena.array((w, m.nbody), vec6),
        residual=arena.array((w, nv), real),
        constraint=constraint,
    )
    return Impulse(work, arena.array((w, nv + 1), vec6), arena.array((w, mc), real))


def make_impact_work(m: Model, arena: Arena) -> ImpactWork:
    """Allocates one step's intermediates."""
    fields = [f for f in state_fields(m) if f.name in ("q", "qd", "activation")]
    shape = (m.worlds, m.ntree)
    strike = make_work(m, arena)
    impulses: list[Impulse] = []
    for _ in range(PASSES):
        impulses.append(_make_impulse(m, arena, strike, impulses[-1].lift if impulses else None))
    free = make_runge_kutta_work(m, arena) if m.options.integrator == "rk4" else make_work(m, arena)
    struck, end = state_space(fields, arena), state_space(state_fields(m), arena)
    after = {"qd": arena.array((m.worlds, m.nv), real), "warm_start": end.warm_start}
    return ImpactWork(
        free=free,
        end=end,
        touch=make_work(m, arena),
        first=arena.array(shape, wp.int32, differentiable=False),
        back=arena.array(shape, real),
        struck=struck,
        strike=strike,
        impulses=impulses,
        after=Arrays("state", {**struck, **after}),
        rest=make_work(m, arena),
    )
