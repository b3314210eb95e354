"""Advancing the state: positions along velocities on the manifold, velocities along accelerations, activations."""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec3
from warpsim.core.spatial import quat_exp, quat_mul, read_quat
from warpsim.core.stages import stage
from warpsim.rigid.dynamics.activation import next_activation
from warpsim.rigid.model.actuators import NO_DYNAMICS, ActuatorTopology
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import ActuatorParameters
from warpsim.rigid.model.topology import BALL, FREE, HINGE, SLIDE, Topology
from warpsim.rigid.work.state import State, Work


@wp.func
def turn(
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    q_out: wp.array2d(dtype=real),
    w: int,
    a: int,
    d: int,
    h: real,
):
    """Turns the quaternion at a by the body-frame velocity at d for h seconds."""
    r = quat_mul(read_quat(q, w, a), quat_exp(vec3(qd[w, d], qd[w, d + 1], qd[w, d + 2]) * h))
    q_out[w, a] = r[0]
    q_out[w, a + 1] = r[1]
    q_out[w, a + 2] = r[2]
    q_out[w, a + 3] = r[3]


@wp.kernel
def _advance_kernel(
    # topology, parameters
    t: Topology,
    timestep: wp.array(dtype=real),
    position_fraction: real,
    velocity_fraction: real,
    # state, rates
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    rate: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    # state out
    q_out: wp.array2d(dtype=real),
    qd_out: wp.array2d(dtype=real),
):
    """qd⁺ = qd + h·qdd; q⁺ = q ⊕ h·rate, where `rate` may be qd⁺ itself (semi-implicit)."""
    w = natural(wp.tid())
    hq = timestep[w] * position_fraction
    hv = timestep[w] * velocity_fraction
    for d in range(t.nv):
        qd_out[w, d] = qd[w, d] + hv * qdd[w, d]
    for i in range(1, t.nlink):
        kind = t.link_kind[i]
        a = t.link_q[i]
        d = t.link_dof[i]
        if kind == HINGE or kind == SLIDE:
            q_out[w, a] = q[w, a] + hq * rate[w, d]
        elif kind == BALL:
            turn(q, rate, q_out, w, a, d, hq)
        elif kind == FREE:
            for e in range(3):
                q_out[w, a + e] = q[w, a + e] + hq * rate[w, d + e]
            turn(q, rate, q_out, w, a + 3, d + 3, hq)


@wp.kernel
def _activation_kernel(
    # topology, parameters
    a: ActuatorTopology,
    actuator: ActuatorParameters,
    timestep: wp.array(dtype=real),
    # state, rates
    activation: wp.array2d(dtype=real),
    rate: wp.array2d(dtype=real),
    # state out
    activation_out: wp.array2d(dtype=real),
):
    w = natural(wp.tid())
    for i in range(a.count):
        kind = a.dynamics[i]
        if kind != NO_DYNAMICS:
            k = a.activation[i]
            activation_out[w, k] = next_activation(
                kind,
                activation[w, k],
                rate[w, k],
                actuator.time_constant[w, i],
                actuator.activation_range[w, i],
                timestep[w],
            )


@stage
def advance(
    m: Model,
    s: State,
    rate: wp.array,
    qdd: wp.array,
    q_out: wp.array,
    qd_out: wp.array,
    *,
    position_fraction: float = 1.0,
    velocity_fraction: float = 1.0,
) -> None:
    """One move of length fraction·h from `s` along given rates (W, nv)."""
    wp.launch(
        _advance_kernel,
        dim=m.worlds,
        inputs=[m.topology, m.world.timestep, position_fraction, velocity_fraction, s.q, s.qd, rate, qdd],
        outputs=[q_out, qd_out],
        device=m.device,
    )


@stage
def advance_activation(m: Model, activation: wp.array, rate: wp.array, out: wp.array) -> None:
    """Activations one step on."""
    wp.launch(
        _activation_kernel,
        dim=m.worlds,
        inputs=[m.actuator_topology, m.actuator, m.world.timestep, activation, rate],
        outputs=[out],
        device=m.device,
    )


@wp.kernel
def _shift_kernel(
    timestep: wp.array(dtype=real),
    fraction: real,
    x: wp.array2d(dtype=real),
    rate: wp.array2d(dtype=real),
    out: wp.array2d(dtype=real),
):
    w, i = wp.tid()
    out[w, i] = x[w, i] + timestep[w] * fraction * rate[w, i]


@wp.kernel
def _average_kernel(
    a: wp.array2d(dtype=real),
    b: wp.array2d(dtype=real),
    c: wp.array2d(dtype=real),
    d: wp.array2d(dtype=real),
    out: wp.array2d(dtype=real),
):
    """Simpson-like weights of the classical Runge–Kutta rule."""
    w, i = wp.tid()
    out[w, i] = (a[w, i] + real(2.0) * (b[w, i] + c[w, i]) + d[w, i]) / real(6.0)


@stage
def shift(m: Model, x: wp.array, rate: wp.array, out: wp.array, *, fraction: float) -> None:
    """out = x + fraction·h·rate, element by element."""
    wp.launch(_shift_kernel, dim=x.shape, inputs=[m.world.timestep, fraction, x, rate], outputs=[out], device=m.device)


@stage
def average(m: Model, values: list[wp.array], out: wp.array) -> None:
    """Classical Runge–Kutta average of four rates (W, n)."""
    wp.launch(_average_kernel, dim=out.shape, inputs=values, outputs=[out], device=m.device)


@stage
def semi_implicit(m: Model, s: State, work: Work, s_out: State) -> None:
    """qd⁺ = qd + h·qdd, then q⁺ = q ⊕ h·qd⁺: first order, and stable where the explicit rule is not."""
    advance(m, s, s_out.qd, work.qdd, s_out.q, s_out.qd)
    if m.na:
        advance_activation(m, s.activation, work.activation_rate, s_out.activation)
