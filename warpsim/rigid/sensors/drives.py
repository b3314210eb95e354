"""Sensors of actuators' transmissions, of their sums at joints, and of the limits of joints and tendons."""

from __future__ import annotations

import warp as wp

from warpsim.core.indexing import natural
from warpsim.core.precision import real, vec2, vec3, vec5
from warpsim.core.spatial import clamp_range, quat_log, read_quat
from warpsim.rigid.dynamics.transmission import transmission_length, transmission_rate
from warpsim.rigid.model.actuators import ActuatorTopology
from warpsim.rigid.model.model import Model
from warpsim.rigid.model.parameters import ActuatorParameters, LimitParameters, TendonLimitParameters
from warpsim.rigid.model.tendons import TendonMotion, TendonTopology, tendon_length, tendon_rate
from warpsim.rigid.sensors.layout import SensorTopology
from warpsim.rigid.work.state import State, Work
from warpsim.rigid.work.tendon_work import tendon_motion
from warpsim.solve.row_forces import unilateral_force


@wp.func
def _limit_value(
    what: int,
    reach: vec2,
    margin: real,
    solref: vec2,
    solimp: vec5,
    inverse: real,
    x: real,
    rate: real,
    change: real,
    h: real,
    safe: int,
) -> real:
    """Violation (0), its rate (1) or the force (2) of the limit that acts, the lower one first; else 0."""
    sign = real(1.0)
    violation = x - reach[0] - margin
    if violation >= real(0.0):
        sign = real(-1.0)
        violation = reach[1] - x - margin
    if violation >= real(0.0):
        return real(0.0)
    if what == 0:
        return violation
    if what == 1:
        return sign * rate
    return unilateral_force(solref, solimp, inverse, violation, sign * rate, sign * change, h, safe)


@wp.func
def _triple(x: wp.array2d(dtype=real), w: int, i: int) -> vec3:
    return vec3(x[w, i], x[w, i + 1], x[w, i + 2])


@wp.kernel
def _drive_sensor_kernel(
    # topology, parameters
    c: SensorTopology,
    a: ActuatorTopology,
    tt: TendonTopology,
    actuator: ActuatorParameters,
    limit: LimitParameters,
    tendon_limit: TendonLimitParameters,
    force_range: wp.array2d(dtype=vec2),
    dof_weight: wp.array2d(dtype=real),
    tendon_weight: wp.array2d(dtype=real),
    timestep: wp.array(dtype=real),
    safe: int,
    tendon: TendonMotion,
    # state, solution
    q: wp.array2d(dtype=real),
    qd: wp.array2d(dtype=real),
    qdd: wp.array2d(dtype=real),
    # work in
    dof_actuation: wp.array2d(dtype=real),
    # out
    out: wp.array2d(dtype=real),
):
    # One thread per world: sensors add to the adjoints of the same coordinates in a fixed order.
    w = natural(wp.tid())
    for i in range(c.kind.shape[0]):
        kind = c.kind[i]
        k = c.start[i]
        j = c.target[i]
        d = c.dof[i]
        if kind == 29:
            out[w, k] = clamp_range(dof_actuation[w, d], force_range[w, d][0], force_range[w, d][1])
        elif kind == 30:
            out[w, k] = transmission_length(a, tt, tendon, q, w, j, actuator.gear[w, j])
        elif kind == 31:
            out[w, k] = transmission_rate(a, tt, tendon, qd, w, j, actuator.gear[w, j])
        elif kind >= 32 and kind <= 34:
            x = q[w, c.q[i]]
            rate = qd[w, d]
            change = qdd[w, d]
            reach = limit.range[w, j]
            if c.ball[i] == 1:
                turn = quat_log(read_quat(q, w, c.q[i]))
                x = wp.length(turn)
                reach = vec2(real(-1e30), reach[1])
                if x > real(0.0):
                    rate = wp.dot(turn, _triple(qd, w, d)) / x
                    change = wp.dot(turn, _triple(qdd, w, d)) / x
            out[w, k] = _limit_value(
                kind - 32,
                reach,
                limit.margin[w, j],
                limit.solref[w, j],
                limit.solimp[w, j],
                dof_weight[w, d],
                x,
                rate,
                change,
                timestep[w],
                safe,
            )
        elif kind >= 35 and kind <= 37:
            out[w, k] = _limit_value(
                kind - 35,
                tendon_limit.range[w, j],
                tendon_limit.margin[w, j],
                tendon_limit.solref[w, j],
                tendon_limit.solimp[w, j],
                tendon_weight[w, j],
                tendon_length(tt, tendon, q, w, j),
                tendon_rate(tt, tendon.moment, qd, w, j),
                tendon_rate(tt, tendon.moment, qdd, w, j),
                timestep[w],
                safe,
            )


def measure_drives(m: Model, c: SensorTopology, s: State, work: Work, qdd: wp.array, safe: int, out: wp.array) -> None:
    """Writes them to the measurement vector (W, size); `safe` as in the rows of limits."""
    wp.launch(
        _drive_sensor_kernel,
        dim=m.worlds,
        inputs=[
            c,
            m.actuator_topology,
            m.tendon_topology,
            m.actuator,
            m.limit,
            m.tendon_limit,
            m.joint_force_range,
            m.weight.dof,
            m.weight.tendon,
            m.world.timestep,
            safe,
            tendon_motion(m, work.tendon),
            s.q,
            s.qd,
            qdd,
            work.dof_actuation,
        ],
        outputs=[out],
        device=m.device,
    )
